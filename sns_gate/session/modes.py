"""Whether workers or placements fall into two speeds, or one stands apart; it estimates nothing."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from sns_gate.replicates import enough_workers, spread_of
from sns_gate.stats import RULING_RATIO
from sns_gate.types import SIDES, Block, Reason, Side

#: Values fall into two groups where the gap between them is this many times what is inside both.
WORKER_GAP_RATIO = 2.0
#: Many values of a normal distribution show such a gap in fewer than 1 case in 200.
BLOCK_GAP_RATIO = 1.0
_MIN_BLOCKS = 16


def two_speeds(blocks: Sequence[Block], precision: float) -> Reason | None:
    """What to say of workers or placements in two groups, further apart than the precision.

    Two speeds need to be seen twice each: a group of one may be that one's own misfortune.

    Args:
        blocks: of one case.
        precision: half-width that was asked for, on the log scale.
    """
    mean = statistics.fmean(block.log_speedup for block in blocks)
    for side in _ruling(blocks):
        levels = _levels(blocks, side, mean)
        gap, slower = _gap(list(levels.values()), WORKER_GAP_RATIO)
        if gap > precision:
            return _reason(slower, len(levels), f"{len(levels)} {side} workers", gap)
    if len(blocks) >= _MIN_BLOCKS:
        gap, slower = _gap([-block.log_speedup for block in blocks], BLOCK_GAP_RATIO)
        if gap > precision:
            return _reason(slower, len(blocks), f"the candidate's {len(blocks)} placements", gap)
    return None


def _ruling(blocks: Sequence[Block]) -> list[Side]:
    """The sides whose workers differ by more than their blocks' noise would make them."""
    if not enough_workers(blocks):
        return []
    found = spread_of(blocks)
    parts = zip(SIDES, (found.baseline, found.candidate), strict=True)
    return [side for side, part in parts if part[0] > RULING_RATIO * found.block[0]]


def _levels(blocks: Sequence[Block], side: Side, mean: float) -> dict[int, float]:
    """How much slower than its side each worker is, on the log scale."""
    sign = 1 if side == "baseline" else -1
    found: dict[int, list[float]] = {}
    for block in blocks:
        worker = block.baseline_worker if side == "baseline" else block.candidate_worker
        found.setdefault(worker, []).append(sign * (block.log_speedup - mean))
    return {worker: statistics.fmean(values) for worker, values in found.items()}


def _gap(values: Sequence[float], ratio: float) -> tuple[float, int]:
    """The largest gap between sorted values and how many lie above it; 0 where it parts nothing."""
    ordered = sorted(values)
    gaps = [high - low for low, high in itertools.pairwise(ordered)]
    if len(gaps) < 2:  # noqa: PLR2004 (two values always lie apart)
        return 0.0, 0
    gap = max(gaps)
    inside = ordered[-1] - ordered[0] - gap
    return (gap, len(gaps) - gaps.index(gap)) if gap > ratio * inside else (0.0, 0)


def _reason(slower: int, count: int, whole: str, gap: float) -> Reason:
    if 1 in (slower, count - slower):
        pct = 100 * (math.expm1(gap) if slower == 1 else -math.expm1(-gap))
        how = "slower" if slower == 1 else "faster"
        text = (
            f"one of {whole} stands apart, {pct:.1f}% {how} than the rest, so the interval is "
            f"wide; add --processes to see whether it is a second speed"
        )
        return Reason(code="one-apart", text=text)
    return Reason(
        code="bimodal",
        text=f"{100 * math.expm1(gap):.1f}% slower in {slower} of {whole} than in the rest, as "
        f"autotuning or placement can make it, so the interval is wide; fix the choice, or add "
        f"--processes",
    )
