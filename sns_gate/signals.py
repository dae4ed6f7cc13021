"""Signals that ask a command to end become exceptions, so that it ends through its clean-up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from sns_gate.errors import Terminated


@contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``Terminated``, SIGINT ``KeyboardInterrupt``; each once."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        # A second signal must not cut the clean-up short; SIGKILL always can.
        for caught in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(caught, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Terminated(number)

    before = {}
    for caught in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(caught) is not signal.SIG_IGN:
            before[caught] = signal.signal(caught, end)
    try:
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)
