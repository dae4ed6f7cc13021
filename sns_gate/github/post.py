"""Tells GitHub of a result: one comment a name, one check run, perhaps a status; never twice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sns_gate.errors import PostError, PostUnreachable
from sns_gate.github.client import Api
from sns_gate.github.event import Target
from sns_gate.github.marker import Marker, check_id, find
from sns_gate.plain import plain
from sns_gate.report import markdown, words
from sns_gate.types import CaseResult, GateResult, Verdict

ACTIONS_BOT = "github-actions[bot]"
_TRIES = 4
_ANNOTATIONS_A_REQUEST = 50
_MOST_DESCRIPTION = 140
_ANNOTATED = {
    Verdict.SLOWER: "failure",
    Verdict.WRONG: "failure",
    Verdict.BROKEN: "failure",
    Verdict.REFUSED: "warning",
    Verdict.INCONCLUSIVE: "notice",
}


@dataclass(frozen=True)
class Wanted:
    """What to post.

    Attributes:
        name: of comment, check and status; one of each a name.
        author: login that our comments have.
        comment: whether to comment on the pull request.
        check: whether to create a check run.
        status: whether to set a commit status.
    """

    name: str = "sns-gate"
    author: str = ACTIONS_BOT
    comment: bool = True
    check: bool = True
    status: bool = False


@dataclass(frozen=True)
class Posted:
    """What was posted, and what was not and why.

    Attributes:
        comment_url: of the comment, empty where there is none.
        check_url: of the check run, likewise.
        notes: for the log: what was left alone.
        failures: what GitHub would not take; the measurement is untouched.
    """

    comment_url: str = ""
    check_url: str = ""
    notes: tuple[str, ...] = ()
    failures: tuple[PostError, ...] = ()


def post(result: GateResult, target: Target, wanted: Wanted, api: Api) -> Posted:
    """Post everything that is wanted; what fails does not keep the rest from being posted.

    Args:
        result: of a check.
        target: where it goes, its pull request found.
        wanted: what to post.
        api: of the target's repository.
    """
    posted = Posted()
    steps: list[Callable[[Posted], Posted]] = []
    if wanted.check:
        steps.append(lambda so_far: _check(so_far, result, target, wanted, api))
    if wanted.status:
        steps.append(lambda so_far: _status(so_far, result, target, wanted, api))
    if wanted.comment:
        steps.append(lambda so_far: _comment(so_far, result, target, wanted, api))
    for step in steps:
        try:
            posted = step(posted)
        except PostError as error:
            posted = replace(posted, failures=(*posted.failures, error))
    return posted


def _looking_again(attempt: Callable[[], Posted]) -> Posted:
    """An attempt that looks at what is there before it writes, again while it is not known."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(PostUnreachable):
            return attempt()
    return attempt()


def _comment(
    posted: Posted, result: GateResult, target: Target, wanted: Wanted, api: Api
) -> Posted:
    pull = target.pull
    if pull is None:
        return _noted(posted, f"no open pull request has the head {target.sha[:9]}: no comment")
    marker = Marker(wanted.name, target.sha, result.started_at)
    body = f"{marker}\n{markdown.comment(result, run_url=target.run_url)}"

    def attempt() -> Posted:
        head = str(api.get(f"/pulls/{pull}")["head"]["sha"])
        if head != target.sha:
            return _noted(posted, f"#{pull} has moved on to {head[:9]}, whose comment it is to be")
        ours = _ours(pull, wanted, api)
        if ours is not None and _newer(ours, marker):
            return _noted(posted, f"the comment on #{pull} is of a later check and stays")
        if ours is not None:
            made = api.change(f"/issues/comments/{ours['id']}", {"body": body})
        else:
            made = api.create(f"/issues/{pull}/comments", {"body": body})
        return replace(posted, comment_url=_url(made))

    return _looking_again(attempt)


def _noted(posted: Posted, note: str) -> Posted:
    return replace(posted, notes=(*posted.notes, note))


