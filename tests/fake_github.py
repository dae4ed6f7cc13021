"""A fake GitHub: a real server on this machine that checks what it is asked and fails on demand."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.message import Message
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests import github_schema
from tests.github_answers import REPOSITORY_ID, Answers
from tests.github_faults import (
    JSON_HEADERS,
    SECONDARY_LIMIT,
    Answer,
    Fault,
    PlannedAction,
    PlannedFault,
)
from tests.github_limits import Refused
from tests.github_operations import Actor, Call, Operations
from tests.github_schema import Operation, Problems
from tests.github_server import Server
from tests.github_state import ACTIONS, Repository

_ALL_GRANTS = frozenset({"checks", "issues", "pull-requests", "statuses"})
_WRITES = ("POST", "PATCH", "PUT", "DELETE")
_HOURLY_LIMIT = 1000
_POLL_S = 0.01


@dataclass(frozen=True)
class Request:
    """A request as it came, without the prefix, and the status it got; None is no answer."""

    method: str
    path: str
    query: Mapping[str, str | int]
    body: Any
    status: int | None
    headers: Mapping[str, str] = field(repr=False, compare=False)


@dataclass(frozen=True)
class _Asked:
    """A request, read; the operation is None when there is none such."""

    method: str
    path: str
    operation: Operation | None
    arguments: Mapping[str, str | int]
    query: Mapping[str, str | int]
    body: Any
    problems: Problems


class FakeGitHub(Repository):
    """GitHub's API for one repository; what was posted is in the attributes of Repository.

    A request that does not fit GitHub's API description, and an answer of the fake's own that does
    not, are told in ``violations`` and answered 422 (404 when there is no such operation): a test
    asserts that there are none. What exceeds a limit is answered 422 and is no violation.

    Args:
        repository: ``owner/name``; every other is unknown.
        prefix: where the API is on the server, such as ``/api/v3`` of an Enterprise server.
        clock: seconds, for the gap between writes.

    Attributes:
        url: of the API, while it serves.
        token: of the workflow's own app, with every grant.
        fork_token: of the same app for a fork's pull request: it may only read.
        requests: all requests, oldest first.
        violations: what did not fit the description, and what went wrong in the fake.
        least_write_gap_s: writes closer than this are refused as GitHub's secondary limit does.
    """

    def __init__(
        self,
        repository: str = "octo-org/kernels",
        *,
        prefix: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(repository)
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self.least_write_gap_s = 0.0
        self._prefix, self._clock = prefix, clock
        self._wrote_at_s = -math.inf
        self._actors: dict[str, Actor] = {}
        self._faults: list[PlannedFault] = []
        self._actions: list[PlannedAction] = []
        self._lock = threading.RLock()
        self.token = self.add_token(ACTIONS)
        self.fork_token = self.add_token(ACTIONS, grants=())

    def __enter__(self) -> Self:
        """Start serving."""
        self._server = Server(self)
        host = f"http://127.0.0.1:{self._server.server_port}"
        self.url = host + self._prefix
        answers = Answers(self, self.url, host if self._prefix else "https://github.com")
        self._operations = Operations(self, answers)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop serving; a client that still waits is cut off."""
        self._server.stop()
        self._thread.join()

    def add_token(self, login: str, grants: Collection[str] = _ALL_GRANTS) -> str:
        """A token for a login; grants (checks, issues, pull-requests, statuses) are for bots."""
        bot = login.endswith("[bot]")
        self._meet(login)
        token = f"{'ghs' if bot else 'ghp'}_{len(self._actors)}"
        self._actors[token] = Actor(login, frozenset(grants) if bot else frozenset())
        return token

    def fail(  # noqa: PLR0913 (what can be said of a fault)
        self,
        method: str,
        path_regex: str,
        fault: Fault,
        times: int = 1,
        after: int = 0,
        *,
        applied: bool = False,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> None:
        """Plan a fault; of several that match a request the earliest takes it.

        Args:
            method: a regular expression for the whole method.
            path_regex: found anywhere in the path, which is unquoted and without the prefix.
            fault: a status, or how the answer goes wrong.
            times: how many requests it meets.
            after: how many matching requests are answered well before.
            applied: the request takes effect, though its client cannot know.
            headers: of a status, such as ``retry-after``.
            body: of a status, as text or to be made JSON; GitHub's own without it.
        """
        self._faults.append(
            PlannedFault(
                method, path_regex, times, after, fault, applied, dict(headers or {}), body
            )
        )

    def meanwhile(
        self, method: str, path_regex: str, action: Callable[[], object], after: int = 0
    ) -> None:
        """Plan that something happens, once, just before a matching request is answered."""
        self._actions.append(PlannedAction(method, path_regex, 1, after, action))

    def asked(self, method: str, path_regex: str) -> list[Request]:
        """The requests so far of a method and path, both regular expressions as of a fault."""
        return [
            request
            for request in self.requests
            if re.fullmatch(method, request.method) and re.search(path_regex, request.path)
        ]

    def answer(self, method: str, target: str, headers: Message, raw: bytes) -> Answer:
        """Answer a request that came over the wire, and log it."""
        with self._lock:
            asked = self._read(method, target, raw)
            answer = self._decide(asked, headers.get("Authorization", ""))
            self.requests.append(
                Request(
                    method,
                    asked.path,
                    asked.query,
                    asked.body,
                    answer.seen_status,
                    dict(headers.items()),
                )
            )
        return answer

    def note(self, problem: str) -> None:
        """Add a violation."""
        self.violations.append(problem)

    def _read(self, method: str, target: str, raw: bytes) -> _Asked:
        parts = urlsplit(target)
        path = unquote(parts.path)
        inside = path.startswith(f"{self._prefix}/")
        path = path.removeprefix(self._prefix) if inside else path
        # As in the links to further pages.
        path = re.sub(rf"^/repositories/{REPOSITORY_ID}(?=/)", f"/repos/{self.name}", path)
        texts = parse_qsl(parts.query, keep_blank_values=True)
        body = _body(raw)
        found = github_schema.find(method, path) if inside else None
        if not found:
            problems = Problems(("the API has no such operation",))
            return _Asked(method, path, None, {}, dict(texts), body, problems)
        operation, named = found
        arguments, query = operation.read("path", named), operation.read("query", dict(texts))
        wrong = operation.check_parameters("path", arguments)
        wrong += operation.check_parameters("query", query)
        if len(query) < len(texts):
            wrong.append("a query parameter is given twice")
        of_body = operation.check_body(body)
        problems = Problems((*wrong, *of_body.violations), of_body.limits)
        return _Asked(method, path, operation, arguments, query, body, problems)

    def _decide(self, asked: _Asked, authorization: str) -> Answer:
        violations = asked.problems.violations
        self.violations += [f"{asked.method} {asked.path}: {told}" for told in violations]
        if asked.operation is None:
            return self._refusal(Refused(404, "Not Found"))
        if violations:
            return self._refusal(Refused(422, "\n".join(("Invalid request.\n", *violations))))
        for planned in self._actions:
            if planned.matches(asked.method, asked.path) and planned.meets():
                planned.action()
        fault = self._due_fault(asked)
        if fault is None:
            return self._perform(asked, asked.operation, authorization)
        body = b""
        if fault.applied or asked.method == "GET":
            body = self._perform(asked, asked.operation, authorization).body
        answer = fault.answer(asked.operation.success, body)
        return replace(answer, headers={**self._rates(), **answer.headers})

    def _due_fault(self, asked: _Asked) -> PlannedFault | None:
        for fault in self._faults:
            if fault.matches(asked.method, asked.path):
                return fault if fault.meets() else None
        return None

    def _perform(self, asked: _Asked, operation: Operation, authorization: str) -> Answer:
        """Answer as GitHub does."""
        try:
            actor = self._authenticated(authorization)
            self._refuse_haste(asked.method)
            call = Call(
                operation.id, asked.path, asked.arguments, asked.query, asked.body or {},
                asked.problems.limits, actor,
            )  # fmt: skip
            reply = self._operations.perform(call)
        except Refused as refused:
            return self._refusal(refused)
        if asked.method in _WRITES:
            self._wrote_at_s = self._clock()
        wrong = operation.check_answer(operation.success, reply.body)
        if wrong:
            self.violations += [f"{asked.method} {asked.path}: {told}" for told in wrong]
            return self._refusal(Refused(422, "\n".join(wrong)))
        body = b"" if reply.body is None else json.dumps(reply.body).encode()
        headers = {**self._rates(), **JSON_HEADERS, **reply.headers}
        return Answer(operation.success, body, headers)

    def _authenticated(self, authorization: str) -> Actor:
        scheme, _, token = authorization.partition(" ")
        actor = self._actors.get(token)
        if scheme.lower() not in ("bearer", "token") or actor is None:
            raise Refused(401, "Bad credentials")
        return actor

    def _refuse_haste(self, method: str) -> None:
        gap_s = self._clock() - self._wrote_at_s
        if method in _WRITES and gap_s < self.least_write_gap_s:
            wait_s = math.ceil(self.least_write_gap_s)
            raise Refused(403, SECONDARY_LIMIT, headers={"retry-after": str(wait_s)})

    def _refusal(self, refused: Refused) -> Answer:
        headers = {**self._rates(), **JSON_HEADERS, **refused.headers}
        return Answer(refused.status, json.dumps(refused.body).encode(), headers)

    def _rates(self) -> dict[str, str]:
        """What GitHub says of the hourly limit in every answer, refusals for other reasons too."""
        left = max(_HOURLY_LIMIT - 1 - len(self.requests), 1)
        reset = datetime.now(UTC) + timedelta(hours=1)
        return {
            "x-ratelimit-limit": str(_HOURLY_LIMIT),
            "x-ratelimit-remaining": str(left),
            "x-ratelimit-reset": str(int(reset.timestamp())),
        }


def _body(raw: bytes) -> Any:  # noqa: ANN401 (JSON)
    """The body as JSON; what is none, or is not Unicode, as text, which no operation takes."""
    try:
        body = json.loads(raw, parse_constant=_refuse_constant) if raw else None
        json.dumps(body, ensure_ascii=False).encode()
    except ValueError:
        return raw.decode(errors="replace")
    return body


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
