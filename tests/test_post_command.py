"""The command that posts, as a step of a workflow runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sns_gate.github.event import Target
from sns_gate.types import GateResult, RevisionInfo, Verdict
from tests.conftest import Ran, sns_gate
from tests.fake_github import FakeGitHub
from tests.github_faults import Fault
from tests.github_state import Commit
from tests.test_post import (
    BASE,
    FOUND,
    HEAD,
    JUDGED,
    LASTING,
    MERGED,
    NEXT,
    PLACED,
    PULL,
    TRANSIENT,
    hub,
    ours,
    told,
)
from tests.test_report import CASES, case, result

__all__ = ["hub"]


def command(
    fake: FakeGitHub, folder: Path, *arguments: str, found: GateResult = FOUND,
    written: str = "", event: object = None, **more: str,
) -> Ran:  # fmt: skip
    """``sns-gate post`` as a step of a workflow runs it; a file of a dash alone is none."""
    text = written or found.model_dump_json()
    (folder / "found.json").unlink(missing_ok=True)
    if text != "-":
        (folder / "found.json").write_text(text, encoding="utf-8")
    head = {"sha": HEAD, "repo": {"full_name": fake.name}}
    event = event or {"pull_request": {"number": PULL, "head": head}}
    (folder / "event.json").write_text(json.dumps(event), encoding="utf-8")
    variables = {
        "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": fake.name, "GITHUB_SHA": NEXT, "GITHUB_API_URL": fake.url,
        "GITHUB_RUN_ID": "1", "GITHUB_TOKEN": fake.token,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_OUTPUT": str(folder / "output"),
    }  # fmt: skip
    return sns_gate(folder, "post", "found.json", *arguments, **(variables | more))


def test_the_step_fails_with_the_check_and_sets_its_outputs(
    hub: FakeGitHub, tmp_path: Path
) -> None:
    ran = command(hub, tmp_path)
    assert ran.code == 1, ran.out + ran.err
    assert len(ours(hub)) == 1
    outputs = dict(
        line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines() if line
    )
    assert outputs["verdict"] == "fail"
    assert outputs["slower"] == "3"
    assert outputs["comment-url"].startswith("https://")
    assert "cases are slower" in (tmp_path / "summary.md").read_text()
    assert "::error file=benchmarks/bench_x.py,line=12,title=placed%3A slower::" in ran.out


@pytest.mark.parametrize("commit", [BASE, "../../rate_limit", None])
def test_a_result_of_another_commit_is_not_posted(
    hub: FakeGitHub, tmp_path: Path, commit: str | None
) -> None:
    """It lay in the tree, or an earlier job left it where this one's failed."""
    other = FOUND.model_copy(update={"candidate": RevisionInfo(ref="x", commit=commit)})
    ran = command(hub, tmp_path, found=other)
    assert ran.code == 2
    assert "says nothing of it and nothing was posted" in ran.err
    assert not ours(hub)
    assert not hub.check_runs


@pytest.mark.parametrize(("parents", "code"), [([BASE, HEAD], 1), ([HEAD, BASE], 2)])
def test_another_workflows_result_is_of_the_head_or_of_what_github_merged_it_into(
    hub: FakeGitHub, tmp_path: Path, parents: list[str], code: int
) -> None:
    hub.commits[MERGED] = Commit(MERGED, "Merge", None, hub.tick(), parents)
    run = {"head_sha": HEAD, "event": "pull_request", "head_repository": {"full_name": hub.name}}
    merged = FOUND.model_copy(update={"candidate": RevisionInfo(ref="x", commit=MERGED)})
    told_of = {"GITHUB_EVENT_NAME": "workflow_run"}
    ran = command(hub, tmp_path, found=merged, event={"workflow_run": run}, **told_of)
    assert ran.code == code, ran.err
    assert len(ours(hub)) == len(hub.check_runs) == (code == 1)
    for commit in (NEXT, None):
        base = FOUND.model_copy(update={"candidate": RevisionInfo(ref="x", commit=commit)})
        ran = command(hub, tmp_path, found=base, event={"workflow_run": run}, **told_of)
        assert ran.code == 2


def test_where_nothing_was_measured_a_check_says_so(hub: FakeGitHub, tmp_path: Path) -> None:
    ran = command(hub, tmp_path, "--missing-fails", written="-")
    assert ran.code == 3, ran.err
    (run,) = hub.check_runs.values()
    assert (run.conclusion, run.title) == ("failure", "no result")
    assert "no pass" in ours(hub)[0]
    assert "no pass" in (tmp_path / "summary.md").read_text()
    assert command(hub, tmp_path, written="-").code == 2


def test_a_result_takes_the_place_of_its_lack_and_not_the_other_way(
    hub: FakeGitHub, tmp_path: Path
) -> None:
    """A run that was cancelled may post after the one that took its place has begun."""
    command(hub, tmp_path, "--missing-fails", written="-")
    command(hub, tmp_path, GITHUB_RUN_ID="2")
    assert "slower than" in ours(hub)[0]
    ran = command(hub, tmp_path, "--missing-fails", written="-", GITHUB_RUN_ID="3")
    assert ran.code == 3
    assert len(ours(hub)) == 1
    assert "slower than" in ours(hub)[0]
    assert list(hub.check_runs.values())[-1].conclusion == "failure"


