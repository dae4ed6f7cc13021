"""What the plots and tables of a case's blocks are drawn from; it draws nothing and judges nothing.

No text of a user gets in here, so that the plotting library, which has a markup of its own, never
meets one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from sns_gate.report import words
from sns_gate.report.html.events import Happening, happenings
from sns_gate.types import SIDES, Block, CaseResult, GateResult, Record, Side, Speedup

#: Pairs that a page draws; beyond, every second or third one is, and the page says so.
MOST_PAIRS = 300_000
#: The share of pairs at either end that does not widen the axis.
_TAIL = 0.01
_MARGIN = 0.06
_DIGITS = 5
#: No pair is told from a larger ratio; an edited file may hold one.
_MOST_RATIO, _LEAST_RATIO = 1e6, 1e-5


class BlockFigure(Record):
    """One block: its drawn pairs with the clocks behind them, and its row of the table.

    ``pairs`` are speedups; ``baseline_mhz`` and ``candidate_mhz`` align with them and are empty
    where the device has no clock of its own. Null is a reading that is missing.
    """

    placement: int
    baseline: int
    candidate: int
    speedup: float
    pairs: tuple[float | None, ...]
    baseline_mhz: tuple[int | None, ...]
    candidate_mhz: tuple[int | None, ...]
    nvml_mhz: tuple[int, int] | None
    happenings: tuple[Happening, ...]
    cells: tuple[str, ...]


class GroupFigure(Record):
    """The blocks that share a process or a placement, with the mean of their speedups."""

    label: str
    blocks: tuple[int, ...]
    mean: float


class MeasurementFigure(Record):
    """One measurement of a case, in time order.

    Attributes:
        title: which one it is, empty where there is but one.
        axis: lowest and highest speedup that the plot of pairs shows.
        blocks_axis: the same for the plot of blocks.
        outside: drawn pairs beyond the axis, which stand at its edge.
    """

    title: str
    blocks: tuple[BlockFigure, ...]
    groups: tuple[GroupFigure, ...]
    axis: tuple[float, float]
    blocks_axis: tuple[float, float]
    outside: int
    interval: tuple[float, float, float] | None


class CaseFigure(Record):
    """All that is drawn of a case."""

    least: float
    most: float
    every: int
    measurements: tuple[MeasurementFigure, ...]


def thinning(result: GateResult) -> int:
    """Every how many pairs one is drawn, so that the page stays small; 1 for all."""
    samples = sum(
        len(block.sides) - block.settling
        for case in result.cases
        for _, blocks, _ in _titled(case)
        for block in blocks
    )
    return max(1, math.ceil(samples / 2 / MOST_PAIRS))


def figure_of(case: CaseResult, every: int) -> CaseFigure | None:
    """What is drawn of a case, None where no block was measured.

    Args:
        case: finished.
        every: one of so many pairs is drawn, from ``thinning``.
    """
    shown = [one for one in _titled(case) if one[1]]
    if not shown:
        return None
    edges = case.least, 1 + case.tolerance
    near = edges if edges[0] < edges[1] else edges[:1]
    return CaseFigure(
        least=_rounded(edges[0]),
        most=_rounded(edges[1]),
        every=every,
        measurements=tuple(_measurement(*one, edges=near, every=every) for one in shown),
    )


def _titled(case: CaseResult) -> Iterator[tuple[str, tuple[Block, ...], Speedup | None]]:
    """A case's measurements; an unconfirmed case has one, which stands twice in its result."""
    first = case.screening
    if first is None or first.blocks == case.blocks:
        yield "", case.blocks, case.speedup
    else:
        yield "Second measurement, in new processes", case.blocks, case.speedup
        yield "First measurement", first.blocks, first.speedup


