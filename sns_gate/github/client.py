"""Speaks to GitHub's API: waits when told to, tries again where that is safe, and never guesses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

import requests

from sns_gate import __version__
from sns_gate.errors import PostDenied, PostUnreachable
from sns_gate.plain import plain

_TIMEOUT_S = 20.0
_TRIES = 5
_LONGEST_WAIT_S = 120.0
#: GitHub asks for a second between writes.
_BETWEEN_WRITES_S = 1.0
_PAGE = 100
_MOST_PAGES = 100
_NO_CONTENT, _ELSEWHERE, _ERROR, _SERVER_ERROR = 204, 300, 400, 500
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 401, 403, 404, 429


class Api(Protocol):
    """What is asked of a repository's API."""

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 (JSON)
        """Read."""

    def pages(self, path: str, key: str | None = None, **query: object) -> Iterator[Any]:
        """Every entry of a list."""

    def create(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """Create, once."""

    def change(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """Change."""

    def add(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """Add to what is there, once."""

    def remove(self, path: str) -> None:
        """Remove."""

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""


class Client:
    """One repository's API.

    Args:
        api_url: without a slash at its end.
        repository: ``owner/name``.
        token: that is sent along.
        timeout_s: for one answer.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        api_url: str,
        repository: str,
        token: str,
        *,
        timeout_s: float = _TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base = f"{api_url}/repos/{repository}"
        self._timeout_s, self._sleep = timeout_s, sleep
        self._session = requests.Session()
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "User-Agent": f"sns-gate/{__version__}",
                "X-GitHub-Api-Version": "2022-11-28",
            }
        )
        self._last_write_s = float("-inf")

    def __enter__(self) -> Self:
        """Keep connections open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close them."""
        self._session.close()

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 (JSON)
        """Read; tried again until it answers or time is up."""
        return self._again("GET", path, query, None)

    def pages(self, path: str, key: str | None = None, **query: object) -> Iterator[Any]:
        """Every entry of a list, over all its pages."""
        for page in range(1, _MOST_PAGES + 1):
            found = self.get(path, per_page=_PAGE, page=page, **query)
            entries = found[key] if key is not None else found
            yield from entries
            if len(entries) < _PAGE:
                return

    def change(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """Change what is there; the same change twice is one, so it may be tried again."""
        return self._again("PATCH", path, {}, body)

    def add(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """Add to what is there, as annotations join those of a check.

        Raises:
            PostUnreachable: it may be there or not; whoever asked has to look before trying again.
            PostDenied: it is not there.
        """
        return self._once("PATCH", path, {}, body)

    def remove(self, path: str) -> None:
        """Remove what may be gone already."""
        try:
            self._again("DELETE", path, {}, None)
        except PostDenied as error:
            if error.status != _NOT_FOUND:
                raise

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""
        self._sleep(seconds)

    def create(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 (JSON)
        """Create something new.

        Raises:
            PostUnreachable: it may be there or not; whoever asked has to look before trying again.
            PostDenied: it is not there.
        """
        return self._once("POST", path, {}, body)

    def _again(
        self, method: str, path: str, query: Mapping[str, object], body: Mapping[str, object] | None
    ) -> Any:  # noqa: ANN401 (JSON)
        for attempt in range(_TRIES - 1):
            try:
                return self._once(method, path, query, body)
            except PostUnreachable:
                self._sleep(2.0**attempt)
        return self._once(method, path, query, body)

    def _once(
        self, method: str, path: str, query: Mapping[str, object], body: Mapping[str, object] | None
    ) -> Any:  # noqa: ANN401 (JSON)
        """One request, and again only where GitHub said that it did nothing and to wait."""
        waited_s = 0.0
        while True:
            answer = self._send(method, path, query, body)
            wait_s = _wait_s(answer)
            if wait_s is None:
                return _body(answer, method, path)
            waited_s += wait_s
            if waited_s > _LONGEST_WAIT_S:
                raise PostUnreachable(
                    f"GitHub asks to wait {wait_s:.0f} s before {method} {path}, longer than a job "
                    f"should; post again later with 'sns-gate post'"
                )
            self._sleep(wait_s)

    def _send(
        self, method: str, path: str, query: Mapping[str, object], body: Mapping[str, object] | None
    ) -> requests.Response:
        if method != "GET":
            since_s = time.monotonic() - self._last_write_s
            if since_s < _BETWEEN_WRITES_S:
                self._sleep(_BETWEEN_WRITES_S - since_s)
            self._last_write_s = time.monotonic()
        try:
            return self._session.request(
                method,
                f"{self._base}{path}",
                params={name: str(value) for name, value in query.items()},
                json=body,
                timeout=self._timeout_s,
                allow_redirects=method == "GET",
            )
        except requests.RequestException as error:
            reason = type(error).__name__
            raise PostUnreachable(f"GitHub did not answer {method} {path} ({reason})") from None


def _wait_s(answer: requests.Response) -> float | None:
    """Seconds that GitHub asks to wait; None where it did not refuse for its limits."""
    if answer.status_code not in (_FORBIDDEN, _TOO_MANY):
        return None
    headers = answer.headers
    if headers.get("retry-after", "").isdigit():
        return float(headers["retry-after"])
    if headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        return max(1.0, float(reset) - datetime.now(UTC).timestamp()) if reset.isdigit() else 60.0
    # GitHub's limit on bursts comes as a plain 403 too, which only its words tell from others.
    bursts = "rate limit" in (said := _said(answer).lower()) or "abuse" in said
    return 60.0 if answer.status_code == _TOO_MANY or bursts else None


def _body(answer: requests.Response, method: str, path: str) -> Any:  # noqa: ANN401 (JSON)
    status = answer.status_code
    if status >= _SERVER_ERROR:
        raise PostUnreachable(f"GitHub answered {method} {path} with {status}")
    if status >= _ERROR:
        needed = answer.headers.get("x-accepted-github-permissions", "")
        named = f" (GitHub asks for '{plain(needed)}')" if needed else ""
        raise PostDenied(
            f"GitHub refused {method} {path}: {status} {_said(answer)}{named}; {_mend(status)}",
            status,
        )
    if status >= _ELSEWHERE:
        raise PostDenied(
            f"GitHub answered {method} {path} with {status}: the repository was renamed or moved, "
            f"so nothing was written; run the workflow anew where it is now",
            status,
        )
    if status == _NO_CONTENT:
        return None
    try:
        return answer.json()
    except requests.JSONDecodeError:
        raise PostUnreachable(f"GitHub's answer to {method} {path} is cut off") from None


def _said(answer: requests.Response) -> str:
    try:
        found = answer.json()
    except requests.JSONDecodeError:
        return answer.reason or "without a reason"
    message = found.get("message") if isinstance(found, dict) else None
    return str(message)[:200] if message else "without a reason"


def _mend(status: int) -> str:
    return {
        _UNAUTHORIZED: "the token is not valid; pass GITHUB_TOKEN to the step that posts",
        _FORBIDDEN: "the token may not write: the job needs 'pull-requests: write' for a comment, "
        "'checks: write' for a check, 'statuses: write' for a status, which a fork's pull request "
        "is never given",
        _NOT_FOUND: "it is not there, or the token may not see it",
    }.get(status, "this is a fault of sns-gate if what was sent is valid; please report it")
