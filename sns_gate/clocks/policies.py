"""Clock policies: leave the clocks alone, or pin them, prove it, and give them back."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import psutil

from sns_gate.clocks.journal import (
    ClockJournal,
    create,
    journal_path,
    prepare,
    read,
)
from sns_gate.clocks.supervisor import Supervisor
from sns_gate.clocks.undo import POWER_READBACK_TOLERANCE_W, undo
from sns_gate.clocks.writer import ClockWriter, writer_for
from sns_gate.config import DEFAULT_STATE_DIR
from sns_gate.errors import ClockLockError, ClockRefused
from sns_gate.signals import to_its_end
from sns_gate.telemetry import Gpu, open_gpu, uuid_of
from sns_gate.tiers import IDLE, LOCK_TOLERANCE_MHZ

LOCK_READBACK_TOLERANCE_MHZ = LOCK_TOLERANCE_MHZ
_READBACK_S = 2.0
_POLL_S = 0.05
_CONFIRMING_READINGS = 8


class ClockPolicy(Protocol):
    """What a measurement runs under."""

    locked: bool

    def apply(self) -> None:
        """Establish the clocks.

        Raises:
            ClockLockError: they could not be established; the device is as it was.
        """

    def restore(self) -> None:
        """Give them back; harmless where nothing was applied."""


@runtime_checkable
class Confirming(Protocol):
    """A policy that can prove its clocks once there is load."""

    def confirm(self, read_mhz: Callable[[], float | None]) -> None:
        """Raise ClockLockError unless the clock is held; each reading is taken under load."""


class UnlockedClockPolicy:
    """Measure without pinning: honest, and the only choice on most machines."""

    locked = False

    def apply(self) -> None:
        """Change nothing."""

    def restore(self) -> None:
        """Nothing to give back."""


class LockedClockPolicy:
    """Pin one GPU's SM clock, and if asked its memory clock and power limit, and prove it.

    The request is snapped to a step that the device supports. Every change is journalled before
    it is made, and a supervisor gives it back should this process die in any way.

    Args:
        target_sm_mhz: SM clock to pin.
        power_cap_w: power limit to set meanwhile; what it was is set back.
        memory_mhz: memory clock to pin, None to leave it.
        device: torch's index of the GPU.
        uuid: the GPU itself, instead of ``device``.
        state_dir: folder of journals, shared by all who use the GPU.
        helper: command of the root-owned helper, None for the usual way.

    Attributes:
        locked: whether the clocks are pinned.
        pinned_sm_mhz: the step that the request was snapped to, once applied.
    """

    def __init__(  # noqa: PLR0913 (the specification's two, and where to find what)
        self,
        target_sm_mhz: int,
        power_cap_w: int | None = None,
        *,
        memory_mhz: int | None = None,
        device: int = 0,
        uuid: str | None = None,
        state_dir: Path = DEFAULT_STATE_DIR,
        helper: Sequence[str] | None = None,
    ) -> None:
        self.target_sm_mhz = target_sm_mhz
        self.power_cap_w = power_cap_w
        self.memory_mhz = memory_mhz
        self.locked = False
        self.pinned_sm_mhz: int | None = None
        self._device, self._uuid, self._helper = device, uuid, helper
        self._state_dir = state_dir
        self._journal: tuple[Path, ClockJournal] | None = None
        self._supervisor: Supervisor | None = None
        self._changed = False

    def apply(self) -> None:
        """Pin the clocks and read them back.

        An idle device may read lower than it is pinned to; then ``confirm`` proves it under load.

        Raises:
            ClockLockError: the clocks could not be established; the device is as it was.
        """
        uuid, gpu = self._find()
        self.pinned_sm_mhz = self._snap(gpu)
        try:
            lifeline = self._write_down(uuid, gpu, self.pinned_sm_mhz)
            self._pin(writer_for(uuid, self._helper, lifeline), gpu, self.pinned_sm_mhz)
        except BaseException as first:
            # A write may have reached the device; left there it would pin it for everybody after.
            try:
                self.restore()
            except ClockLockError as second:
                raise ClockLockError(f"{first}; then {second}") from first
            raise
        self.locked = True

    def confirm(self, read_mhz: Callable[[], float | None]) -> None:
        """Prove the clock on the device under load.

        Args:
            read_mhz: takes one reading of the device's own clock while it works.

        Raises:
            ClockLockError: the clock is not held; it has been given back.
        """
        readings = [mhz for _ in range(_CONFIRMING_READINGS) if (mhz := read_mhz()) is not None]
        found = statistics.fmean(readings) if readings else None
        wanted = self.pinned_sm_mhz or self.target_sm_mhz
        if found is not None and abs(found - wanted) <= LOCK_READBACK_TOLERANCE_MHZ:
            return
        self.restore()
        seen = "no clock" if found is None else f"{found:.0f} MHz"
        raise ClockLockError(
            f"{wanted} MHz was pinned and the device runs at {seen} under load, so the lock does "
            f"not hold; ask for a lower clock, which needs less power"
        )

    def restore(self) -> None:
        """Give everything back that was changed.

        Raises:
            ClockLockError: something is still changed; the journal stays.
        """
        self.locked = False
        if self._journal is not None:
            path, journal = self._journal
            if self._changed:
                undo(path, journal, self._helper)
            else:
                path.unlink(missing_ok=True)
            self._journal, self._changed = None, False
        if self._supervisor is not None:
            self._supervisor.release()
            self._supervisor = None

    def _find(self) -> tuple[str, Gpu]:
        uuid = self._uuid or uuid_of(self._device, os.environ)
        gpu = open_gpu(uuid) if uuid is not None else None
        if uuid is None or gpu is None:
            raise ClockLockError(
                f"NVML does not know GPU {self._uuid or self._device}, so its clocks cannot be "
                f"pinned; 'sns-gate doctor' says what NVML sees"
            )
        return uuid, gpu

    def _snap(self, gpu: Gpu) -> int:
        steps = gpu.supported_sm_mhz()
        return min(
            steps, key=lambda step: abs(step - self.target_sm_mhz), default=self.target_sm_mhz
        )

    def _write_down(self, uuid: str, gpu: Gpu, sm_mhz: int) -> int:
        """The supervisor first, then the journal that it obeys, before anything is changed.

        Whenever this process dies, either nothing is changed or somebody is there to undo it.

        Returns:
            The supervisor's lifeline: it acts once nobody holds that any more.
        """
        path = journal_path(prepare(self._state_dir), uuid)
        limit_w = gpu.power_limit_w() if self.power_cap_w is not None else None
        if self.power_cap_w is not None and limit_w is None:
            raise ClockLockError(f"the power limit of {uuid} cannot be read, so it stays as it is")
        journal = ClockJournal(
            uuid=uuid,
            sm_mhz=sm_mhz,
            memory_mhz=self.memory_mhz,
            power_limit_w=limit_w,
            pid=os.getpid(),
            started_at=psutil.Process().create_time(),
        )
        if path.exists():
            raise ClockLockError(_held_by(path, uuid))
        self._supervisor = Supervisor(path, journal, self._helper)
        try:
            create(path, journal)
        except FileExistsError:
            raise ClockLockError(_held_by(path, uuid)) from None
        except OSError as error:
            raise ClockLockError(f"{path} cannot be written: {error.strerror}") from None
        self._journal = (path, journal)
        return self._supervisor.lifeline

    def _pin(self, writer: ClockWriter, gpu: Gpu, sm_mhz: int) -> None:
        if self.memory_mhz is not None:
            self._change(partial(writer.lock_memory, self.memory_mhz))
        if self.power_cap_w is not None:
            self._change(partial(writer.set_power_w, self.power_cap_w))
            now_w = gpu.power_limit_w()
            if now_w is None or abs(now_w - self.power_cap_w) > POWER_READBACK_TOLERANCE_W:
                raise ClockLockError(
                    f"requested {self.power_cap_w} W cap, device reports {now_w} W"
                )
        self._change(partial(writer.lock_sm, sm_mhz))
        deadline = time.monotonic() + _READBACK_S
        while not _reads_back(gpu, sm_mhz):
            if time.monotonic() > deadline:
                raise ClockLockError(f"requested {sm_mhz} MHz, device reports {gpu.sm_mhz()} MHz")
            time.sleep(_POLL_S)

    def _change(self, write: Callable[[], None]) -> None:
        """Write, and count it as done unless the answer was a refusal.

        A signal or a time limit may come after the device has heard it; a helper that is left
        running would even write after everything was given back, so a signal waits for it.
        """
        before, self._changed = self._changed, True
        try:
            to_its_end(write)
        except ClockRefused:
            self._changed = before
            raise


def _reads_back(gpu: Gpu, sm_mhz: int) -> bool:
    now = gpu.sm_mhz()
    if now is None:
        return False
    idle_below = bool((gpu.reasons() or 0) & IDLE) and now < sm_mhz
    return abs(now - sm_mhz) <= LOCK_READBACK_TOLERANCE_MHZ or idle_below


def _held_by(path: Path, uuid: str) -> str:
    other = read(path)
    if other is not None and other.owner_alive:
        return (
            f"the clocks of {uuid} are pinned by process {other.pid} ({path}), so they are not "
            f"ours to change; wait for it"
        )
    return (
        f"a journal of pinned clocks is left at {path}, so the state of {uuid} is unknown; run "
        f"'sns-gate restore' first"
    )
