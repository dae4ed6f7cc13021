"""The event that a workflow runs for: which commit and pull request, and what to compare with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sns_gate.errors import UsageError

_MOST_BYTES = 25 << 20
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_EVENT = re.compile(r"[a-z_]{1,40}")
_NO_COMMIT = re.compile(r"0+")
#: These judge a pull request as a whole; any other event has a baseline of its own.
_OF_A_PULL = ("pull_request", "pull_request_target", "merge_group")
DEFAULT_API = "https://api.github.com"


@dataclass(frozen=True)
class Target:
    """Where a result is posted.

    Attributes:
        api_url: of GitHub, or of a server of one's own.
        repository: ``owner/name``.
        sha: the commit that was judged; of a pull request its head, never the merge commit.
        checkout: the commit that this run checked out, empty where another run measured.
        other_event: that is none of a pull request or its merging, empty where it is one.
        pull: number of the pull request, None where there is none or it is not known yet.
        among: pull requests of which it is one, where it is not known which.
        head_repository: the pull request's source, empty where it is not known.
        run_id: of the workflow run, with its attempt.
        run_url: of it, for people.
    """

    api_url: str
    repository: str
    sha: str
    pull: int | None = None
    among: tuple[int, ...] = ()
    checkout: str = ""
    other_event: str = ""
    head_repository: str = ""
    run_id: str = ""
    run_url: str = ""


@dataclass(frozen=True)
class Event:
    """What happened.

    Attributes:
        name: of the event.
        target: where its result goes.
        baseline: reference to compare with, None where only the repository's history can say.
    """

    name: str
    target: Target
    baseline: str | None


def read_event(environment: Mapping[str, str]) -> Event:
    """The event of this workflow run.

    Args:
        environment: of the job, with what GitHub sets in it.

    Raises:
        UsageError: this is no workflow run, or its payload is not what GitHub sends.
    """
    name = _variable(environment, "GITHUB_EVENT_NAME")
    payload = _payload(Path(_variable(environment, "GITHUB_EVENT_PATH")))
    repository = _matching(_REPOSITORY, _variable(environment, "GITHUB_REPOSITORY"), "repository")
    sha = _matching(_SHA, _variable(environment, "GITHUB_SHA"), "commit")
    run = environment.get("GITHUB_RUN_ID", "")
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    target = Target(
        api_url=environment.get("GITHUB_API_URL", DEFAULT_API).rstrip("/"),
        repository=repository,
        sha=sha,
        checkout=sha,
        other_event="" if name in _OF_A_PULL else name,
        run_id=f"{run}.{environment.get('GITHUB_RUN_ATTEMPT', '1')}",
        run_url=f"{server}/{repository}/actions/runs/{run}" if run.isdigit() else "",
    )
    return _by_name(name, payload, target)


def _by_name(name: str, payload: Mapping[str, Any], target: Target) -> Event:
    match name:
        case "pull_request" | "pull_request_target":
            head = _part(payload, "pull_request", "head")
            return Event(
                name,
                replace(
                    target,
                    sha=_sha(head),
                    pull=_pull(payload),
                    head_repository=_repository_of(head),
                ),
                f"{target.sha}^1",
            )
        case "push":
            before = str(payload.get("before", ""))
            return Event(name, target, None if _NO_COMMIT.fullmatch(before) else _checked(before))
        case "merge_group":
            group = _part(payload, "merge_group")
            return Event(
                name,
                replace(target, sha=_checked(group.get("head_sha"))),
                _checked(group.get("base_sha")),
            )
        case "workflow_run":
            run = _part(payload, "workflow_run")
            source = _repository_of({"repo": run.get("head_repository")})
            measured = _matching(_EVENT, str(run.get("event")), "event")
            there = replace(
                target,
                sha=_checked(run.get("head_sha")),
                checkout="",
                other_event="" if measured in _OF_A_PULL else measured,
                head_repository=source,
            )
            return Event(name, there, None)
        case _:
            return Event(name, target, None)


def is_commit(text: str) -> bool:
    """Whether a text is a commit's full name."""
    return _SHA.fullmatch(text) is not None


def _pull(payload: Mapping[str, Any]) -> int:
    number = _part(payload, "pull_request").get("number")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise UsageError(f"the event's pull request has the number {number!r:.40}, which is none")
    return number


def _part(payload: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Any = payload
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise UsageError(
            f"the event's payload has no {'.'.join(names)}, so it is not the event that its name "
            f"says; run sns-gate in a workflow of its own, or pass GITHUB_EVENT_PATH on unchanged"
        )
    return found


def _sha(head: Mapping[str, Any]) -> str:
    return _checked(head.get("sha"))


def _checked(sha: object) -> str:
    return _matching(_SHA, str(sha), "commit")


def _repository_of(head: Mapping[str, Any]) -> str:
    """The source's name; empty where that repository is gone."""
    source = head.get("repo")
    name = source.get("full_name") if isinstance(source, dict) else None
    return "" if name is None else _matching(_REPOSITORY, str(name), "repository")


def _matching(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} is no {what}, so it is not known where this result belongs"
        )
    return text


def _variable(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise UsageError(
            f"{name} is not set, so this is no workflow run and nothing can be posted; GitHub sets "
            f"it in every job"
        )
    return value


def _payload(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is larger than any event that GitHub sends")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"the event's payload {path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"the event's payload {path} is no object")
    return found
