"""Messages as lines on standard streams, behind a mark that no shell prints."""

from __future__ import annotations

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from sns_gate.errors import GateError, NothingCompared, RefusedRun, UsageError, WorkerError
from sns_gate.outpost.messages import Answer, Failure, Greeting, Message, Request

#: Where the outpost's own words begin, whatever was printed before.
MARK = b"sns-gate-outpost: "
_REQUESTS: TypeAdapter[Request] = TypeAdapter(Request)
_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)
_T = TypeVar("_T")


def encoded(message: Message) -> bytes:
    """One line of JSON, newline included.

    Raises:
        UsageError: a name in it is no UTF-8, and JSON has no other.
    """
    try:
        return message.model_dump_json(by_alias=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise UsageError(
            f"a name is no UTF-8, so launchers cannot be told of it: {error}; name files, folders "
            f"and parameters in UTF-8, or measure here"
        ) from None


def greeting(message: Greeting) -> bytes:
    """The first line; a newline ends a banner that has none."""
    return b"\n" + MARK + encoded(message)


def request(line: bytes) -> Request:
    """Read what the coordinator asks.

    Raises:
        ValueError: it is no request.
    """
    return _read(_REQUESTS, line)


def answer(line: bytes) -> Answer:
    """Read what an outpost says.

    Raises:
        ValueError: it is no answer; the message does not quote all of it.
    """
    return _read(_ANSWERS, line)


def _read(adapter: TypeAdapter[_T], line: bytes) -> _T:
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{first['msg']}{f' at {where}' if where else ''}") from None


def failure(error: GateError) -> Failure:
    """An error as it travels.

    Raises:
        GateError: it is none that a request ends in.
    """
    match error:
        case WorkerError():
            return Failure(
                error="worker", text=error.text, worker=error.worker, traceback=error.traceback
            )
        case RefusedRun():
            return Failure(error="refused", text=error.text, code=error.code)
        case NothingCompared():
            return Failure(error="nothing", text=str(error))
        case UsageError():
            return Failure(error="usage", text=str(error))
        case _:
            raise error


def raised(failed: Failure, where: str) -> GateError:
    """The same error at the coordinator, with the place that it comes from."""
    match failed.error:
        case "worker":
            return WorkerError(f"{where}: {failed.worker}", failed.text, failed.traceback)
        case "refused":
            return RefusedRun(failed.code, f"{where}: {failed.text}")
        case "nothing":
            return NothingCompared(f"{where}: {failed.text}")
        case "usage":
            return UsageError(f"{where}: {failed.text}")
