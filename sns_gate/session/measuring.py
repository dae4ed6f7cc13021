"""One case from preparation to its last block; precision stops it, never a verdict."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sns_gate import protocol
from sns_gate.errors import CallRaised, WorkerDied, WorkerError
from sns_gate.protocol import Calibrated, Recipe
from sns_gate.session.blocks import (
    PAIRS,
    BothRaised,
    Observer,
    Spot,
    Timing,
    Worker,
    place_both,
    rotation,
    run_block,
    stable_seed,
)
from sns_gate.session.consistency import doubtful
from sns_gate.session.modes import two_speeds
from sns_gate.session.outputs import Compared, LostByRenewal, compare_outputs, kept_answer
from sns_gate.session.recipe import choose_recipe
from sns_gate.session.stopping import StoppingRule, pairs_of_next
from sns_gate.stats import Estimate
from sns_gate.types import CHECKED, SIDES, Block, MeasurementTier, OutputCheck, Reason, Side

ROTATIONS = 3
MIN_SAMPLE_TIMEOUT_S = 30.0
SAMPLE_TIMEOUT_FACTOR = 100
#: Placements that no block has: their data comes after all others, and its first call is checked.
_UNSEEN, _UNSEEN_TIMES = 1 << 20, 2


@dataclass(frozen=True)
class Standing:
    """How far a case has come.

    Attributes:
        blocks: done.
        planned: blocks that there may be before it stops.
        pairs: counted so far.
        estimate: from the blocks so far, None where they do not carry one.
        tier: that they reach so far.
    """

    blocks: int
    planned: int
    pairs: int
    estimate: Estimate | None
    tier: MeasurementTier


class Progress(Protocol):
    """Hears how a case comes along."""

    def block_done(self, case: str, standing: Standing) -> None:
        """A block is done."""


@dataclass(frozen=True)
class CaseRun:
    """What a case's measurement needs.

    Attributes:
        case: the case's id.
        mode: as its benchmark asks.
        precision: the half-width at which measuring stops (log scale).
        placements: in one rotation.
        device: ``cpu`` or a CUDA device.
        seed: of the check.
        setup_timeout_s: for compiling and setting up.
        deadline_s: monotonic time after which no placement is added.
        timer_step_ns: the smallest advance the timer shows.
        rehearse: the workers have not run this benchmark yet.
        free_bytes: room on the device for the inputs of several workers, None where unknown.
        outputs: whether and how both sides' outputs are compared.
        tier_of: the tier that blocks reach on this machine.
    """

    case: str
    mode: str
    precision: float
    placements: int
    device: str
    seed: int
    setup_timeout_s: float
    deadline_s: float
    timer_step_ns: float
    rehearse: bool = False
    free_bytes: int | None = None
    outputs: OutputCheck = CHECKED
    tier_of: Callable[[Sequence[Block]], MeasurementTier] = lambda _: MeasurementTier.C

    @property
    def on_gpu(self) -> bool:
        """Whether there is a device clock."""
        return self.device != "cpu"


@dataclass(frozen=True)
class Measured:
    """A case that was measured to its end.

    Attributes:
        blocks: in the order in which they were taken.
        estimate: from all of them, None where the blocks do not carry one.
        recipe: how samples were taken.
        reasons: what a reader should know of how it went.
        doubt: why its times are not believed, None where they are.
        peak_bytes: of the device's memory in one call, the baseline's and the candidate's; None
            where nobody counts.
    """

    blocks: tuple[Block, ...]
    estimate: Estimate | None
    recipe: Recipe
    reasons: tuple[Reason, ...]
    doubt: Reason | None = None
    peak_bytes: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class BrokenCase:
    """A case that could not be measured, and whose side it was."""

    sides: tuple[Side, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class WrongCase:
    """A case whose sides do not return the same, so that there is nothing to time."""

    reasons: tuple[Reason, ...]


def measure_case(
    workers: Callable[[Side], Sequence[Worker]],
    run: CaseRun,
    observer: Observer,
    progress: Progress,
) -> Measured | BrokenCase | WrongCase:
    """Prepare, calibrate and alternate until the interval is as narrow as asked.

    Args:
        workers: the living workers of a side.
        run: the case and how precisely to measure it.
        observer: for the evidence around blocks.
        progress: hears of each block.
    """
    sides = {side: list(workers(side)) for side in SIDES}
    try:
        prepared = _prepare(_firsts(workers), run)
        if prepared.compared.wrong is not None:
            return WrongCase((prepared.compared.wrong,))
        if run.rehearse:
            others = [worker for side in SIDES for worker in sides[side][1:]]
            _rehearse(others, prepared.input_bytes, run)
        measured = _alternate(sides, run, prepared.timing, observer, progress)
        again = _after(_firsts(workers), run)
        if again.wrong is not None:
            return WrongCase((again.wrong,))
        reasons = (*prepared.compared.notes, *measured.reasons)
        return replace(measured, reasons=reasons, peak_bytes=prepared.peak_bytes)
    except BothRaised as error:
        # Both sides said why; a reader may need either.
        texts = (_reason(error.baseline), _reason(error.candidate))
        return BrokenCase(SIDES, texts)
    except WorkerError as error:
        return broken_by(error)


def broken_by(error: WorkerError) -> BrokenCase:
    """A case that a worker's side has broken."""
    # A reference's workers stand on the baseline's side under a name of their own.
    side: Side = "candidate" if error.worker.startswith("candidate") else "baseline"
    return BrokenCase((side,), (_reason(error),))


