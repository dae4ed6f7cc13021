"""The device under the workers: its evidence, its fingerprint, one case at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from sns_gate.clocks import LockedClockPolicy
from sns_gate.config import Settings
from sns_gate.env.machine import fingerprint
from sns_gate.errors import ConfigError, WorkerError
from sns_gate.rig.device import Device
from sns_gate.session import (
    CaseOutcome,
    CaseRun,
    Expected,
    Observer,
    PlannedCase,
    Progress,
    broken_by,
    measure_case,
    refuse_code,
    refuse_unlike,
    summarise,
)
from sns_gate.signals import to_its_end
from sns_gate.telemetry import CpuObserver, Foreigners, GpuObserver, open_gpu, take
from sns_gate.types import SIDES, EnvironmentFingerprint, RevisionInfo, Side, Verdict
from sns_gate.workers import WorkerPool


class Machine:
    """The device under the workers: its evidence, its fingerprint, one case at a time."""

    def __init__(self, settings: Settings, device: Device, pool: WorkerPool) -> None:
        ready = [worker.ready for side in SIDES for worker in pool.workers(side) if worker.ready]
        self._settings = settings
        self._device = device
        self._gpu = open_gpu(ready[0].gpu_uuid) if device.on_gpu else None
        self._timer_step_ns = ready[0].timer_step_ns
        self._rehearsed: set[str] = set()
        found = {side: self.fingerprint(side, pool) for side in SIDES}
        self._differing = found["baseline"].differences(found["candidate"])
        self._policy = _policy(settings, ready[0].gpu_uuid)
        cpu = CpuObserver(pool.pids)
        self._observer: Observer = (
            GpuObserver(self._gpu, cpu, self._foreigners(pool)) if device.on_gpu else cpu
        )

    def _foreigners(self, pool: WorkerPool) -> Foreigners:
        return Foreigners.between(self._device.before, take(self._gpu), len(pool.pids()))

    def __enter__(self) -> Self:
        """Pin the clocks, if that was asked.

        Raises:
            ClockLockError: they could not be pinned; the device is as it was.
        """
        if self._policy is not None:
            self._policy.apply()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the clocks back."""
        if self._policy is not None:
            to_its_end(self._policy.restore)

    def measure(
        self,
        case: PlannedCase,
        pool: WorkerPool,
        deadline_s: float,
        progress: Progress,
        cases: int,
    ) -> CaseOutcome:
        """One case, with workers in the place of lost ones, refused unless both sides' code ran.

        Where a side's workers cannot be had any more, the case is broken by that side.

        Args:
            case: to measure.
            pool: of its workers.
            deadline_s: monotonic time after which no placement is added.
            progress: hears of each block.
            cases: in the check.
        """
        start = time.monotonic()
        try:
            pool.revive()
        except WorkerError as error:
            return self._broken(case, pool, error, cases)
        benchmark = case.spec.id.partition("[")[0]
        expected = self._expected(pool, cases)
        run = CaseRun(
            case=case.spec.id,
            mode=case.spec.mode,
            precision=self._settings.precision_for(case.tolerance),
            placements=self._settings.placements,
            device=self._device.name,
            seed=case.seed(self._settings.seed),
            setup_timeout_s=self._settings.timeout,
            deadline_s=deadline_s,
            timer_step_ns=self._timer_step_ns,
            rehearse=benchmark not in self._rehearsed,
            free_bytes=self._gpu.free_bytes() if self._gpu else None,
            outputs=case.outputs,
            tier_of=expected.tier_of,
        )
        self._rehearsed.add(benchmark)
        measured = measure_case(pool.workers, run, self._observer, progress)
        outcome = summarise(case, measured, expected, time.monotonic() - start)
        if outcome.result.verdict in (Verdict.BROKEN, Verdict.WRONG, Verdict.ADDED):
            return outcome
        try:
            proven = _proof(pool)
        except WorkerError as error:
            return self._broken(case, pool, error, cases)
        silent = [side for side in case.proven if not proven.get(side)]
        return refuse_code(refuse_unlike(outcome, self._differing), silent)

    def _broken(
        self, case: PlannedCase, pool: WorkerPool, error: WorkerError, cases: int
    ) -> CaseOutcome:
        """What a case is for which there are no workers; where they were ended, that is raised."""
        if pool.closed:
            raise error
        return summarise(case, broken_by(error), self._expected(pool, cases), 0.0)

    def _expected(self, pool: WorkerPool, cases: int) -> Expected:
        return Expected(
            on_gpu=self._device.on_gpu,
            nvml=self._gpu is not None,
            locked_mhz=self._policy.pinned_sm_mhz if self._policy else None,
            blocks=pool.processes * self._settings.placements,
            cases=cases,
        )

    def describe(
        self,
        infos: tuple[RevisionInfo, RevisionInfo],
        roots: Mapping[Side, Path],
        pool: WorkerPool,
    ) -> tuple[RevisionInfo, RevisionInfo]:
        """Both sides with their fingerprints and the files of their code seen loaded.

        Args:
            infos: what is known of them already.
            roots: of their files, which are named relative to it.
            pool: the living workers.
        """
        loaded = pool.prove()
        baseline, candidate = (
            info.model_copy(
                update={
                    "fingerprint": self.fingerprint(side, pool),
                    "loaded": tuple(short_file(file, roots[side]) for file in loaded[side]),
                }
            )
            for side, info in zip(SIDES, infos, strict=True)
        )
        return baseline, candidate

    def fingerprint(self, side: Side, pool: WorkerPool) -> EnvironmentFingerprint:
        """A side's toolchain on this device."""
        loaded = pool.first(side).loaded
        return fingerprint(loaded.fingerprint if loaded else {}, self._gpu)


def _proof(pool: WorkerPool) -> dict[Side, tuple[str, ...]]:
    """As ``WorkerPool.prove``, with new workers for those lost since their last block."""
    try:
        return pool.prove()
    except WorkerError:
        pool.revive()
        return pool.prove()


def _policy(settings: Settings, uuid: str | None) -> LockedClockPolicy | None:
    request = settings.clock_request
    if request is None:
        return None
    if uuid is None:
        raise ConfigError(
            "clocks can be pinned on a GPU alone, and this check runs on the CPU; leave --clocks "
            "out"
        )
    mhz, watts = request
    full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    return LockedClockPolicy(mhz, watts, uuid=full, state_dir=settings.state_dir)


def short_file(path: str, root: Path) -> str:
    """A file's path relative to a folder, where it lies inside."""
    file = Path(path)
    return str(file.relative_to(root)) if file.is_relative_to(root) else path
