"""Posting to a GitHub that checks what it is asked, and fails on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sns_gate.errors import PostDenied, PostUnreachable
from sns_gate.github.client import Client
from sns_gate.github.event import Target
from sns_gate.github.message import of_result
from sns_gate.github.post import Posted, Wanted, post
from sns_gate.github.pulls import locate
from sns_gate.types import CaseResult, GateResult, RevisionInfo, Verdict
from tests.conftest import Ran, sns_gate
from tests.fake_github import FakeGitHub
from tests.github_faults import SECONDARY_LIMIT, Fault
from tests.github_state import Commit
from tests.test_report import CASES, case, result

BASE, HEAD, NEXT = "a" * 40, "b" * 40, "c" * 40
PULL = 7
ALL = Wanted(status=True)
PLACED: dict[str, Any] = {"file": "benchmarks/bench_x.py", "line": 12}
MERGED = "d" * 40
JUDGED = RevisionInfo(ref="working tree", commit=NEXT)
FOUND = result(*CASES, case("placed", Verdict.SLOWER, 0.9, 0.95, 0.97, **PLACED), candidate=JUDGED)


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        fake.add_pull(PULL, HEAD, BASE, "ada")
        yield fake
        assert not fake.violations


def told(
    fake: FakeGitHub, found: GateResult = FOUND, wanted: Wanted = ALL, *,
    token: str = "", target: Target | None = None, waits: list[float] | None = None,
) -> Posted:  # fmt: skip
    """Post, without waiting in earnest."""
    target = target or Target(fake.url, fake.name, HEAD, PULL, run_id="1.1", run_url="https://x/1")
    slept = waits if waits is not None else []
    with Client(
        fake.url, fake.name, token or fake.token, timeout_s=0.3, sleep=slept.append
    ) as client:
        located, problem = locate(target, client)
        posted = post(of_result(found, located), located, wanted, client)
        return replace(posted, failures=(*problem, *posted.failures))


def ours(fake: FakeGitHub) -> list[str]:
    """The bodies of our comments."""
    return [c.body for c in fake.comments_on(PULL) if c.body.startswith("<!-- sns-gate ")]


def complete(fake: FakeGitHub) -> bool:
    """Whether there is one comment, one complete check run and a status."""
    runs = list(fake.check_runs.values())
    return (len(ours(fake)), len(runs), bool(fake.statuses)) == (1, 1, True)


def test_one_comment_one_check_run_and_one_status_on_the_head(hub: FakeGitHub) -> None:
    posted = told(hub)
    assert not posted.failures
    assert complete(hub)
    assert len(hub.statuses) == 1
    (run,) = hub.check_runs.values()
    assert run.head_sha == HEAD
    assert posted.comment_url.startswith("https://")
    assert posted.check_url.startswith("https://")
    assert "cases are slower than" in ours(hub)[0]


def test_a_second_check_edits_the_comment_of_the_first(hub: FakeGitHub) -> None:
    told(hub)
    second = FOUND.model_copy(update={"started_at": "2026-01-02T00:00:00+00:00", "seed": 4711})
    told(hub, second, target=Target(hub.url, hub.name, HEAD, PULL, run_id="2.1"))
    assert len(ours(hub)) == 1
    assert "seed 4711" in ours(hub)[0]
    assert len(hub.check_runs) == 2, "each run has its own check"


def test_the_same_run_posts_its_check_once_however_often_it_is_asked(hub: FakeGitHub) -> None:
    told(hub)
    told(hub)
    assert complete(hub)


def test_names_keep_comments_apart(hub: FakeGitHub) -> None:
    told(hub, wanted=Wanted(name="h100"))
    told(hub, wanted=Wanted(name="mi300"))
    assert len(ours(hub)) == 2


def test_ours_is_found_on_the_third_page_of_two_hundred_and_fifty_comments(hub: FakeGitHub) -> None:
    hub.add_comments(PULL, 220, "ada")
    told(hub)
    hub.add_comments(PULL, 30, "ada")
    told(hub, FOUND.model_copy(update={"seed": 4711}))
    assert len(ours(hub)) == 1
    assert "seed 4711" in ours(hub)[0]


def test_a_marker_in_somebody_elses_comment_is_not_ours(hub: FakeGitHub) -> None:
    forged = hub.add_comment(
        PULL, "mallory", f"<!-- sns-gate name=sns-gate sha={HEAD} at=9 -->\nhi"
    )
    told(hub)
    assert len(ours(hub)) == 2
    assert hub.comments[forged.id].body.endswith("hi")


def test_a_pull_request_that_has_moved_on_keeps_its_comment(hub: FakeGitHub) -> None:
    told(hub)
    hub.push(PULL, NEXT)
    told(hub, FOUND, target=Target(hub.url, hub.name, NEXT, PULL, run_id="2.1"))
    before = ours(hub)
    late = told(hub, FOUND.model_copy(update={"seed": 4711}))
    assert ours(hub) == before
    assert "#7 has moved on to ccccccccc" in late.notes[0]


def test_it_moves_on_while_we_post(hub: FakeGitHub) -> None:
    hub.fail("GET", "/comments", 502, times=1)
    hub.meanwhile("GET", "/comments", lambda: hub.push(PULL, NEXT))
    posted = told(hub, wanted=Wanted(check=False))
    assert len(ours(hub)) <= 1
    assert posted.notes or ours(hub)


def test_a_later_check_of_the_same_commit_is_not_overwritten(hub: FakeGitHub) -> None:
    later = FOUND.model_copy(update={"started_at": "2026-01-03T00:00:00+00:00", "seed": 99})
    told(hub, later)
    posted = told(hub, FOUND)
    assert "seed 99" in ours(hub)[0]
    assert "is of a later check" in posted.notes[-1]


def test_the_pull_request_of_a_commit_is_asked_of_github(hub: FakeGitHub) -> None:
    hub.add_pull(8, NEXT, BASE, "eve", head_repo="eve/kernels")
    target = Target(hub.url, hub.name, NEXT, head_repository="eve/kernels", run_id="3.1")
    told(hub, target=target)
    assert [c.body[:13] for c in hub.comments_on(8)] == ["<!-- sns-gate"]
    other = told(hub, target=replace(target, head_repository="mallory/kernels"))
    assert "no open pull request" in other.notes[0]


def test_of_two_pull_requests_with_one_head_none_is_taken(hub: FakeGitHub) -> None:
    """Else a change could open the second one into a base whose settings suit it."""
    hub.add_pull(8, HEAD, BASE, "ada")
    posted = told(hub, target=Target(hub.url, hub.name, HEAD, run_id="3.1"))
    assert not ours(hub)
    assert not hub.comments_on(8)
    assert len(hub.check_runs) == 1
    assert "#7 and #8 have the head bbbbbbbbb" in posted.notes[0]


def test_a_run_by_hand_stands_for_no_pull_request(hub: FakeGitHub) -> None:
    told(hub)
    by_hand = Target(hub.url, hub.name, HEAD, other_event="workflow_dispatch", run_id="2.1")
    posted = told(hub, result(CASES[0]), target=by_hand)
    names = [(run.name, run.conclusion) for run in hub.check_runs.values()]
    assert names == [("sns-gate", "failure"), ("sns-gate (workflow_dispatch)", "success")]
    assert [status.context for status in hub.statuses] == [name for name, _ in names]
    assert len(ours(hub)) == 1
    assert "slower" in ours(hub)[0]
    assert "judges no pull request" in posted.notes[0]


def test_a_comment_that_was_made_and_not_seen_at_once_stays_the_only_one(hub: FakeGitHub) -> None:
    hub.fail("POST", "/comments", "timeout", applied=True)
    hub.fail("GET", "/issues/7/comments", 200, after=1, body=[])
    told(hub)
    assert len(ours(hub)) == 1


def test_a_comment_by_another_author_than_told_is_said(hub: FakeGitHub) -> None:
    posted = told(hub, token=hub.add_token("perf-bot[bot]"))
    assert "set the input 'author' to 'perf-bot[bot]'" in str(posted.failures[-1])
    told(hub, token=hub.add_token("perf-bot[bot]"), wanted=Wanted(author="perf-bot[bot]"))
    assert len(ours(hub)) == 1


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("fault", ["timeout", 502, "broken json"])
def test_annotations_are_sent_once_whatever_github_answers(
    hub: FakeGitHub, fault: Fault, *, first: bool
) -> None:
    cases = [case(f"case{n}", Verdict.SLOWER, 0.9, 0.95, 0.97, **PLACED) for n in range(120)]
    hub.fail("POST" if first else "PATCH", "/check-runs", fault, applied=True)
    told(hub, result(*cases))
    told(hub, result(*cases))
    (run,) = hub.check_runs.values()
    assert [a["title"] for a in run.annotations] == [f"case{n}: slower" for n in range(120)]


def test_more_annotations_than_a_request_takes_are_sent_in_parts(hub: FakeGitHub) -> None:
    cases: list[CaseResult] = [
        case(f"case{n}", Verdict.SLOWER, 0.9, 0.95, 0.97, **PLACED) for n in range(120)
    ]
    told(hub, result(*cases))
    (run,) = hub.check_runs.values()
    assert len(run.annotations) == 120
    assert all(a["path"] == "benchmarks/bench_x.py" for a in run.annotations)


def test_a_forks_token_may_not_write_and_the_message_says_what_it_takes(hub: FakeGitHub) -> None:
    posted = told(hub, token=hub.fork_token)
    assert len(posted.failures) == 3
    assert all(isinstance(failure, PostDenied) for failure in posted.failures)
    assert "'pull-requests: write'" in str(posted.failures[0])
    assert not ours(hub)
    assert not hub.check_runs


def test_limits_are_waited_for_as_github_says(hub: FakeGitHub) -> None:
    waits: list[float] = []
    hub.fail("POST", "/comments", 403, headers={"retry-after": "7"})
    hub.fail("POST", "/check-runs", 429, headers={"retry-after": "3"})
    told(hub, waits=waits)
    assert {7.0, 3.0} <= set(waits)
    assert complete(hub)


def test_a_burst_too_many_is_waited_for_though_only_its_words_say_so(hub: FakeGitHub) -> None:
    waits: list[float] = []
    hub.fail("POST", "/comments", 403, body={"message": SECONDARY_LIMIT})
    assert not told(hub, waits=waits).failures
    assert 60.0 in waits
    assert complete(hub)


def test_a_repository_that_is_elsewhere_now_has_nothing_posted(hub: FakeGitHub) -> None:
    hub.fail("POST", ".", 307, times=99, body={"message": "Moved Permanently"})
    posted = told(hub)
    assert len(posted.failures) == 3
    assert "was renamed or moved" in str(posted.failures[0])


def test_what_github_asks_for_is_said_as_it_says_it(hub: FakeGitHub) -> None:
    headers = {"x-accepted-github-permissions": "statuses=write"}
    hub.fail("POST", "/statuses", 403, times=9, headers=headers)
    assert "GitHub asks for 'statuses=write'" in str(told(hub).failures[0])


def test_a_wait_longer_than_a_job_should_is_not_waited(hub: FakeGitHub) -> None:
    hub.fail("POST", "/comments", 403, times=9, headers={"retry-after": "3000"})
    posted = told(hub)
    assert not ours(hub)
    assert "GitHub asks to wait 3000 s" in str(posted.failures[-1])


TRANSIENT: tuple[Fault, ...] = ("timeout", "reset", 500, 502, "broken json", "cut short", "html")
LASTING: tuple[Fault, ...] = (401, 403, 404, 422)
REQUESTS = (
    ("GET", "/pulls/7$"),
    ("GET", "/comments"),
    ("POST", "/comments"),
    ("GET", "/check-runs"),
    ("POST", "/check-runs"),
    ("POST", "/statuses"),
)


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize("fault", TRANSIENT)
def test_no_passing_fault_at_any_request_posts_twice_or_loses_anything(
    hub: FakeGitHub, fault: Fault, method: str, path: str, *, applied: bool
) -> None:
    hub.fail(method, path, fault, applied=applied)
    posted = told(hub)
    assert not posted.failures
    assert complete(hub)


@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize("fault", LASTING)
def test_a_lasting_fault_at_any_request_leaves_the_rest_posted_and_says_why(
    hub: FakeGitHub, fault: Fault, method: str, path: str
) -> None:
    hub.fail(method, path, fault, times=99)
    posted = told(hub)
    assert len(posted.failures) == 1
    assert isinstance(posted.failures[0], PostDenied)
    assert len(ours(hub)) <= 1
    assert len(hub.check_runs) <= 1
    assert len(ours(hub)) + len(hub.check_runs) + len(hub.statuses) == 2


def test_a_github_that_stays_away_is_given_up_without_a_duplicate(hub: FakeGitHub) -> None:
    hub.fail("POST", ".", 502, times=99, applied=True)
    posted = told(hub)
    assert len(ours(hub)) <= 1
    assert len(hub.check_runs) <= 1
    assert all(isinstance(failure, PostUnreachable) for failure in posted.failures)


# ----------------------------------------------------------------------- the command


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
    base = FOUND.model_copy(update={"candidate": RevisionInfo(ref="x", commit=NEXT)})
    assert command(hub, tmp_path, found=base, event={"workflow_run": run}, **told_of).code == 2


def test_where_nothing_was_measured_a_check_says_so(hub: FakeGitHub, tmp_path: Path) -> None:
    ran = command(hub, tmp_path, "--missing-fails", written="-")
    assert ran.code == 3, ran.err
    (run,) = hub.check_runs.values()
    assert (run.conclusion, run.title) == ("failure", "no result")
    assert "no pass" in ours(hub)[0]
    assert "no pass" in (tmp_path / "summary.md").read_text()
    assert command(hub, tmp_path, written="-").code == 2


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
