"""One block: a baseline worker and a candidate worker alternating at one placement."""

from __future__ import annotations

import hashlib
import math
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from sns_gate import protocol
from sns_gate.errors import CallRaised, WorkerDied
from sns_gate.protocol import Recipe, Reply, Request, Sampled
from sns_gate.stats import block_effect
from sns_gate.types import SIDES, Block, CpuEvidence, GpuEvidence, Side

PAIRS = 8
SETTLING_PAIRS = 4
MAX_SETTLING_PAIRS = 24
CPU_SETTLING_PAIRS = 2
#: The device clock has settled when two successive means of 8 readings agree this closely.
SETTLED_SHARE = 0.004

#: No call is shorter; nothing below is a time.
_SHORTEST_NS = 1e-3

_R = TypeVar("_R", bound=Reply)


class Worker(Protocol):
    """What a block needs of a worker; a recorded one serves as well as a process."""

    side: Side
    index: int
    name: str

    def send(self, request: Request) -> None:
        """Send one request without waiting."""

    def receive(self, expected: type[_R], timeout_s: float) -> _R:
        """Wait for the reply to the last request."""

    def ask(self, request: Request, expected: type[_R], timeout_s: float) -> _R:
        """Send one request and wait for its reply."""

    def lent(self, folder: Path) -> AbstractContextManager[None]:
        """Let the workers write in a folder, whoever they run as."""


class Observer(Protocol):
    """Reads evidence around a block, never inside one."""

    def before(self) -> None:
        """Take the readings that later ones are compared with."""

    def after(self) -> tuple[GpuEvidence | None, CpuEvidence | None]:
        """What changed since ``before``."""


@dataclass(frozen=True)
class Timing:
    """How a case's blocks are taken.

    Attributes:
        recipe: how one sample is taken.
        pairs: counted pairs in a block.
        on_gpu: whether there is a device clock to settle.
        setup_timeout_s: for setting a case up.
        sample_timeout_s: for one sample.
    """

    recipe: Recipe
    pairs: int
    on_gpu: bool
    setup_timeout_s: float
    sample_timeout_s: float


@dataclass(frozen=True)
class Spot:
    """Which block of which case this is.

    Attributes:
        case: the case's id.
        placement: both sides draw the same data at it.
        number: of the block in its case; every other block begins with the candidate.
        seed: of the check.
    """

    case: str
    placement: int
    number: int
    seed: int


def rotation(
    placement: int, baseline: Sequence[Worker], candidate: Sequence[Worker], rng: random.Random
) -> list[tuple[Worker, Worker]]:
    """Who meets whom at one placement: a row of a Latin square, in random order.

    Over as many placements as there are workers each pair meets once. Where one side has fewer
    workers, each worker of the other still gets one block a placement.
    """
    count = max(len(baseline), len(candidate))
    pairs = [
        (
            baseline[(i + placement * count) % len(baseline)],
            candidate[(i + placement) % len(candidate)],
        )
        for i in range(count)
    ]
    rng.shuffle(pairs)
    return pairs


def stable_seed(*parts: object) -> int:
    """A seed from texts and numbers that is the same in every process."""
    text = "|".join(map(str, parts))
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") >> 1


def run_block(
    workers: tuple[Worker, Worker], spot: Spot, timing: Timing, observer: Observer
) -> Block:
    """Place the case in both workers, settle, alternate, and free it again.

    Args:
        workers: the baseline's and the candidate's.
        spot: which block of which case this is.
        timing: how samples are taken.
        observer: for the evidence around the counted samples.

    Raises:
        WorkerError: a worker failed; neither is to be used for this case again.
        ValueError: a time that is not positive and finite.
    """
    stopwatch = _Stopwatch()
    place_both(workers, spot, timing.recipe, timing.setup_timeout_s)
    placing_s = stopwatch.lap()
    taken: list[tuple[Side, Sampled]] = []
    settling = _settle(workers, spot.number, timing, taken)
    observer.before()
    settling_s = stopwatch.lap()
    for pair in range(timing.pairs):
        _take_pair(workers, spot.number + pair, timing, taken)
    sampling_s = stopwatch.lap()
    gpu, cpu = observer.after()
    for worker in workers:
        worker.send(protocol.Release())
    for worker in workers:
        worker.receive(protocol.Released, timing.setup_timeout_s)
    seconds = {
        "placing_s": round(placing_s + stopwatch.lap(), 4),
        "settling_s": round(settling_s, 4),
        "sampling_s": round(sampling_s, 4),
    }
    return _block(workers, spot.placement, settling, taken, (gpu, cpu)).model_copy(update=seconds)


class _Stopwatch:
    def __init__(self) -> None:
        self._last_s = time.monotonic()

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self._last_s = self._last_s, time.monotonic()
        return self._last_s - before


def place_both(
    workers: tuple[Worker, Worker],
    spot: Spot,
    recipe: Recipe | None,
    timeout_s: float,
    *,
    warm_up: bool = True,
) -> list[protocol.Placed]:
    """Set a case up in both workers at once, on the same data at their own addresses.

    Args:
        workers: the baseline's and the candidate's.
        spot: which data, and where.
        recipe: how it will be sampled, None where it will not.
        timeout_s: for it.
        warm_up: whether it is called before anything else is asked.

    Returns:
        what the baseline's and the candidate's worker said of it.

    Raises:
        WorkerError: of the first side that failed, once both have answered.
        BothRaised: the code under test raised on both sides.
    """
    shared = (spot.seed, spot.case, spot.placement)
    for worker in workers:
        padding = stable_seed(*shared, worker.side, worker.index)
        worker.send(protocol.Place(spot.case, stable_seed(*shared), padding, recipe, warm_up))
    return receive_both(workers, protocol.Placed, timeout_s)


