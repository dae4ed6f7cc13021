"""Posting to a GitHub that checks what it is asked, and fails on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sns_gate.errors import PostDenied, PostUnreachable
from sns_gate.github.client import Client
from sns_gate.github.event import Target
from sns_gate.github.message import of_result
from sns_gate.github.post import Posted, Wanted, post
from sns_gate.github.pulls import locate
from sns_gate.types import CaseResult, GateResult, RevisionInfo, Verdict
from tests.fake_github import FakeGitHub
from tests.github_faults import SECONDARY_LIMIT, Fault
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
