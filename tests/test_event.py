"""What a workflow's event says: where a result belongs and what to compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sns_gate.errors import UsageError
from sns_gate.github.event import Event, read_event
from sns_gate.github.marker import Marker, find, is_name

SHA, HEAD, BASE = "a" * 40, "b" * 40, "c" * 40


def event(folder: Path, name: str, payload: object, **variables: str) -> Event:
    path = folder / "event.json"
    path.write_text(payload if isinstance(payload, str) else json.dumps(payload), encoding="utf-8")
    environment = {
        "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": SHA,
        "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "2",
    }  # fmt: skip
    return read_event(environment | variables)


def pull(**changes: object) -> dict[str, Any]:
    head = {"sha": HEAD, "repo": {"full_name": "fork/r"}}
    return {"pull_request": {"number": 5, "head": head, "base": {"sha": BASE}} | changes}


def test_a_pull_request_is_judged_on_its_merge_and_posted_on_its_head(tmp_path: Path) -> None:
    found = event(tmp_path, "pull_request", pull())
    assert (found.target.sha, found.target.pull) == (HEAD, 5)
    assert found.target.head_repository == "fork/r"
    assert found.baseline == f"{SHA}^1", "the base parent of the merge commit"
    assert found.target.run_id == "7.2"
    assert found.target.run_url == "https://github.com/o/r/actions/runs/7"


def test_a_source_repository_that_is_gone_is_no_fault(tmp_path: Path) -> None:
    found = event(tmp_path, "pull_request", pull(head={"sha": HEAD, "repo": None}))
    assert found.target.head_repository == ""


@pytest.mark.parametrize(
    ("name", "payload", "sha", "baseline"),
    [
        ("push", {"before": BASE}, SHA, BASE),
        ("push", {"before": "0" * 40}, SHA, None),
        ("merge_group", {"merge_group": {"head_sha": HEAD, "base_sha": BASE}}, HEAD, BASE),
        ("schedule", {"schedule": "0 3 * * *"}, SHA, None),
        ("workflow_dispatch", {}, SHA, None),
        ("workflow_run", {"workflow_run": {"head_sha": HEAD, "event": "push"}}, HEAD, None),
    ],
)
def test_each_event_has_its_commit_and_its_baseline(
    tmp_path: Path, name: str, payload: object, sha: str, baseline: str | None
) -> None:
    found = event(tmp_path, name, payload)
    assert (found.target.sha, found.target.pull, found.baseline) == (sha, None, baseline)


@pytest.mark.parametrize(
    ("name", "payload", "other"),
    [
        ("pull_request", pull(), ""),
        ("merge_group", {"merge_group": {"head_sha": HEAD, "base_sha": BASE}}, ""),
        ("workflow_run", {"workflow_run": {"head_sha": HEAD, "event": "pull_request"}}, ""),
        ("workflow_run", {"workflow_run": {"head_sha": HEAD, "event": "schedule"}}, "schedule"),
        ("push", {"before": BASE}, "push"),
        ("workflow_dispatch", {}, "workflow_dispatch"),
    ],
)
def test_what_judges_no_pull_request_is_told_apart(
    tmp_path: Path, name: str, payload: object, other: str
) -> None:
    found = event(tmp_path, name, payload).target
    assert found.other_event == other
    assert found.checkout == ("" if name == "workflow_run" else SHA)


def test_a_server_of_ones_own_is_spoken_to_where_it_is(tmp_path: Path) -> None:
    found = event(
        tmp_path, "workflow_dispatch", {}, GITHUB_API_URL="https://ghe.example/api/v3/",
        GITHUB_SERVER_URL="https://ghe.example",
    )  # fmt: skip
    assert found.target.api_url == "https://ghe.example/api/v3"
    assert found.target.run_url.startswith("https://ghe.example/o/r/")


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("pull_request", "{"),
        ("pull_request", "[" * 100_000),
        ("pull_request", "[]"),
        ("pull_request", "null"),
        ("pull_request", {"pull_request": 3}),
        ("pull_request", pull(number=0)),
        ("pull_request", pull(number=True)),
        ("pull_request", pull(number="5; rm -rf /")),
        ("pull_request", pull(head={"sha": "HEAD"})),
        ("pull_request", pull(head={"sha": HEAD, "repo": {"full_name": "../../x"}})),
        ("push", {"before": "--upload-pack=x"}),
        ("merge_group", {}),
        ("workflow_run", {"workflow_run": {"head_sha": HEAD, "event": "a b"}}),
    ],
)
def test_a_payload_that_is_no_such_event_is_refused_with_its_reason(
    tmp_path: Path, name: str, payload: object
) -> None:
    with pytest.raises(UsageError):
        event(tmp_path, name, payload)


def test_outside_a_workflow_nothing_can_be_posted() -> None:
    with pytest.raises(UsageError, match="this is no workflow run"):
        read_event({})


def test_a_comment_is_found_by_its_first_line_alone() -> None:
    marker = Marker("h100", HEAD, "2026-11-30T08:00:00+00:00")
    assert find(f"{marker}\ntext") == marker
    assert find(f"text\n{marker}") is None
    assert find("<!-- sns-gate name=a b sha=x at=y -->") is None
    assert is_name("h100.a-b_c")
    assert not is_name("a -->")