@dataclass(frozen=True)
class _Prepared:
    """How a case will be sampled, and what one call a side has shown already."""

    timing: Timing
    compared: Compared
    peak_bytes: tuple[int | None, int | None]
    input_bytes: int


def _prepare(pair: tuple[Worker, Worker], run: CaseRun) -> _Prepared:
    """One worker a side compiles and tunes first; both sides' measurements choose the recipe."""
    placed = place_both(pair, Spot(run.case, 0, 0, run.seed), None, run.setup_timeout_s)
    baseline, candidate = (
        worker.ask(protocol.Calibrate(run.mode), protocol.Calibrated, run.setup_timeout_s)
        for worker in pair
    )
    for worker in pair:
        worker.ask(protocol.Release(), protocol.Released, run.setup_timeout_s)
    # Tuning calls a function as often as it likes; what works in place is compared before that.
    compared = _first_calls(pair, run, 0)
    compared = replace(compared, notes=(*compared.notes, *_changed(baseline, candidate)))
    recipe = choose_recipe(baseline, candidate, run.mode, run.device)
    call_s = max(c.call_ns + c.enqueue_ns for c in (baseline, candidate)) / 1e9
    sample_s = call_s * recipe.calls * recipe.regions
    timing = Timing(
        recipe=recipe,
        pairs=PAIRS,
        on_gpu=run.on_gpu,
        setup_timeout_s=run.setup_timeout_s,
        sample_timeout_s=max(MIN_SAMPLE_TIMEOUT_S, SAMPLE_TIMEOUT_FACTOR * sample_s),
    )
    peak_bytes = (baseline.peak_bytes, candidate.peak_bytes)
    return _Prepared(timing, compared, peak_bytes, max(one.input_bytes for one in placed))


def _first_calls(pair: tuple[Worker, Worker], run: CaseRun, placement: int) -> Compared:
    """Place the case on the data of this placement in both and compare their first calls there."""
    spot = Spot(run.case, placement, 0, run.seed)
    place_both(pair, spot, None, run.setup_timeout_s, warm_up=False)
    seed = stable_seed(run.seed, run.case, placement)
    unseen = placement >= _UNSEEN
    compared = compare_outputs(pair, run.outputs, seed, run.setup_timeout_s, reach=unseen)
    if unseen and run.outputs.poison and compared.wrong is None:
        compared = compare_outputs(pair, run.outputs, seed, run.setup_timeout_s, poison=True)
    if unseen and compared.wrong is None:
        kept = kept_answer(pair, seed, run.setup_timeout_s)
        compared = replace(compared, wrong=kept)
    for worker in pair:
        worker.ask(protocol.Release(), protocol.Released, run.setup_timeout_s)
    return compared


def _after(pair: tuple[Worker, Worker], run: CaseRun) -> Compared:
    """Once more on data that neither side has seen: what was kept of earlier calls is of no use."""
    compared = Compared()
    for number in range(_UNSEEN_TIMES if run.outputs.wanted else 0):
        try:
            compared = _first_calls(pair, run, _UNSEEN + number)
        except LostByRenewal:  # what the call returned until then was the same
            _release_who_is_left(pair, run)
            break
        if compared.wrong is not None:
            break
    if compared.wrong is None:
        return compared
    text = f"after it was timed, on other data, {compared.wrong.text}"
    return replace(compared, wrong=compared.wrong.model_copy(update={"text": text}))