def _ours(pull: int, wanted: Wanted, api: Api) -> dict[str, Any] | None:
    """The comment of this name by this author: anybody can write the marker."""
    for entry in api.pages(f"/issues/{pull}/comments"):
        marker, author = find(entry.get("body") or ""), (entry.get("user") or {}).get("login")
        if marker is not None and marker.name == wanted.name and author == wanted.author:
            found: dict[str, Any] = entry
            return found
    return None


def _newer(ours: Mapping[str, Any], marker: Marker) -> bool:
    theirs = find(ours["body"])
    return theirs is not None and theirs.sha == marker.sha and theirs.at > marker.at


def _check(posted: Posted, result: GateResult, target: Target, wanted: Wanted, api: Api) -> Posted:
    """One check run a workflow run and name, complete from the start."""
    id_ = check_id(target.run_id, wanted.name, complete=result.complete)
    listed = _annotations(result.cases)
    first, rest = listed[:_ANNOTATIONS_A_REQUEST], listed[_ANNOTATIONS_A_REQUEST:]
    body: dict[str, object] = {
        "status": "completed",
        "conclusion": result.conclusion,
        "output": _output(result, target, first),
    }

    def attempt() -> Posted:
        made = _existing_check(id_, target, wanted, api)
        if made is not None:
            made = api.change(f"/check-runs/{made['id']}", body)
        else:
            new = {"name": wanted.name, "head_sha": target.sha, "external_id": id_}
            made = api.create("/check-runs", new | body)
        for start in range(0, len(rest), _ANNOTATIONS_A_REQUEST):
            part = rest[start : start + _ANNOTATIONS_A_REQUEST]
            api.change(f"/check-runs/{made['id']}", {"output": _output(result, target, part)})
        return replace(posted, check_url=_url(made))

    return _looking_again(attempt)


def _existing_check(id_: str, target: Target, wanted: Wanted, api: Api) -> dict[str, Any] | None:
    path = f"/commits/{target.sha}/check-runs"
    for entry in api.pages(path, "check_runs", check_name=wanted.name, filter="all"):
        if entry.get("external_id") == id_:
            found: dict[str, Any] = entry
            return found
    return None


def _output(
    result: GateResult, target: Target, annotations: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    summary = markdown.comment(result, run_url=target.run_url)
    return {"title": markdown.title(result), "summary": summary, "annotations": list(annotations)}


def _annotations(cases: Sequence[CaseResult]) -> list[dict[str, object]]:
    """At the benchmark's own file and line, for each case that needs a look."""
    return [
        {
            "path": case.file,
            "start_line": case.line,
            "end_line": case.line,
            "annotation_level": _ANNOTATED[case.verdict],
            "title": plain(f"{case.id}: {words.verdict(case)}")[:255],
            "message": plain(annotation_text(case)),
        }
        for case in words.ordered(cases)
        if case.verdict in _ANNOTATED and case.file and case.line and not case.file.startswith("/")
    ]


def annotation_text(case: CaseResult) -> str:
    """What an annotation says: the numbers, or else the reasons."""
    if case.speedup is not None:
        times = f"{words.duration(case.baseline_ms)} to {words.duration(case.candidate_ms)}"
        return f"{times}, speedup {words.speedup(case)}"
    return "; ".join(reason.text for reason in case.reasons) or words.verdict(case)


def _status(posted: Posted, result: GateResult, target: Target, wanted: Wanted, api: Api) -> Posted:
    """A status replaces the one before of its context, so setting it twice is setting it once."""
    state = {"success": "success", "neutral": "success", "failure": "failure"}[result.conclusion]
    description = markdown.title(result)
    if len(description) > _MOST_DESCRIPTION:
        description = description[: _MOST_DESCRIPTION - 1] + "…"
    body: dict[str, object] = {"state": state, "context": wanted.name, "description": description}
    if target.run_url:
        body["target_url"] = target.run_url

    def attempt() -> Posted:
        api.create(f"/statuses/{target.sha}", body)
        return posted

    return _looking_again(attempt)


def _url(entry: Mapping[str, Any]) -> str:
    return str(entry.get("html_url") or "")
