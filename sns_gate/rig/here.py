"""Measuring on this machine: a station on every device that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from sns_gate import protocol, session
from sns_gate.config import Settings
from sns_gate.errors import UsageError, WorkerError
from sns_gate.rig.device import Device
from sns_gate.rig.functions import FunctionsRig
from sns_gate.rig.machine import Machine
from sns_gate.rig.mount import Rig
from sns_gate.rig.stations import Infos, Stage, Team, all_at_once, refuse_unlike
from sns_gate.session import CaseOutcome, PlannedCase, Progress
from sns_gate.types import SIDES, EnvironmentFingerprint, Explanation, Reason, Side
from sns_gate.workers import WorkerPool


@dataclass(frozen=True)
class LocalStation:
    """A device of this machine with the workers of both sides on it, and what watches them."""

    team: Team
    device: Device
    pool: WorkerPool
    machine: Machine

    @property
    def name(self) -> str:
        """What the result calls it."""
        return self.device.name

    @property
    def lost(self) -> bool:
        """Whether nothing can be measured here any more; this machine is not lost."""
        return False

    @property
    def loaded(self) -> Mapping[Side, protocol.Loaded | None]:
        """What a worker of each side has loaded."""
        return {side: self.pool.first(side).loaded for side in SIDES}

    @property
    def disclosures(self) -> Sequence[Reason]:
        """What a reader should know of how the workers started."""
        return self.pool.disclosures

    def measure(
        self, case: PlannedCase, deadline_s: float, progress: Progress, cases: int
    ) -> CaseOutcome:
        """One case; as ``Machine.measure``."""
        return self.machine.measure(case, self.pool, deadline_s, progress, cases)

    def describe(self, known: Infos) -> Infos:
        """What is known of both sides, with fingerprints and the files of code seen loaded."""
        try:
            return self._described(known)
        except WorkerError:  # what the last case did to it showed late; a new one says the same
            return self._described(known)

    def _described(self, known: Infos) -> Infos:
        self.pool.revive()
        return self.machine.describe(known, self.team.rig.roots, self.pool)

    def fingerprint(self) -> EnvironmentFingerprint:
        """The candidate's toolchain on this device."""
        return self.machine.fingerprint("candidate", self.pool)

    def close(self) -> None:
        """End the workers; who waits for them is told that they are gone."""
        self.pool.close()


class Here:
    """The devices of this machine; as ``Places``.

    Args:
        rig: whose settings and devices hold.
        further: rigs of further baselines.
    """

    def __init__(self, rig: Rig | FunctionsRig, further: Sequence[Rig] = ()) -> None:
        self._rig, self._further = rig, further
        self._devices = rig.devices

    @property
    def device(self) -> str:
        """All devices as ``--device`` names them."""
        return self._devices.name

    @property
    def count(self) -> int:
        """Cases that are measured at the same time."""
        return len(self._devices.each)

    @property
    def is_named(self) -> bool:
        """Whether each case says where it was measured."""
        return self.count > 1

    def prepare(self, stage: Stage) -> None:
        """Build every side's code, saying so first."""
        self._rig.build(stage)
        for rig in self._further:
            rig.build(stage, ("baseline",))

    def to_themselves(self, stage: Stage, check: str = "") -> AbstractContextManager[None]:
        """Keep other checks off the devices meanwhile; those of one check know each other."""
        return self._devices.to_themselves(stage, check)

    def own_cases(
        self, rig: Rig | FunctionsRig
    ) -> AbstractContextManager[Callable[[], protocol.Loaded | None]]:
        """The baseline's own cases, listed while the workers start."""
        return rig.baseline_cases()

    @contextmanager
    def stations(self, team: Team, name: str, processes: int) -> Iterator[list[LocalStation]]:
        """Open a station on every device, all at once, and close them again.

        Raises:
            RefusedRun: devices are unlike, or fewer than three workers a side could open one.
            WorkerError: a worker could not start for another reason.
        """
        devices = self._devices.each
        with ExitStack() as stack:
            pools = _opened(stack, [team.start(name, processes, device) for device in devices])
            found = []
            for device, pool in zip(devices, pools, strict=True):
                machine = stack.enter_context(Machine(self._rig.settings, device, pool))
                found.append(LocalStation(team, device, pool, machine))
            refuse_unlike(found)
            yield found

    def taken_apart(
        self, team: Team, cases: Sequence[PlannedCase]
    ) -> Iterator[tuple[PlannedCase, Explanation | Reason | None]]:
        """Each case with its explanation, or why it has none, from one worker a side."""
        settings = self._rig.settings
        with team.start("first", 1, self._devices.first) as pool:
            for case in cases:
                pool.revive()
                try:
                    yield (
                        case,
                        session.explain_case(
                            pool.workers, case.spec.id, settings.seed, settings.timeout
                        ),
                    )
                except WorkerError as error:
                    yield case, unexplained(case.id, error)


def require_here(settings: Settings, what: str) -> None:
    """Refuse what is done on this machine alone where launchers lead elsewhere.

    Raises:
        UsageError: they do.
    """
    if settings.launcher:
        raise UsageError(
            f"'{settings.launcher[0]}' leads elsewhere, and {what} works at this machine alone; "
            f"run it on that machine, or give --launcher '' for this one"
        )


def unexplained(what: str, error: Exception) -> Reason:
    """Why something has no explanation."""
    return Reason(code="not-explained", text=f"{what} could not be taken apart: {error}")


def _opened(stack: ExitStack, pools: Sequence[WorkerPool]) -> list[WorkerPool]:
    """Start all pools at once; what has started is closed however this ends."""
    for pool in pools:
        stack.callback(pool.close)
    if len(pools) == 1:
        return [pools[0].__enter__()]

    def end() -> None:
        for pool in pools:
            pool.close()

    all_at_once([partial(_enter, pool) for pool in pools], end)
    return list(pools)


def _enter(pool: WorkerPool) -> None:
    pool.__enter__()