def _measurement(
    title: str,
    blocks: tuple[Block, ...],
    speedup: Speedup | None,
    *,
    edges: Sequence[float],
    every: int,
) -> MeasurementFigure:
    drawn = tuple(_block(block, every) for block in blocks)
    pairs = [pair for block in drawn for pair in block.pairs if pair is not None]
    interval = (speedup.low, speedup.estimate, speedup.high) if speedup else None
    known = [*(interval or ()), *(block.speedup for block in drawn)]
    middle = statistics.median(known)
    known.append(min(edges, key=lambda edge: abs(edge - middle)))
    low, high = _axis(pairs, known)
    return MeasurementFigure(
        title=title,
        blocks=drawn,
        groups=tuple(_groups(blocks)),
        axis=(low, high),
        blocks_axis=_axis((), known),
        outside=sum(not low <= pair <= high for pair in pairs),
        interval=interval,
    )


def _axis(pairs: Sequence[float], known: Sequence[float]) -> tuple[float, float]:
    """Room for whatever is judged and for all but the outermost pairs."""
    ordered = sorted(pairs)
    tail = int(len(ordered) * _TAIL)
    ends = [*known, *(ordered[tail : len(ordered) - tail] or ordered)]
    low, high = min(ends), max(ends)
    margin = _MARGIN * (high - low or low)
    return _rounded(low - margin), _rounded(high + margin)


def _block(block: Block, every: int) -> BlockFigure:
    pairs = [_ratio(b, c) for b, c in zip(*(block.counted(side) for side in SIDES), strict=False)]
    read = any(mhz is not None for mhz in block.device_mhz)
    clocks = [_clocks(block, side)[: len(pairs) : every] if read else () for side in SIDES]
    return BlockFigure(
        placement=block.placement,
        baseline=block.baseline_worker,
        candidate=block.candidate_worker,
        speedup=_speedup(block),
        pairs=tuple(pairs[::every]),
        baseline_mhz=clocks[0],
        candidate_mhz=clocks[1],
        nvml_mhz=block.gpu.nvml_mhz if block.gpu else None,
        happenings=happenings(block),
        cells=tuple(_cells(block)),
    )


def _cells(block: Block) -> Iterator[str]:
    """The block's row: placement, processes, speedup, times, clocks, what happened."""
    yield from map(str, (block.placement, block.baseline_worker, block.candidate_worker))
    yield f"{_speedup(block):.4f}"
    for side in SIDES:
        times = block.counted(side)
        yield words.duration(statistics.median(times)) if times else ""
    read = [mhz for side in SIDES for mhz in block.clocks(side)]
    yield f"{statistics.fmean(read):.0f}" if read else ""
    yield "{} to {}".format(*block.gpu.nvml_mhz) if block.gpu else ""
    yield "; ".join(one.text for one in happenings(block))


def _groups(blocks: Sequence[Block]) -> Iterator[GroupFigure]:
    kinds = {
        "baseline": [block.baseline_worker for block in blocks],
        "candidate": [block.candidate_worker for block in blocks],
        "placement": [block.placement for block in blocks],
    }
    for kind, numbers in kinds.items():
        for number in sorted(set(numbers)):
            members = tuple(at for at, found in enumerate(numbers) if found == number)
            logs = [math.log(_speedup(blocks[at])) for at in members]
            mean = _rounded(math.exp(statistics.fmean(logs)))
            yield GroupFigure(label=f"{kind} {number}", blocks=members, mean=mean)


def _clocks(block: Block, side: Side) -> tuple[int | None, ...]:
    return tuple(
        None if mhz is None else round(mhz)
        for mhz, letter in list(zip(block.device_mhz, block.sides, strict=True))[block.settling :]
        if letter == side[0]
    )


def _ratio(baseline_ms: float, candidate_ms: float) -> float | None:
    """A pair's speedup, null where an edited file holds what no clock gives."""
    valid = baseline_ms > 0 and candidate_ms > 0 and baseline_ms / candidate_ms < _MOST_RATIO
    return _rounded(baseline_ms / candidate_ms) if valid else None


def _speedup(block: Block) -> float:
    """The block's speedup, held to what can be drawn whatever a file says."""
    most = math.log(_MOST_RATIO)
    return max(_LEAST_RATIO, _rounded(math.exp(max(-most, min(most, block.log_speedup)))))


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
