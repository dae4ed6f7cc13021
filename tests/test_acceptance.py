"""Who may let a slower case pass: read from GitHub alone, and never the change's own author."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sns_gate.errors import ResultFileError
from sns_gate.github.acceptance import LABEL, Accepted, find_accepted
from sns_gate.github.client import Client
from sns_gate.github.event import Target
from sns_gate.github.message import of_result
from sns_gate.github.post import Wanted, post
from sns_gate.report import json as result_file
from sns_gate.report import markdown, words
from sns_gate.types import Acceptance, CaseResult, GateResult, Outcome, Verdict
from tests.fake_github import FakeGitHub
from tests.github_faults import Fault
from tests.test_report import case, result

BASE, HEAD, NEXT = "a" * 40, "b" * 40, "c" * 40
PULL = 7
SLOW = (
    case("softmax[n=4096]", Verdict.SLOWER, 0.9, 0.95, 0.97),
    case("softmax[n=4096] vs torch", Verdict.SLOWER, 0.9, 0.95, 0.97),
    case("gone", Verdict.REMOVED),
    case("add", Verdict.UNCHANGED, 0.99, 1.0, 1.01),
)
TRAILERS = 'accept = "trailer"\n'


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    """A pull request of ada's, with octavia and olaf who may write and eve who may not."""
    with FakeGitHub() as fake:
        fake.add_pull(PULL, HEAD, BASE, "ada")
        fake.permission("ada", "write")
        fake.permission("octavia", "write")
        fake.permission("eve", "read")
        yield fake
        assert not fake.violations


def target(fake: FakeGitHub, sha: str = HEAD, run: str = "1.1") -> Target:
    return Target(fake.url, fake.name, sha, PULL, run_id=run)


def checked(fake: FakeGitHub, found: GateResult, sha: str = HEAD, run: str = "1.1") -> Accepted:
    """One workflow run: what is accepted is read, then all is posted."""
    with Client(fake.url, fake.name, fake.token, timeout_s=0.3, sleep=lambda _: None) as client:
        accepted = find_accepted(found, target(fake, sha, run), "sns-gate", client)
        to = target(fake, sha, run)
        posted = post(of_result(accepted.result, to), to, Wanted(), client)
    assert not posted.failures
    return accepted


def test_a_label_by_somebody_else_who_may_write_after_the_first_check(hub: FakeGitHub) -> None:
    assert checked(hub, result(*SLOW)).result.conclusion == "failure"
    hub.label(PULL, LABEL, "octavia")
    hub.add_comment(PULL, "octavia", "Thanks!\n\nPerf-Accept: numerics come first")
    found = checked(hub, result(*SLOW), run="2.1").result
    assert (found.conclusion, found.exit_code, found.verdict) == ("success", 0, Outcome.PASS)
    assert {one.case for one in found.accepted} == {c.id for c in SLOW[:3]}
    assert {(one.by, one.how, one.reason) for one in found.accepted} == {
        ("octavia", "label", "numerics come first")
    }
    (comment,) = hub.comments_on(PULL)[:1]
    assert "Accepted by <code>octavia</code> (label)" in comment.body
    assert "numerics come first" in comment.body
    assert "slower, accepted" in comment.body
    assert "🟢 No case" not in comment.body
    assert list(hub.check_runs.values())[-1].conclusion == "success"


def by_author(fake: FakeGitHub) -> None:
    fake.label(PULL, LABEL, "ada")


def by_reader(fake: FakeGitHub) -> None:
    fake.label(PULL, LABEL, "eve")


def by_app(fake: FakeGitHub) -> None:
    fake.label(PULL, LABEL, "renovate[bot]")


def by_committer(fake: FakeGitHub) -> None:
    fake.add_commit(HEAD, "Faster", "octavia")
    fake.label(PULL, LABEL, "octavia")


def by_co_author(fake: FakeGitHub) -> None:
    said = "Faster\n\nCo-authored-by: Octavia <1+octavia@users.noreply.github.com>"
    fake.add_commit(HEAD, said, "ada")
    fake.label(PULL, LABEL, "octavia")


def taken_off(fake: FakeGitHub) -> None:
    fake.label(PULL, LABEL, "octavia")
    fake.unlabel(PULL, LABEL, "octavia")


def author_after_reviewer(fake: FakeGitHub) -> None:
    taken_off(fake)
    fake.label(PULL, LABEL, "ada")


def other_label(fake: FakeGitHub) -> None:
    fake.label(PULL, "perf", "octavia")


def own_word(fake: FakeGitHub) -> None:
    """A trailer where the baseline allows none, the candidate's file notwithstanding."""
    fake.add_commit(HEAD, f"Faster\n\nPerf-Accept: {SLOW[0].id} it is fine", "ada")
    fake.add_file(HEAD, "sns-gate.toml", TRAILERS)


def only_said(fake: FakeGitHub) -> None:
    fake.add_comment(PULL, "octavia", f"Perf-Accept: {SLOW[0].id} it is fine")


