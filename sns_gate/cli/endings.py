"""Arguments to calls and exceptions to exit codes."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from sns_gate.cli.parser import parser_for
from sns_gate.errors import (
    GateError,
    NothingCompared,
    RefusedRun,
    Terminated,
    UsageError,
    WorkerError,
)
from sns_gate.plain import inert, plain_lines
from sns_gate.signals import signals_raise

_EXIT_FAIL, _EXIT_USAGE, _EXIT_REFUSED, _EXIT_NOTHING, _EXIT_INTERNAL = 1, 2, 3, 5, 70
_STANDARD_ERROR = 2


def run_command(given: Sequence[str]) -> int:
    """Run one command and return its exit code."""

    def run() -> int:
        options = parser_for(given).parse_args(given)
        _require_folder()
        return int(options.run(options))

    return guarded(run)


def guarded(run: Callable[[], int]) -> int:
    """The exit code of a run, or of how it ended, once that has been said to whoever still hears.

    Outputs may be gone: the terminal was closed, or the reader of a pipe left. Then the exit code
    alone tells, and the interpreter must not put another in its place when it flushes them.
    """
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what its encoding lacks is written as an escape
            stream.reconfigure(errors="backslashreplace")
    code = _ended(run)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code


def _open_what_is_closed() -> None:
    """Whoever started us may have closed standard streams; a file of ours must not become one."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 (the call's own signature)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (theirs)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _ended(run: Callable[[], int]) -> int:
    try:
        with signals_raise():
            return run()
    except (GateError, Terminated, KeyboardInterrupt) as error:
        return _expected_ending(error)
    except Exception as error:  # noqa: BLE001 (the one broad catch: a bug ends in 70, never in a pass)
        ending = _signal_behind(error)
        if ending is not None:
            return _expected_ending(ending)
        if isinstance(error, BrokenPipeError):
            return _EXIT_FAIL
        if isinstance(error, OSError) and error.errno == errno.EIO:
            return 128 + signal.SIGTERM  # the terminal is gone, and nobody reads a message
        return _say(
            f"internal {type(error).__name__}, which is a fault of sns-gate, so there is no "
            f"verdict; please report it with the lines above",
            _EXIT_INTERNAL,
            before=traceback.format_exc(),
        )


def _require_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the folder that sns-gate was started in is gone, so there is nothing to work on; "
            "start it in one that is there"
        ) from None


def _signal_behind(error: BaseException) -> BaseException | None:
    """The signal that this error came of, where a library or a clean-up made another of it."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if isinstance(found, (Terminated, KeyboardInterrupt)):
            return found
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None


def _expected_ending(error: BaseException) -> int:
    """The exit code of an ending that has a name, once it has been said."""
    match error:
        case Terminated():
            return _say(str(error), 128 + signal.SIGTERM)
        case NothingCompared():
            return _say(str(error), _EXIT_NOTHING)
        case WorkerError():
            tail = f"\n{error.traceback}" if error.traceback else ""
            return _say(f"refused: {error}{tail}", _EXIT_REFUSED)
        case RefusedRun():
            return _say(f"refused: {error}", _EXIT_REFUSED)
        case UsageError():
            return _say(str(error), _EXIT_USAGE)
        case _:
            return _say("interrupted", 128 + signal.SIGINT)


def _say(text: str, code: int, before: str = "") -> int:
    with contextlib.suppress(OSError):
        said = plain_lines(f"{before}sns-gate: {text}\n")
        sys.stderr.write(inert(said) if "GITHUB_ACTIONS" in os.environ else said)
    return code