def test_a_name_that_no_comment_is_found_by_is_refused(hub: FakeGitHub, tmp_path: Path) -> None:
    ran = command(hub, tmp_path, "--name", "gate (H100)")
    assert ran.code == 2
    assert "no name that a comment is found again by" in ran.err


def test_a_step_whose_check_passes_passes(hub: FakeGitHub, tmp_path: Path) -> None:
    passing = result(CASES[0], candidate=JUDGED)
    assert command(hub, tmp_path, found=passing).code == 0


def test_without_a_token_the_summary_is_written_and_the_step_says_what_is_missing(
    hub: FakeGitHub, tmp_path: Path
) -> None:
    ran = command(hub, tmp_path, GITHUB_TOKEN="")
    assert ran.code == 2
    assert "GITHUB_TOKEN is not set" in ran.err
    assert "cases are slower" in (tmp_path / "summary.md").read_text()
    assert not hub.requests


def test_a_dry_run_sends_nothing_and_shows_everything(hub: FakeGitHub, tmp_path: Path) -> None:
    ran = command(hub, tmp_path, "--dry-run")
    assert ran.code == 0
    assert "conclusion: failure" in ran.out
    assert "cases are slower" in ran.out
    assert not hub.requests


def test_a_failure_to_post_is_said_in_one_line_and_the_result_stays(
    hub: FakeGitHub, tmp_path: Path
) -> None:
    ran = command(hub, tmp_path, GITHUB_TOKEN="unknown")  # noqa: S106 (no secret: it is to be refused)
    assert ran.code == 2
    assert "not posted: GitHub refused" in ran.err
    assert "Traceback" not in ran.err
    assert (tmp_path / "found.json").exists()


def edited(text: str, **changes: object) -> str:
    return json.dumps(json.loads(text) | changes)


@pytest.mark.parametrize(
    "hostile",
    [
        lambda text: text.replace('"low":0.9673', '"low":1e400'),
        lambda text: text.replace('"low":0.9673', '"low":-1'),
        lambda text: text.replace('"seed":0', '"seed":' + "[" * 100_000),
        lambda text: text.replace('"exit_code":1', '"exit_code":0'),
        lambda text: text.replace('"verdict":"slower"', '"verdict":"unchanged"'),
        lambda text: edited(text, conclusion="success"),
        lambda text: edited(text, conclusion="success", verdict="pass", exit_code=0,
                            disclosures=[{"code": "policy-success", "text": "so it is"}]),
        lambda text: edited(text, conclusion="success", exit_code=5, cases=[]),
        lambda text: edited(text, conclusion="success", exit_code=3, cases=[], complete=False),
        lambda text: edited(text, verdict="pass", exit_code=3, cases=[], complete=False),
        lambda text: edited(text, cases=2 * json.loads(text)["cases"]),
        lambda text: text.replace('"tier":"B"', '"tier":"C"'),
        lambda text: text.replace('"tier":"B"', '"tier":null'),
        lambda text: edited(text, started_at="9999-01-01T00:00:00+00:00"),
        lambda text: edited(text, started_at="2026-99-01T00:00:00+00:00"),
        lambda text: edited(text, started_at="x -->\n\n# Approved\n<!--"),
        lambda text: text.replace('"code":"', '"code":"x)\\n\\n# Merged '),
        lambda text: text[: len(text) // 2],
        lambda text: text + " " * (97 << 20),
        lambda _: "\x00\xff",
    ],
)  # fmt: skip
def test_a_hostile_result_is_refused_and_nothing_is_posted(
    hub: FakeGitHub, tmp_path: Path, hostile: Callable[[str], str]
) -> None:
    text = FOUND.model_dump_json()
    changed = hostile(text)
    assert changed != text
    ran = command(hub, tmp_path, written=changed)
    assert ran.code == 2, ran.out + ran.err
    assert "found.json" in ran.err or "is not believed" in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err) < 2000
    assert not hub.requests


def test_a_result_says_nothing_of_where_it_is_posted() -> None:
    """The pull request and the repository come from the event alone."""
    schema = GateResult.model_json_schema()
    fields = {
        name for one in (schema, *schema["$defs"].values()) for name in one.get("properties", ())
    }
    assert "started_at" in fields
    assert not any("pull" in name or "repository" in name for name in fields)


def test_workflow_commands_cannot_be_forged_by_names(hub: FakeGitHub, tmp_path: Path) -> None:
    name = "x\n::set-output name=a::b\r::error::y%0A::add-mask::z"
    hostile = case(name, Verdict.SLOWER, 0.9, 0.95, 0.97, **PLACED)
    ran = command(hub, tmp_path, found=result(hostile))
    commands = [line for line in ran.out.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=benchmarks/bench_x.py,line=12,title=x ")
    assert "%0A" not in commands[0].replace("%250A", "")


@pytest.mark.parametrize("fault", [*LASTING, *TRANSIENT])
def test_where_the_pull_request_cannot_be_found_the_rest_is_posted(
    hub: FakeGitHub, fault: Fault
) -> None:
    hub.fail("GET", "/pulls$", fault, times=99)
    target = Target(hub.url, hub.name, HEAD, None, run_id="1.1")
    posted = told(hub, target=target)
    assert posted.failures
    assert len(hub.check_runs) == 1
    assert not ours(hub)