def receive_both(workers: tuple[Worker, Worker], expected: type[_R], timeout_s: float) -> list[_R]:
    """Wait for both workers' replies to their last request.

    Raises:
        WorkerError: of the first side that failed, once both have answered.
        BothRaised: the code under test raised on both sides.
    """
    replies, errors = [], []
    for worker in workers:
        try:
            replies.append(worker.receive(expected, timeout_s))
        except CallRaised as error:
            errors.append((worker, error))
    if len(errors) == len(workers):
        raise BothRaised(errors[0][1], errors[1][1])
    if errors:
        for worker in workers:
            if worker is not errors[0][0]:
                worker.ask(protocol.Release(), protocol.Released, timeout_s)
        raise errors[0][1]
    return replies


class BothRaised(CallRaised):
    """The code under test raised on both sides.

    Args:
        baseline: what the baseline's worker said.
        candidate: what the candidate's worker said.
    """

    def __init__(self, baseline: CallRaised, candidate: CallRaised) -> None:
        fatal = baseline.fatal or candidate.fatal
        super().__init__("both sides", candidate.text, candidate.traceback, fatal=fatal)
        self.baseline = baseline
        self.candidate = candidate


def _settle(
    workers: tuple[Worker, Worker], number: int, timing: Timing, taken: list[tuple[Side, Sampled]]
) -> int:
    """Alternate under the case's own load until the device clock stops drifting, within bounds."""
    least = SETTLING_PAIRS if timing.on_gpu else CPU_SETTLING_PAIRS
    for pair in range(MAX_SETTLING_PAIRS):
        if pair >= least and (not timing.on_gpu or _settled(taken)):
            break
        _take_pair(workers, number + pair, timing, taken)
    return len(taken)


def _settled(taken: Sequence[tuple[Side, Sampled]]) -> bool:
    window = 2 * SETTLING_PAIRS
    clocks = [sample.device_mhz for _, sample in taken if sample.device_mhz is not None]
    if len(clocks) < len(taken):
        return True  # nothing to settle by
    half = window // 2
    late, early = statistics.fmean(clocks[-half:]), statistics.fmean(clocks[-window:-half])
    return abs(late - early) <= SETTLED_SHARE * early


def _take_pair(
    workers: tuple[Worker, Worker], parity: int, timing: Timing, taken: list[tuple[Side, Sampled]]
) -> None:
    """Two adjacent samples, one a side; the side that begins alternates: A B B A."""
    first, second = workers if parity % 2 == 0 else workers[::-1]
    for worker in (first, second):
        start_ns = time.monotonic_ns()
        sample = worker.ask(protocol.TakeSample(), Sampled, timing.sample_timeout_s)
        if not _SHORTEST_NS <= sample.call_ns < math.inf:
            raise WorkerDied(
                worker.name, f"took a sample of {sample.call_ns:g} ns, which is no time"
            )
        # Its own word for that is not needed: this process saw how long it took.
        taken.append((worker.side, replace(sample, wall_ns=time.monotonic_ns() - start_ns)))


def _block(
    workers: tuple[Worker, Worker],
    placement: int,
    settling: int,
    taken: Sequence[tuple[Side, Sampled]],
    evidence: tuple[GpuEvidence | None, CpuEvidence | None],
) -> Block:
    gpu, cpu = evidence
    counted = taken[settling:]
    times: dict[str, list[float]] = {
        worker.side: [s.call_ns for side, s in counted if side == worker.side] for worker in workers
    }
    if cpu is not None:
        switches = sum(sample.involuntary for _, sample in counted)
        cpu = cpu.model_copy(update={"involuntary_switches": switches})
    return Block(
        placement=placement,
        baseline_worker=workers[0].index,
        candidate_worker=workers[1].index,
        settling=settling,
        sides="".join(side[0] for side, _ in taken),
        ms=tuple(round(sample.call_ns / 1e6, 9) for _, sample in taken),
        device_mhz=tuple(_rounded(sample.device_mhz) for _, sample in taken),
        held_us=tuple(_rounded(sample.held_ns and sample.held_ns / 1e3) for _, sample in taken),
        wall_us=tuple(round(sample.wall_ns / 1e3, 1) for _, sample in taken),
        late_us=_late_us(counted),
        log_speedup=block_effect(times["baseline"], times["candidate"]),
        gpu=gpu,
        cpu=cpu,
    )


def _late_us(taken: Sequence[tuple[Side, Sampled]]) -> tuple[float, float] | None:
    """Each side's median time from a sample's end to an idle device; None where nobody measures."""
    baseline, candidate = (
        [s.late_ns / 1e3 for side, s in taken if side == wanted and s.late_ns is not None]
        for wanted in SIDES
    )
    if not (baseline and candidate):
        return None
    return round(statistics.median(baseline), 1), round(statistics.median(candidate), 1)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
