"""Signals that end a run through its own clean-ups, and clean-ups that no signal cuts short."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from sns_gate.errors import Terminated

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
#: By then whatever cannot be left by an exception is over, or the next try comes too early as well.
_AGAIN_S = 0.02
_postponed: list[BaseException] = []
#: How this run is ending, from the first signal on.
_begun: list[BaseException] = []


@contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``Terminated``, SIGINT ``KeyboardInterrupt``; the first one alone.

    A second one must not cut the clean-up short; SIGKILL always can. A signal that is ignored
    stays so.
    """
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    _begun.clear()
    before = {number: signal.signal(number, _end) for number in heard}
    unraisable, sys.unraisablehook = sys.unraisablehook, partial(_again, heard, sys.unraisablehook)
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        _begun.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


def to_its_end(undo: Callable[[], None]) -> None:
    """Do this wholly: a signal that arrives meanwhile raises once it is done."""
    try:
        undo()
    finally:
        if _postponed and not _is_undoing(sys._getframe(1)):  # noqa: SLF001 (who calls, as signals' handlers are told)
            raise _postponed.pop()


def go_on() -> None:
    """Raise once more what a signal raised before, where something kept it from ending the run.

    A library's C code may drop any exception of Python code that it calls; whoever asks for more
    work asks here first.
    """
    main = threading.current_thread() is threading.main_thread()
    if _begun and main and not _is_undoing(sys._getframe(1)):  # noqa: SLF001 (as above)
        raise _begun[0]


def _end(number: int, frame: FrameType | None) -> None:
    for caught in _ENDING:
        signal.signal(caught, signal.SIG_IGN)
    ending = KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)
    _begun[:] = [ending]
    if not _is_undoing(frame):
        raise ending
    _postponed.append(ending)


def _is_undoing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is to_its_end.__code__:
            return True
        frame = frame.f_back
    return False


def _again(heard: list[signal.Signals], otherwise: Callable[[Any], object], lost: Any) -> None:  # noqa: ANN401 (the interpreter's own type, which has no name)
    """Send a signal once more whose exception came up in a finalizer, where nothing catches it."""
    match lost.exc_value:
        case KeyboardInterrupt():
            number = int(signal.SIGINT)
        case Terminated(signal_number=number):
            pass
        case _:
            otherwise(lost)
            return
    for one in heard:
        signal.signal(one, _end)
    me = threading.get_ident()
    threading.Timer(_AGAIN_S, signal.pthread_kill, (me, number)).start()
