"""All workers of a check: started at once, alive for all cases, replaced where one is lost."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from sns_gate import protocol
from sns_gate.errors import (
    CallRaised,
    RefusedRun,
    RevisionError,
    WorkerDied,
    WorkerError,
    WorkerHung,
)
from sns_gate.signals import to_its_end
from sns_gate.stats import MIN_CLUSTERS
from sns_gate.types import SIDES, Reason, Side
from sns_gate.workers.environment import Launch
from sns_gate.workers.process import WorkerProcess


class WorkerPool:
    """Workers of both sides; as a context it leaves none behind.

    Args:
        launches: how each side's workers are started.
        processes: workers a side.
        start_timeout_s: time that opening the device and loading the benchmarks may take.

    Attributes:
        processes: workers a side that there should be.
        disclosures: what a reader should know of how they started.
        closed: none is started any more.
    """

    def __init__(
        self, launches: Mapping[Side, Launch], processes: int, start_timeout_s: float
    ) -> None:
        self._launches = dict(launches)
        self._set_aside: dict[Side, tuple[protocol.LoadFailure, ...]] = dict.fromkeys(SIDES, ())
        self.processes = processes
        self._timeout_s = start_timeout_s
        self._workers: dict[Side, list[WorkerProcess]] = {side: [] for side in SIDES}
        self.disclosures: list[Reason] = []
        self.closed = False

    def __enter__(self) -> Self:
        """Start every worker at once and wait until all have loaded the benchmarks.

        Raises:
            RefusedRun: fewer than three workers a side could open the device.
            WorkerError: a worker could not start for another reason.
        """
        try:
            self._fill()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill every worker."""
        to_its_end(self.close)

    def workers(self, side: Side) -> list[WorkerProcess]:
        """The living workers of a side, by index."""
        return [worker for worker in self._workers[side] if worker.alive]

    def first(self, side: Side) -> WorkerProcess:
        """The living worker of a side that has the lowest index.

        Raises:
            WorkerDied: none is left.
        """
        living = self.workers(side)
        if not living:
            raise WorkerDied(f"{side} worker 0", f"every worker of the {side} has ended")
        return living[0]

    def pids(self) -> list[int]:
        """The process ids of all living workers."""
        return [worker.pid for side in SIDES for worker in self.workers(side)]

    def revive(self, *, again: bool = False) -> None:
        """Start a new worker in the place of each that was lost; as ``__enter__``.

        Args:
            again: whether one was lost by starting already, so that another loss is an error.
        """
        for side in SIDES:
            for worker in self._workers[side]:
                if worker.alive and worker.out_of_step:
                    worker.kill()
            self._workers[side] = self.workers(side)
        self._fill(again=again)

    def prove(self) -> dict[Side, tuple[str, ...]]:
        """Files of each side's own code that every one of its workers has loaded.

        Raises:
            RevisionError: a worker has loaded the other side's code; both paths are named.
            WorkerError: a worker is gone.
        """
        own: dict[Side, list[set[str]]] = {side: [] for side in SIDES}
        living = [worker for side in SIDES for worker in self.workers(side)]
        for worker in living:
            worker.send(protocol.Prove())
        for worker in living:
            proven = worker.receive(protocol.Proven, self._timeout_s)
            own[worker.side].append(set(proven.own))
            if proven.foreign:
                hello = self._launches[worker.side].hello
                raise RevisionError(
                    f"{worker.name} loaded {proven.foreign[0]}, which is the other side's code, "
                    f"instead of its own under {hello.own_roots[-1]}, so both sides would be the "
                    f"same; set 'pythonpath' or 'build' so that each side finds its own"
                )
        return {side: tuple(sorted(set.intersection(*own[side]))) for side in SIDES if own[side]}

    def close(self) -> None:
        """Kill every worker and its descendants; none is started after that."""
        self.closed = True
        for side in SIDES:
            for worker in self._workers[side]:
                worker.kill()

    def _fill(self, *, again: bool = False) -> None:
        if self.closed:
            raise WorkerError("the workers", "were ended while more of them were wanted")
        started: list[WorkerProcess] = []
        for side in SIDES:
            taken = {worker.index for worker in self._workers[side]}
            for index in sorted(set(range(self.processes)) - taken):
                worker = WorkerProcess(self._launches[side], index)
                self._workers[side].append(worker)
                started.append(worker)
            self._workers[side].sort(key=lambda worker: worker.index)
        try:
            shut_out = self._open(started)
        except WorkerDied as error:
            raise self._unready(error) from None
        self._require_enough(shut_out, len(started))
        lost = self._load([worker for worker in started if worker.alive])
        if not lost:
            return
        found = [side for side in lost if self._find_killers(side)]
        chance = [death for side, death in lost.items() if side not in found]
        if chance and again:
            raise chance[0]
        for death in chance:
            text = f"{death}; a worker started in its place did not"
            self.disclosures.append(Reason(code="worker-restarted", text=text))
        self.revive(again=bool(chance))

    def _load(self, workers: Sequence[WorkerProcess]) -> dict[Side, WorkerError]:
        """Have the benchmarks loaded by all at once; the sides of which a worker was lost."""
        lost: dict[Side, WorkerError] = {}
        for worker in workers:
            worker.send(self._launches[worker.side].load)
        deadline_s = time.monotonic() + self._timeout_s
        for worker in workers:
            try:
                loaded = worker.receive(protocol.Loaded, _left(deadline_s))
            except (WorkerDied, WorkerHung) as death:
                lost[worker.side] = death
            else:
                aside = self._set_aside[worker.side]
                worker.loaded = replace(loaded, failures=(*loaded.failures, *aside))
        return lost

    def _disclose_removed(self, started: Sequence[WorkerProcess]) -> None:
        """Name what was taken out of the import system, once a side."""
        for side in SIDES:
            ready = [w.ready for w in started if w.side == side and w.ready is not None]
            for what in sorted({text for found in ready for text in found.removed_finders}):
                text = f"taken out of the {side}'s workers, as it serves other code: {what}"
                self.disclosures.append(Reason(code="import-removed", text=text))

    def _find_killers(self, side: Side) -> bool:
        """Set the benchmark files aside that end a worker which loads them; whether any does."""
        launch = self._launches[side]
        killers, left = [], list(zip(launch.load.files, launch.load.fallbacks, strict=True))
        for file, fallback in left:
            one = replace(launch.load, files=(file,), fallbacks=(fallback,))
            probe = WorkerProcess(replace(launch, load=one), -1)
            try:
                probe.ask(launch.hello, protocol.Ready, self._timeout_s)
                probe.ask(one, protocol.Loaded, self._timeout_s)
            except (WorkerDied, WorkerHung) as death:
                killers.append(protocol.LoadFailure(file, death.text, death.traceback))
            finally:
                probe.kill()
        if not killers:
            return False
        dead = {failure.file for failure in killers}
        kept = [(file, fallback) for file, fallback in left if file not in dead]
        load = replace(
            launch.load, files=tuple(f for f, _ in kept), fallbacks=tuple(b for _, b in kept)
        )
        self._launches[side] = replace(launch, load=load)
        self._set_aside[side] = (*self._set_aside[side], *killers)
        return True

    def _open(self, started: list[WorkerProcess]) -> list[WorkerError]:
        """Have all of them open the device at once; why some could not."""
        lost: list[WorkerError] = []
        for worker in started:
            worker.send(self._launches[worker.side].hello)
        deadline_s = time.monotonic() + self._timeout_s
        for worker in started:
            try:
                worker.ready = worker.receive(protocol.Ready, _left(deadline_s))
            except CallRaised as error:
                worker.kill()
                lost.append(error)
        self._disclose_removed(started)
        return lost

    def _require_enough(self, lost: Sequence[WorkerError], started: int) -> None:
        for side in SIDES:
            count = len(self.workers(side))
            if count >= min(MIN_CLUSTERS, self.processes):
                continue
            if not lost:  # the device let all of them in
                raise WorkerDied(f"{side} worker 0", f"workers of the {side} keep ending")
            raise RefusedRun(
                "too-few-workers",
                f"only {count} of {self.processes} {side} workers could open the device, and a "
                f"verdict needs {MIN_CLUSTERS}: {_why(lost)}",
            )
        if lost:
            self.disclosures.append(
                Reason(
                    code="fewer-workers",
                    text=f"{len(lost)} of {started} workers could not open the device, so "
                    f"the intervals are wider: {lost[0].text}",
                )
            )

    def _unready(self, death: WorkerDied) -> WorkerDied:
        """What to say where a worker ends before it has answered anything."""
        python = self._launches["candidate"].command[0]
        text = (
            f"{death.text} before it had answered anything, so there are no workers; see that "
            f"{python} is a Python of 3.10 or newer, or name one with --python FILE"
        )
        return WorkerDied(death.worker, text, death.traceback)


def _left(deadline_s: float) -> float:
    """Time that all workers asked at once still have; the last ones asked had it all along."""
    return max(0.1, deadline_s - time.monotonic())


def _why(lost: Sequence[WorkerError]) -> str:
    """What kept workers out, with the next step where the text itself names none."""
    if not lost:
        return "no reason given"
    text = lost[0].text
    if "OutOfMemory" in text or "out of memory" in text:
        return f"{text}; free the device's memory"
    if "No module named" in text:
        return f"{text}; name the Python that has it with --python FILE"
    return text
