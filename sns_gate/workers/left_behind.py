"""Processes that a check started and did not live to end, found by the folder they were given."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from sns_gate.accounts import end_marked
from sns_gate.signals import to_its_end

_SWEEPS = 20


@contextmanager
def nothing_left_in(folder: Path) -> Iterator[None]:
    """End, at the end, whatever still runs of those who were given this folder."""
    try:
        yield
    finally:
        to_its_end(partial(_end_all_in, folder))


def _end_all_in(folder: Path) -> None:
    for _ in range(_SWEEPS):
        own = end_left_behind(lambda path: path.is_relative_to(folder))
        if not (own or end_marked(folder)):
            break


def end_left_behind(is_left_behind: Callable[[Path], bool]) -> list[str]:
    """Kill what still runs of checks that are gone; whatever a worker started has its variables.

    Args:
        is_left_behind: whether a path lies in the folder of a check whose processes have to end.

    Returns:
        What was killed, for people.
    """
    ended = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid == os.getpid() or process.uids().real != os.getuid():
                continue
            folder = process.environ().get("TMPDIR", "")
            if folder and is_left_behind(Path(folder)):
                ended.append(f"process {process.pid} ({process.name()})")
                process.kill()
    return ended
