"""The event that a workflow runs for: which commit and pull request, and what to compare with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sns_gate.errors import UsageError

_MOST_BYTES = 25 << 20
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NO_COMMIT = re.compile(r"0+")
DEFAULT_API = "https://api.github.com"


@dataclass(frozen=True)
class Target:
    """Where a result is posted.

    Attributes:
        api_url: of GitHub, or of a server of one's own.
        repository: ``owner/name``.
        sha: the commit that was judged; of a pull request its head, never the merge commit.
        pull: number of the pull request, None where there is none or it is not known yet.
        head_repository: the pull request's source, empty where it is not known.
        run_id: of the workflow run, with its attempt.
        run_url: of it, for people.
    """

    api_url: str
    repository: str
    sha: str
    pull: int | None = None
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
                _at(target, _sha(head), _pull(payload), _repository_of(head)),
                f"{target.sha}^1",
            )
        case "push":
            before = str(payload.get("before", ""))
            return Event(name, target, None if _NO_COMMIT.fullmatch(before) else _checked(before))
        case "merge_group":
            group = _part(payload, "merge_group")
            return Event(
                name, _at(target, _checked(group.get("head_sha"))), _checked(group.get("base_sha"))
            )
        case "workflow_run":
            run = _part(payload, "workflow_run")
            source = _repository_of({"repo": run.get("head_repository")})
            return Event(name, _at(target, _checked(run.get("head_sha")), None, source), None)
        case _:
            return Event(name, target, None)


def _at(target: Target, sha: str, pull: int | None = None, source: str = "") -> Target:
    return Target(
        api_url=target.api_url,
        repository=target.repository,
        sha=sha,
        pull=pull,
        head_repository=source,
        run_id=target.run_id,
        run_url=target.run_url,
    )


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
