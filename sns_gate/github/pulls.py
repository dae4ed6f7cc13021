"""The pull request that a commit is the head of, by what GitHub says and nobody's file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sns_gate.errors import PostError
from sns_gate.github.client import Api
from sns_gate.github.event import Target


def locate(target: Target, api: Api) -> tuple[Target, tuple[PostError, ...]]:
    """The target with its pull request, the open one whose head is this commit of this source.

    GitHub's list of a commit's pull requests leaves out those of forks. Where several have this
    head, into different bases, none is taken: whichever one were, a change could choose whose
    settings it is judged by.

    Returns:
        The target, without a pull request where none is open, several are or GitHub does not say;
        and in that last case what it said instead.
    """
    if target.pull is not None or target.other_event:
        return target, ()
    try:
        numbers = tuple(sorted(_numbers(target, api)))
    except PostError as error:
        return target, (error,)
    if len(numbers) > 1:
        return replace(target, among=numbers), ()
    return replace(target, pull=numbers[0] if numbers else None), ()


def _numbers(target: Target, api: Api) -> Iterator[int]:
    for entry in api.pages("/pulls", state="open", sort="updated", direction="desc"):
        head = entry["head"]
        source = (head.get("repo") or {}).get("full_name", "")
        if head["sha"] == target.sha and source == (target.head_repository or target.repository):
            yield int(entry["number"])