@pytest.mark.parametrize(
    "act",
    [by_author, by_reader, by_app, by_committer, by_co_author, taken_off,
     author_after_reviewer, other_label,
     own_word, only_said],
)  # fmt: skip
def test_what_accepts_nothing(hub: FakeGitHub, act: Callable[[FakeGitHub], None]) -> None:
    checked(hub, result(*SLOW))
    act(hub)
    found = checked(hub, result(*SLOW), run="2.1")
    assert found.result == result(*SLOW)
    assert list(hub.check_runs.values())[-1].conclusion == "failure"
    if act in (by_author, by_reader, by_app, by_committer, author_after_reviewer):
        assert "does not count" in found.notes[0]


def test_a_label_from_before_the_numbers_could_be_seen_does_not_count(hub: FakeGitHub) -> None:
    hub.label(PULL, LABEL, "octavia")
    first = checked(hub, result(*SLOW))
    assert first.result.conclusion == "failure"
    assert "set it again" in first.notes[0]


def test_a_push_after_the_label_has_to_be_accepted_again(hub: FakeGitHub) -> None:
    checked(hub, result(*SLOW))
    hub.label(PULL, LABEL, "octavia")
    hub.push(PULL, NEXT)
    assert checked(hub, result(*SLOW), NEXT, "2.1").result.conclusion == "failure"
    hub.unlabel(PULL, LABEL, "octavia")
    hub.label(PULL, LABEL, "octavia")
    assert checked(hub, result(*SLOW), NEXT, "3.1").result.conclusion == "success"


def test_a_commit_that_comes_back_is_not_covered_by_a_label_on_another(hub: FakeGitHub) -> None:
    """Checked, taken back, and pushed again once the label is there."""
    hub.push(PULL, NEXT)
    checked(hub, result(*SLOW), NEXT)
    hub.pulls[PULL].commits, hub.pulls[PULL].head_sha = [HEAD], HEAD  # taken back
    checked(hub, result(*SLOW), HEAD, "2.1")
    hub.label(PULL, LABEL, "octavia")
    assert checked(hub, result(*SLOW), HEAD, "3.1").result.conclusion == "success"
    hub.push(PULL, NEXT)
    late = checked(hub, result(*SLOW), NEXT, "4.1")
    assert late.result.conclusion == "failure"
    assert "another commit had been checked last" in late.notes[0]


def test_a_head_put_in_anothers_place_has_to_be_accepted_again(hub: FakeGitHub) -> None:
    checked(hub, result(*SLOW))
    hub.label(PULL, LABEL, "octavia")
    hub.push(PULL, HEAD, force=True)
    assert checked(hub, result(*SLOW), run="2.1").result.conclusion == "failure"


def test_a_check_that_did_not_finish_shows_nobody_any_numbers(hub: FakeGitHub) -> None:
    checked(hub, result(*SLOW[:1], complete=False))
    hub.label(PULL, LABEL, "octavia")
    assert checked(hub, result(*SLOW), run="2.1").result.conclusion == "failure"


def test_a_job_of_our_checks_name_shows_nobody_any_numbers(hub: FakeGitHub) -> None:
    """A pull request can add such a job; GitHub gives its check an id of its own."""
    with Client(hub.url, hub.name, hub.token, sleep=lambda _: None) as client:
        decoy = {
            "name": "sns-gate",
            "head_sha": HEAD,
            "status": "completed",
            "output": None,
            "conclusion": "failure",
            "external_id": "ca395085-040a-526b-2ce8-bdc85f692774",
        }
        client.create("/check-runs", {key: value for key, value in decoy.items() if value})
    hub.label(PULL, LABEL, "octavia")
    found = checked(hub, result(*SLOW))
    assert found.result.conclusion == "failure"
    assert "nobody had seen" in found.notes[0]


def test_a_label_set_after_a_pass_accepts_nothing_that_only_a_later_run_found(
    hub: FakeGitHub,
) -> None:
    checked(hub, result(SLOW[-1]))
    hub.label(PULL, LABEL, "octavia")
    found = checked(hub, result(*SLOW), run="2.1")
    assert found.result.conclusion == "failure"
    assert "what is slower now was not seen" in found.notes[0]


def test_where_it_is_not_known_who_wrote_a_commit_no_label_counts(hub: FakeGitHub) -> None:
    hub.add_commit(HEAD, "Faster", None)
    checked(hub, result(*SLOW))
    hub.label(PULL, LABEL, "octavia")
    found = checked(hub, result(*SLOW), run="2.1")
    assert found.result.conclusion == "failure"
    assert "no account that GitHub knows" in found.notes[0]


@pytest.mark.parametrize(
    "kept",
    [
        case("b", Verdict.BROKEN, broken_sides=("candidate",)),
        case("w", Verdict.WRONG),
        case("r", Verdict.REFUSED),
    ],
)
def test_what_could_not_be_judged_is_nobodys_to_accept(hub: FakeGitHub, kept: CaseResult) -> None:
    checked(hub, result(*SLOW, kept))
    hub.label(PULL, LABEL, "octavia")
    found = checked(hub, result(*SLOW, kept), run="2.1").result
    assert found.conclusion == "failure"
    assert found.exit_code == result(kept).exit_code


