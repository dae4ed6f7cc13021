"""Who lets a slower or removed case pass: read from GitHub, never from the code under test.

A label counts where somebody set it who may write to the repository, wrote no commit of the pull
request, and could have seen the numbers: this commit's check was the last one that was complete
then. So neither a later push nor an earlier one that comes back is covered by a label. A trailer is
its author's own word and counts only where the baseline's settings say ``accept = "trailer"``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sns_gate.config import FILES, Settings, parse_files, resolve
from sns_gate.errors import ConfigError, PostDenied, PostError
from sns_gate.github.client import Api
from sns_gate.github.event import Target
from sns_gate.github.marker import is_complete
from sns_gate.types import Acceptance, GateResult
from sns_gate.verdict import ACCEPTABLE, accept

LABEL = "perf-accepted"
_MAY_WRITE = ("admin", "maintain", "write")
_TRAILER = re.compile(r"^Perf-Accept:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_TOGETHER = re.compile(r"^Co-authored-by:(.*)$", re.MULTILINE | re.IGNORECASE)
_MOST_COMMITS = 100
_NOT_FOUND = 404


@dataclass(frozen=True)
class Accepted:
    """What came of looking.

    Attributes:
        result: as it counts.
        notes: for the log: what was not accepted, and why.
    """

    result: GateResult
    notes: tuple[str, ...] = ()


def find_accepted(result: GateResult, target: Target, name: str, api: Api) -> Accepted:
    """The result with the cases that somebody lets pass; where GitHub cannot say, with none.

    Args:
        result: of a check.
        target: of its pull request; without one nothing can be accepted.
        name: of our check runs.
        api: of the target's repository.
    """
    wanted = tuple(case.id for case in result.cases if case.verdict in ACCEPTABLE)
    if target.pull is None or not wanted or not result.complete:
        return Accepted(result)
    try:
        looking = _Looking(target, target.pull, name, api)
        found, notes = looking.found(wanted, tuple(case.id for case in result.cases))
    except PostError as error:
        return Accepted(result, (f"nothing counts as accepted, as GitHub does not say: {error}",))
    return Accepted(accept(result, found), notes)


class _Looking:
    """One pull request's acceptances."""

    def __init__(self, target: Target, number: int, name: str, api: Api) -> None:
        self._target, self._number, self._name, self._api = target, number, name, api

    def found(
        self, cases: tuple[str, ...], ids: tuple[str, ...]
    ) -> tuple[list[Acceptance], tuple[str, ...]]:
        """What counts, and why the rest does not.

        Args:
            cases: ids that may be accepted.
            ids: of all cases, which a trailer may name.
        """
        pull = self._api.get(f"/pulls/{self._number}")
        if pull["head"]["sha"] != self._target.sha:
            return [], ()
        try:
            how = self._settings(pull["base"]["sha"]).accept
        except ConfigError as error:
            return [], (f"nothing counts as accepted: {error}",)
        if how == "nobody":
            return [], ()
        commits = list(self._api.pages(f"/pulls/{self._number}/commits"))
        accepted: dict[str, Acceptance] = {}
        if how == "trailer":
            for one in _by_trailers(commits, ids):
                accepted[one.case] = one
        who, note = self._by_label(pull, commits)
        if who is not None:
            why = self._reason_of(who)
            for case in cases:
                accepted[case] = Acceptance(case=case, by=who, how="label", reason=why)
        return list(accepted.values()), (note,) if note else ()

    def _settings(self, sha: str) -> Settings:
        """The baseline's, as GitHub has them.

        Raises:
            ConfigError: they are none.
        """
        own, shared = (self._text(file, sha) for file in FILES)
        return resolve(parse_files(own, shared, "the baseline's "))

    def _text(self, file: str, sha: str) -> str | None:
        try:
            found = self._api.get(f"/contents/{file}", ref=sha)
        except PostDenied as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        if found.get("encoding") != "base64":
            raise ConfigError(f"the baseline's {file} is too large to be read; shorten it")
        try:
            return base64.b64decode(found["content"]).decode()
        except ValueError:
            raise ConfigError(f"the baseline's {file} is no text; correct it there") from None

    def _by_label(
        self, pull: Mapping[str, Any], commits: list[Mapping[str, Any]]
    ) -> tuple[str | None, str]:
        """Who set the label rightly, or why the one that is there does not count."""
        last: Mapping[str, Any] | None = None
        forced = ""
        for event in self._api.pages(f"/issues/{self._number}/events"):
            if (event.get("label") or {}).get("name") == LABEL:
                last = event if event["event"] == "labeled" else None
            elif event["event"] == "head_ref_force_pushed":
                forced = str(event["created_at"])
        if last is None:
            return None, ""
        login = str((last.get("actor") or {}).get("login") or "")
        at = str(last["created_at"])
        problem = self._who(login, pull, commits) or self._when(at, forced, commits)
        if problem:
            return None, f"the label {LABEL}, set by {login or 'nobody'}, does not count: {problem}"
        return login, ""

    def _who(self, login: str, pull: Mapping[str, Any], commits: list[Mapping[str, Any]]) -> str:
        """Why this person cannot accept, empty where they can."""
        if int(pull.get("commits", 0)) > len(commits):
            return "there are more commits than GitHub lists, so who wrote them is not known"
        writers = {str((pull.get("user") or {}).get("login"))}
        for entry in commits:
            for part in ("author", "committer"):
                if not entry.get(part):
                    return f"the {part} of {entry['sha'][:9]} is no account that GitHub knows"
                writers.add(str(entry[part].get("login")))
            others = _TOGETHER.findall(entry["commit"]["message"])
            if any(login.lower() in other.lower() for other in others):
                writers.add(login)
        if login in writers:
            return "whoever wrote a change cannot accept its slowdown; somebody else has to"
        return "" if self._permission(login) in _MAY_WRITE else "that takes write permission"

    def _when(self, at: str, forced: str, commits: list[Mapping[str, Any]]) -> str:
        """Why a label of this time is of other numbers, empty where it is of this commit's."""
        again = "remove it and set it again"
        mine = [check for check in self._checks(self._target.sha) if check[0] < at]
        if not mine or at <= forced:
            return f"nobody had seen this commit's numbers when it was set; {again}"
        seen_at, ended = max(mine)
        if ended == "success":
            return f"the check before it had passed, so what is slower now was not seen; {again}"
        if len(commits) > _MOST_COMMITS:
            return f"there are more than {_MOST_COMMITS} commits; squash them, then {again}"
        for entry in commits:
            if entry["sha"] != self._target.sha:
                theirs = [time for time, _ in self._checks(entry["sha"]) if time < at]
                if max(theirs, default="") >= seen_at:
                    return f"another commit had been checked last when it was set; {again}"
        return ""

    def _checks(self, sha: str) -> list[tuple[str, str]]:
        """When our checks of a commit were complete, and how they ended.

        Those that did not finish do not count, nor does a job that has our name.
        """
        query = {"check_name": self._name, "filter": "all"}
        return [
            (str(entry["completed_at"]), str(entry.get("conclusion")))
            for entry in self._api.pages(f"/commits/{sha}/check-runs", "check_runs", **query)
            if entry.get("completed_at") and is_complete(str(entry.get("external_id")), self._name)
        ]

    def _permission(self, login: str) -> str:
        try:
            found = self._api.get(f"/collaborators/{login}/permission")
        except PostDenied as error:
            if error.status == _NOT_FOUND:  # an app, or somebody who is gone
                return "none"
            raise
        return str(found.get("permission"))

    def _reason_of(self, login: str) -> str:
        """What they said last of why, in a comment that begins as a trailer does."""
        said = ""
        for entry in self._api.pages(f"/issues/{self._number}/comments"):
            found = _TRAILER.search(entry.get("body") or "")
            if found and (entry.get("user") or {}).get("login") == login:
                said = found[1]
        return said


def _by_trailers(commits: list[Mapping[str, Any]], ids: tuple[str, ...]) -> Iterator[Acceptance]:
    """``Perf-Accept: CASE reason`` of each commit; without a reason it is none.

    An id may begin with another one, so the longest that fits is meant.
    """
    for entry in commits:
        commit = entry["commit"]
        author = (entry.get("author") or {}).get("login") or commit["author"]["name"]
        for said in _TRAILER.findall(commit["message"]):
            case = max(
                (id_ for id_ in ids if f"{said} ".startswith(f"{id_} ")), key=len, default=""
            )
            reason = said[len(case) :].strip()
            if case and reason:
                yield Acceptance(case=case, by=str(author), how="trailer", reason=reason)
