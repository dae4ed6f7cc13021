"""Undoes what a journal names; the journal goes only when the device is as it was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sns_gate.clocks.journal import ClockJournal
from sns_gate.clocks.writer import ClockWriter, writer_for
from sns_gate.errors import ClockLockError
from sns_gate.telemetry import open_gpu

POWER_READBACK_TOLERANCE_W = 1.0
_ATTEMPTS = 3
_PAUSE_S = 0.2


def undo(path: Path, journal: ClockJournal, helper: Sequence[str] | None = None) -> None:
    """Unpin the clocks, set the power limit back, and remove the journal.

    Every step is tried even where another failed, and the whole is tried again.

    Raises:
        ClockLockError: something is still changed; the journal stays for ``sns-gate restore``.
    """
    failures: list[str] = []
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_S)
        failures = _undo_once(journal, helper)
        if not failures:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            return
    raise ClockLockError(
        f"{journal.uuid} could not be given back: {'; '.join(failures)}; its journal {path} stays, "
        f"run 'sns-gate restore' once the cause is mended"
    )


def _undo_once(journal: ClockJournal, helper: Sequence[str] | None) -> list[str]:
    try:
        writer = writer_for(journal.uuid, helper)
    except ClockLockError as error:
        return [str(error)]
    steps: list[Callable[[], None]] = [writer.reset_sm]
    if journal.memory_mhz is not None:
        steps.append(writer.reset_memory)
    if journal.power_limit_w is not None:
        steps.append(lambda: _set_power_back(writer, journal))
    failures = []
    for step in steps:
        try:
            step()
        except ClockLockError as error:
            failures.append(str(error))
    return failures


def _set_power_back(writer: ClockWriter, journal: ClockJournal) -> None:
    limit_w = journal.power_limit_w or 0.0
    writer.set_power_w(limit_w)
    gpu = open_gpu(journal.uuid)
    now_w = gpu.power_limit_w() if gpu else None
    if now_w is None or abs(now_w - limit_w) > POWER_READBACK_TOLERANCE_W:
        raise ClockLockError(f"the power limit is {now_w} W, not {limit_w} W")
