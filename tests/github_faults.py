"""What can go wrong on the way to GitHub, planned by a test and met by its requests in order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tests.github_limits import DOCUMENTATION_URL
from tests.github_operations import NOT_FOR_INTEGRATION

#: timeout: no answer until the client gives up. reset: the connection is reset. broken json: a
#: good status, and half the JSON. cut short: likewise, with the whole's Content-Length. html: a
#: 502 page. A number is a status with GitHub's own body.
Transport = Literal["timeout", "reset", "broken json", "cut short", "html"]
Fault = int | Transport

JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json; charset=utf-8"}
SECONDARY_LIMIT = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
_MESSAGES = {
    401: "Bad credentials",
    403: NOT_FOR_INTEGRATION,
    404: "Not Found",
    422: "Validation Failed",
    429: SECONDARY_LIMIT,
}
_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>Unicorn!</body></html>"
_STAND_IN = b'{"id": 1, "node_id": "nothing was made"}'
_OK, _NO_CONTENT, _BAD_GATEWAY = 200, 204, 502


@dataclass(frozen=True)
class Answer:
    """What goes back over the wire, and how that ends."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Literal["whole", "cut short", "timeout", "reset"] = "whole"

    @property
    def seen_status(self) -> int | None:
        """The status that the client sees; None is no answer."""
        return None if self.ending in ("timeout", "reset") else self.status


@dataclass
class Planned:
    """Something for the requests of a method and path: ``after`` of them pass, ``times`` are met.

    Both are regular expressions; the method's is for the whole, the path's is found anywhere.
    """

    method: str
    path: str
    times: int
    after: int

    def matches(self, method: str, path: str) -> bool:
        """Whether a request is this one's to meet or to let pass."""
        named = self.times > 0 and re.fullmatch(self.method, method)
        return bool(named and re.search(self.path, path))

    def meets(self) -> bool:
        """Count a request that matches; False lets it pass."""
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        return True


@dataclass
class PlannedAction(Planned):
    """Something that happens just before a request is answered."""

    action: Callable[[], object]


@dataclass
class PlannedFault(Planned):
    """A fault; applied means that the request takes effect all the same."""

    fault: Fault
    applied: bool
    headers: Mapping[str, str]
    body: object

    def __post_init__(self) -> None:
        if not isinstance(self.fault, int) and self.fault not in get_args(Transport):
            known = ", ".join(get_args(Transport))
            raise ValueError(f"{self.fault!r} is no fault; take a status or one of: {known}")

    def answer(self, success: int, body: bytes) -> Answer:
        """The answer instead of the one that was due, of this status and body (empty: unknown)."""
        status, body = _OK if success == _NO_CONTENT else success, body or _STAND_IN
        match self.fault:
            case "timeout" | "reset" as ending:
                return Answer(status, ending=ending)
            case "broken json":
                return Answer(status, body[: len(body) // 2], JSON_HEADERS)
            case "cut short":
                return Answer(status, body, JSON_HEADERS, "cut short")
            case "html":
                return Answer(_BAD_GATEWAY, _PAGE, {"content-type": "text/html"})
            case int() as status:
                return self._answer_with(status)

    def _answer_with(self, status: int) -> Answer:
        headers = {name.lower(): value for name, value in self.headers.items()}
        message = _MESSAGES.get(status, "Server Error")
        if headers.get("x-ratelimit-remaining") == "0":
            message = "API rate limit exceeded for installation ID 1."
        elif "retry-after" in headers:
            message = SECONDARY_LIMIT
        own = {"message": message, "documentation_url": DOCUMENTATION_URL, "status": str(status)}
        body = own if self.body is None else self.body
        text = body if isinstance(body, str) else json.dumps(body)
        return Answer(status, text.encode(), {**JSON_HEADERS, **headers})
