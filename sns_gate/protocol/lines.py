"""Messages as lines: one JSON object each."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from sns_gate.protocol.replies import Reply
from sns_gate.protocol.requests import REQUESTS, Request
from sns_gate.protocol.shared import Recipe


@dataclass(frozen=True)
class Envelope:
    """A message with the name of its type, as it stands on the line."""

    type: str
    body: dict[str, Any] = field(default_factory=dict)


def encode(message: Request | Reply) -> bytes:
    """One line of JSON, newline included."""
    body = dataclasses.asdict(message)
    return json.dumps({"type": type(message).__name__, "body": body}).encode() + b"\n"


def open_envelope(line: bytes) -> Envelope:
    """Read a line's type and body without judging the body.

    Raises:
        ValueError: the line is not such a message.
    """
    message = json.loads(line)
    if not isinstance(message, dict) or set(message) != {"type", "body"}:
        raise ValueError("not a message")
    if not isinstance(message["type"], str) or not isinstance(message["body"], dict):
        raise ValueError("not a message")  # noqa: TRY004 (one error for whatever is no message)
    return Envelope(message["type"], message["body"])


def decode_request(line: bytes) -> Request:
    """Read a request; the worker trusts the coordinator for the types of its fields.

    Raises:
        ValueError: the line is not a request.
    """
    envelope = open_envelope(line)
    kinds = {kind.__name__: kind for kind in REQUESTS}
    if envelope.type not in kinds:
        raise ValueError(f"{envelope.type} is no request")
    body = dict(envelope.body)
    if isinstance(body.get("recipe"), dict):
        body["recipe"] = Recipe(**body["recipe"])
    # JSON has no tuples, and frozen messages serve as keys.
    body = {key: tuple(v) if isinstance(v, list) else v for key, v in body.items()}
    return kinds[envelope.type](**body)  # type: ignore[no-any-return]
