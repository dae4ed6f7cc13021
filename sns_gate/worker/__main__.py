"""Speaks the protocol over the pipes the process was started with, until they close."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from sns_gate.protocol import (
    Calibrate,
    Failed,
    Hello,
    JudgeOutputs,
    Load,
    Place,
    ProfileCall,
    Prove,
    Rehearse,
    Release,
    Reply,
    Request,
    TakeSample,
    WriteOutput,
    decode_request,
    encode,
)
from sns_gate.worker.errors import traceback_of
from sns_gate.worker.workbench import Workbench

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MAX_TRACEBACK = 20_000


def main() -> None:
    """Serve requests from the coordinator; the process ends when its input does."""
    _die_with_parent()
    requests, replies = _take_pipes()
    workbench = Workbench()
    for line in requests:
        reply = answer(workbench, line)
        replies.write(encode(reply))
        replies.flush()
        if isinstance(reply, Failed) and reply.fatal:
            break
    # Threads and exit handlers of the code under test have no say in when this process ends.
    os._exit(0)


def answer(workbench: Workbench, line: bytes) -> Reply:
    """Do what one line asks; whatever the code under test raises becomes a reply."""
    try:
        return _dispatch(workbench, decode_request(line))
    except BaseException as error:  # noqa: BLE001 (the code under test may raise anything, SystemExit too)
        return _failure(workbench, error)


def _dispatch(workbench: Workbench, request: Request) -> Reply:
    actions: dict[type, Callable[[Any], Reply]] = {
        Hello: workbench.open,
        Load: workbench.load,
        Rehearse: workbench.rehearse,
        Place: workbench.place,
        Calibrate: workbench.calibrate,
        TakeSample: workbench.sample,
        WriteOutput: workbench.write_output,
        JudgeOutputs: workbench.judge_outputs,
        ProfileCall: workbench.profile_call,
        Release: workbench.release,
        Prove: workbench.prove,
    }
    return actions[type(request)](request)


def _failure(workbench: Workbench, error: BaseException) -> Failed:
    text = traceback_of(error)
    name = type(error).__name__
    out_of_memory = "OutOfMemory" in name or isinstance(error, MemoryError)
    # The traceback holds the frames, and they hold the tensors.
    error.__traceback__ = None
    alive = workbench.recover()
    return Failed(
        kind="out-of-memory" if out_of_memory else "raised" if alive else "device",
        error=f"{name}: {error}"[:2000] if str(error) else name,
        traceback=text[-_MAX_TRACEBACK:],
        fatal=not alive,
    )


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the protocol off descriptors 0 and 1, which belong to the code under test."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    sys.stdout.flush()
    os.dup2(2, 1)
    return requests, replies


def _die_with_parent() -> None:
    # Signals meant for the terminal go to the coordinator, which ends its workers itself.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # What the code under test sends off on its own stays below this process, and ends with it.
        prctl(_PR_SET_CHILD_SUBREAPER, 1)


if __name__ == "__main__":
    main()
