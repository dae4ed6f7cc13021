"""Signals that end a run through its own clean-ups, and clean-ups that no signal cuts short."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from sns_gate.errors import Terminated

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_postponed: list[BaseException] = []


@contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``Terminated``, SIGINT ``KeyboardInterrupt``; the first one alone.

    A second one must not cut the clean-up short; SIGKILL always can. A signal that is ignored
    stays so.
    """
    before = {}
    for caught in _ENDING:
        if signal.getsignal(caught) is not signal.SIG_IGN:
            before[caught] = signal.signal(caught, _end)
    try:
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def to_its_end(undo: Callable[[], None]) -> None:
    """Do this wholly: a signal that arrives meanwhile raises once it is done."""
    try:
        undo()
    finally:
        if _postponed and not _is_undoing(sys._getframe(1)):  # noqa: SLF001 (who calls, as signals' handlers are told)
            raise _postponed.pop()


def _end(number: int, frame: FrameType | None) -> None:
    for caught in _ENDING:
        signal.signal(caught, signal.SIG_IGN)
    ending = KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)
    if not _is_undoing(frame):
        raise ending
    _postponed.append(ending)


def _is_undoing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is to_its_end.__code__:
            return True
        frame = frame.f_back
    return False