def test_what_is_left_ends_as_the_policy_says(hub: FakeGitHub) -> None:
    wide = case("wide", Verdict.INCONCLUSIVE, 0.9, 1.0, 1.2, note="too wide")
    checked(hub, result(*SLOW, wide))
    hub.label(PULL, LABEL, "octavia")
    found = checked(hub, result(*SLOW, wide), run="2.1").result
    assert (found.conclusion, found.exit_code) == ("neutral", 4)
    strict = result(*SLOW, wide, on_inconclusive="failure")
    assert checked(hub, strict, run="3.1").result.conclusion == "failure"


def test_where_all_that_is_left_was_removed_nothing_was_compared(hub: FakeGitHub) -> None:
    gone = result(case("gone", Verdict.REMOVED))
    checked(hub, gone)
    hub.label(PULL, LABEL, "octavia")
    found = checked(hub, gone, run="2.1").result
    assert (found.conclusion, found.exit_code) == ("failure", 5)


def test_an_unfinished_check_is_not_accepted(hub: FakeGitHub) -> None:
    cut = result(*SLOW, complete=False)
    checked(hub, cut)
    hub.label(PULL, LABEL, "octavia")
    assert not checked(hub, cut, run="2.1").result.accepted


@pytest.mark.parametrize("file", ["sns-gate.toml", "pyproject.toml"])
def test_trailers_count_where_the_baseline_allows_them(hub: FakeGitHub, file: str) -> None:
    table = "[tool.sns-gate]\n" if file == "pyproject.toml" else ""
    hub.add_file(BASE, file, table + TRAILERS)
    said = (
        f"Rework\n\nPerf-Accept: {SLOW[0].id} better numerics\n"
        f"Perf-Accept: {SLOW[1].id}\nPerf-Accept: nosuch it is not there\n"
    )
    hub.add_commit(HEAD, said, "ada")
    found = checked(hub, result(*SLOW)).result
    assert found.accepted == (
        Acceptance(case=SLOW[0].id, by="ada", how="trailer", reason="better numerics"),
    )
    assert found.conclusion == "failure", "the others are not accepted"


def test_a_trailer_accepts_the_longest_id_that_it_names(hub: FakeGitHub) -> None:
    hub.add_file(BASE, "sns-gate.toml", TRAILERS)
    hub.add_commit(HEAD, f"x\n\nPerf-Accept: {SLOW[1].id} both", "ada")
    assert [one.case for one in checked(hub, result(*SLOW)).result.accepted] == [SLOW[1].id]


def test_nobody_accepts_where_the_baseline_says_so(hub: FakeGitHub) -> None:
    hub.add_file(BASE, "sns-gate.toml", 'accept = "nobody"\n')
    hub.add_file(HEAD, "sns-gate.toml", TRAILERS)
    checked(hub, result(*SLOW))
    hub.label(PULL, LABEL, "octavia")
    assert checked(hub, result(*SLOW), run="2.1").result.conclusion == "failure"


def test_settings_that_cannot_be_read_accept_nothing(hub: FakeGitHub) -> None:
    checked(hub, result(*SLOW))
    hub.label(PULL, LABEL, "octavia")
    hub.add_file(BASE, "sns-gate.toml", "accept = [")
    found = checked(hub, result(*SLOW), run="2.1")
    assert found.result.conclusion == "failure"
    assert "the baseline's sns-gate.toml is not valid TOML" in found.notes[0]


@pytest.mark.parametrize(
    "part", ["/pulls/7", "/contents/", "/commits", "/events", "/check-runs", "/permission"]
)
@pytest.mark.parametrize("fault", [403, 500, "cut short"])
def test_where_github_does_not_say_nothing_counts_as_accepted(
    hub: FakeGitHub, part: str, fault: int | Fault
) -> None:
    checked(hub, result(*SLOW))
    hub.label(PULL, LABEL, "octavia")
    hub.fail("GET", part, fault, times=99)
    with Client(hub.url, hub.name, hub.token, timeout_s=0.3, sleep=lambda _: None) as client:
        found = find_accepted(result(*SLOW), target(hub), "sns-gate", client)
    assert found.result == result(*SLOW)
    assert "as GitHub does not say" in found.notes[0]


def test_a_file_cannot_say_who_accepts(tmp_path: Path) -> None:
    claims = result(*SLOW).model_copy(
        update={"accepted": (Acceptance(case="gone", by="octavia", how="label"),)}
    )
    (tmp_path / "result.json").write_text(claims.model_dump_json())
    with pytest.raises(ResultFileError, match="read from GitHub alone"):
        result_file.read(tmp_path / "result.json")


def test_what_they_say_does_not_act_in_the_comment() -> None:
    said = Acceptance(case="gone", by="<b>@all</b>", how="label", reason="](https://x) @here | \n#")
    found = result(*SLOW).model_copy(update={"accepted": (said,)})
    text = markdown.comment(found)
    assert "@all" not in text
    assert "@here" not in text
    assert "](https" not in text
    assert words.headline(found).endswith("; 1 accepted.")