def _release_who_is_left(pair: tuple[Worker, Worker], run: CaseRun) -> None:
    for worker in pair:
        with contextlib.suppress(WorkerError):
            worker.ask(protocol.Release(), protocol.Released, run.setup_timeout_s)


def _changed(baseline: Calibrated, candidate: Calibrated) -> Iterator[Reason]:
    """Says where a call works on what the last one left, so that samples differ in their data."""
    sides = zip(SIDES, (baseline.changed_inputs, candidate.changed_inputs), strict=True)
    found = [f"{count} of the {side}'s" for side, count in sides if count]
    if found:
        yield Reason(
            code="inputs-changed",
            text=f"each call changes arrays that it holds ({' and '.join(found)}), so later "
            f"samples work on other values than the first",
        )


def _firsts(workers: Callable[[Side], Sequence[Worker]]) -> tuple[Worker, Worker]:
    """The first living worker of each side.

    Raises:
        WorkerDied: a side has none.
    """
    for side in SIDES:
        if not workers(side):
            raise WorkerDied(f"{side} worker 0", f"every worker of the {side} has ended")
    return workers("baseline")[0], workers("candidate")[0]


def _rehearse(workers: Sequence[Worker], input_bytes: int, run: CaseRun) -> None:
    """Every other worker runs the set-up, since imports in it can take seconds.

    They do so at once, or as many at a time as half of the free memory holds the inputs of.
    """
    seed, at_once = stable_seed(run.seed, run.case, 0), len(workers)
    if run.free_bytes is not None and input_bytes:
        at_once = max(1, min(at_once, run.free_bytes // 2 // input_bytes))
    for start in range(0, len(workers), at_once):
        batch = workers[start : start + at_once]
        for worker in batch:
            worker.send(protocol.Rehearse(run.case, seed))
        for worker in batch:
            # What cannot be set up beside others is told where it is placed alone.
            with contextlib.suppress(CallRaised):
                worker.receive(protocol.Placed, run.setup_timeout_s)


def _alternate(
    sides: dict[Side, list[Worker]],
    run: CaseRun,
    timing: Timing,
    observer: Observer,
    progress: Progress,
) -> Measured:
    blocks: list[Block] = []
    reasons: list[Reason] = []
    rng = random.Random(stable_seed(run.seed, run.case, "order"))
    limit = ROTATIONS * run.placements
    count = max(len(workers) for workers in sides.values())
    rule = StoppingRule(
        precision=run.precision,
        most=count * limit,
        deadline_s=run.deadline_s,
        floor_ns=run.timer_step_ns,
        recipe=timing.recipe,
    )
    for placement in range(limit):
        for pair in rotation(placement, sides["baseline"], sides["candidate"], rng):
            spot = Spot(run.case, placement, len(blocks), run.seed)
            blocks.append(run_block(pair, spot, timing, observer))
            progress.block_done(
                run.case,
                Standing(
                    blocks=len(blocks),
                    planned=count * max(run.placements, placement + 1),
                    pairs=sum(len(block.counted("baseline")) for block in blocks),
                    estimate=rule.estimate(blocks),
                    tier=run.tier_of(blocks),
                ),
            )
        if placement + 1 >= run.placements:
            stop = rule.stop(blocks)
            reasons.extend([stop] if isinstance(stop, Reason) else [])
            if stop is not None:
                break
            timing = replace(timing, pairs=pairs_of_next(blocks, timing.pairs))
    if not timing.recipe.held and run.on_gpu:
        reasons.append(
            Reason(
                code="queue-not-held",
                text="the call waits for the device itself, so host time is inside its samples",
            )
        )
    modes = two_speeds(blocks, run.precision)
    reasons.extend([modes] if modes else [])
    return Measured(
        tuple(blocks),
        rule.estimate(blocks),
        timing.recipe,
        tuple(reasons),
        doubtful(blocks, timing.recipe.calls * timing.recipe.regions, 2 * run.precision),
    )


def _reason(error: WorkerError) -> Reason:
    code = "out-of-memory" if _is_memory(error) else error.code
    return Reason(code=code, text=f"{error.worker}: {error.text}", detail=error.traceback)


def _is_memory(error: WorkerError) -> bool:
    return isinstance(error, CallRaised) and error.text.startswith(("OutOfMemory", "MemoryError"))
