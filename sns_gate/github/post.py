"""Tells GitHub of a result: one comment a name, one check run, perhaps a status; never twice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sns_gate.errors import PostDenied, PostError, PostUnreachable
from sns_gate.github.client import Api
from sns_gate.github.event import Target
from sns_gate.github.marker import Marker, check_id, find
from sns_gate.github.message import Annotation, Message

ACTIONS_BOT = "github-actions[bot]"
#: What was written may take so long to be seen; as many tries as waits, and one.
_SEEN_AFTER_S = (2.0, 5.0, 10.0)
_ANNOTATIONS_A_REQUEST = 50
_MOST_DESCRIPTION = 140


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

    def check_name(self, target: Target) -> str:
        """Of check and status; the plain name is for what a pull request as a whole is judged by.

        Else a run by hand against another baseline would stand for the pull request's own.
        """
        return f"{self.name} ({target.other_event})" if target.other_event else self.name


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


def post(message: Message, target: Target, wanted: Wanted, api: Api) -> Posted:
    """Post everything that is wanted; what fails does not keep the rest from being posted.

    Args:
        message: what to say.
        target: where it goes, its pull request found.
        wanted: what to post.
        api: of the target's repository.
    """
    posted = Posted()
    steps: list[Callable[[Posted], Posted]] = []
    if wanted.check:
        steps.append(lambda so_far: _check(so_far, message, target, wanted, api))
    if wanted.status:
        steps.append(lambda so_far: _status(so_far, message, target, wanted, api))
    if wanted.comment:
        steps.append(lambda so_far: _comment(so_far, message, target, wanted, api))
    for step in steps:
        try:
            posted = step(posted)
        except PostError as error:
            posted = replace(posted, failures=(*posted.failures, error))
    return posted


def _looking_again(attempt: Callable[[], Posted], api: Api) -> Posted:
    """An attempt that looks at what is there before it writes, again while it is not known.

    Once more after it: what an unanswered attempt made may be seen only later.
    """
    for tries, wait_s in enumerate(_SEEN_AFTER_S):
        try:
            posted = attempt()
        except PostUnreachable:
            api.wait(wait_s)
            continue
        if tries:
            api.wait(_SEEN_AFTER_S[-1])
            with contextlib.suppress(PostUnreachable):
                return attempt()
        return posted
    return attempt()


def _comment(posted: Posted, message: Message, target: Target, wanted: Wanted, api: Api) -> Posted:
    pull = target.pull
    if pull is None:
        return _noted(posted, _why_no_comment(target))
    marker = Marker(wanted.name, target.sha, message.begun_at)
    body = f"{marker}\n{message.text}"

    def attempt() -> Posted:
        head = str(api.get(f"/pulls/{pull}")["head"]["sha"])
        if head != target.sha:
            return _noted(posted, f"#{pull} has moved on to {head[:9]}, whose comment it is to be")
        ours = _ours(pull, wanted, api)
        if any(_newer(one, marker) for one in ours):
            return _noted(posted, f"the comment on #{pull} is of a later check and stays")
        if not ours:
            return _created(posted, api.create(f"/issues/{pull}/comments", {"body": body}), wanted)
        for twin in ours[1:]:
            api.remove(f"/issues/comments/{twin['id']}")
        made = api.change(f"/issues/comments/{ours[0]['id']}", {"body": body})
        return replace(posted, comment_url=_url(made))

    return _looking_again(attempt, api)


def _why_no_comment(target: Target) -> str:
    if target.other_event:
        return f"a run for {target.other_event} judges no pull request: no comment"
    if target.among:
        numbers = " and ".join(f"#{number}" for number in target.among)
        return (
            f"{numbers} have the head {target.sha[:9]}, and this run does not say which of them it "
            f"was for: no comment, and nothing counts as accepted"
        )
    return f"no open pull request has the head {target.sha[:9]}: no comment"


def _created(posted: Posted, made: Mapping[str, Any], wanted: Wanted) -> Posted:
    """A new comment; what has another author than told would never be found again."""
    posted = replace(posted, comment_url=_url(made))
    author = str((made.get("user") or {}).get("login") or "")
    if author == wanted.author:
        return posted
    unlike = PostDenied(
        f"the comment is by '{author}' and not by '{wanted.author}', so the next run would not "
        f"find it and add another one; set the input 'author' to '{author}'"
    )
    return replace(posted, failures=(*posted.failures, unlike))


def _noted(posted: Posted, note: str) -> Posted:
    return replace(posted, notes=(*posted.notes, note))


def _ours(pull: int, wanted: Wanted, api: Api) -> list[dict[str, Any]]:
    """The comments of this name by this author, oldest first: anybody can write the marker."""
    found = []
    for entry in api.pages(f"/issues/{pull}/comments"):
        marker, author = find(entry.get("body") or ""), (entry.get("user") or {}).get("login")
        if marker is not None and marker.name == wanted.name and author == wanted.author:
            found.append(entry)
    return found


def _newer(ours: Mapping[str, Any], marker: Marker) -> bool:
    theirs = find(ours["body"])
    return theirs is not None and theirs.sha == marker.sha and theirs.at > marker.at


def _check(posted: Posted, message: Message, target: Target, wanted: Wanted, api: Api) -> Posted:
    """One check run a workflow run and name, complete from the start."""
    id_ = check_id(target.run_id, wanted.name, complete=message.complete)
    name = wanted.check_name(target)
    done: dict[str, object] = {"status": "completed", "conclusion": message.conclusion}

    def attempt() -> Posted:
        made = _existing_check(id_, name, target, api)
        if made is None:
            new = {"name": name, "head_sha": target.sha, "external_id": id_}
            body = new | done | _output(message, message.annotations[:_ANNOTATIONS_A_REQUEST])
            made = api.create("/check-runs", body)
        else:
            made = api.change(f"/check-runs/{made['id']}", done | _output(message, ()))
        there = int(made["output"]["annotations_count"])
        for start in range(there, len(message.annotations), _ANNOTATIONS_A_REQUEST):
            part = message.annotations[start : start + _ANNOTATIONS_A_REQUEST]
            api.add(f"/check-runs/{made['id']}", _output(message, part))
        return replace(posted, check_url=_url(made))

    return _looking_again(attempt, api)


def _existing_check(id_: str, name: str, target: Target, api: Api) -> dict[str, Any] | None:
    path = f"/commits/{target.sha}/check-runs"
    for entry in api.pages(path, "check_runs", check_name=name, filter="all"):
        if entry.get("external_id") == id_:
            found: dict[str, Any] = entry
            return found
    return None


def _output(message: Message, annotations: Sequence[Annotation]) -> dict[str, object]:
    """What a check shows; its annotations join those that it has."""
    said = {"title": message.title, "summary": message.text}
    return {"output": said | {"annotations": list(annotations)}}


def _status(posted: Posted, message: Message, target: Target, wanted: Wanted, api: Api) -> Posted:
    """A status replaces the one before of its context, so setting it twice is setting it once."""
    state = {"success": "success", "neutral": "success", "failure": "failure"}[message.conclusion]
    description = message.title
    if len(description) > _MOST_DESCRIPTION:
        description = description[: _MOST_DESCRIPTION - 1] + "…"
    context = wanted.check_name(target)
    body: dict[str, object] = {"state": state, "context": context, "description": description}
    if target.run_url:
        body["target_url"] = target.run_url

    def attempt() -> Posted:
        api.create(f"/statuses/{target.sha}", body)
        return posted

    return _looking_again(attempt, api)


def _url(entry: Mapping[str, Any]) -> str:
    return str(entry.get("html_url") or "")
