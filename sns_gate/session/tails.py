"""Samples that take longer now and then, which a median does not show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from sns_gate.types import Block, Reason

_FEWEST_BLOCKS = 3


def slow_samples(blocks: Sequence[Block], tolerance: float) -> Reason | None:
    """Says that the candidate's mean is slower than its median by more than the tolerance.

    Other work on the machine delays some sample of either side in some blocks. What the code does,
    such as every fourth call in which a cache is built anew, delays one side's in nearly all: all
    but a quarter of the blocks show at least this much. Identical code on an H200 showed 0.03% at
    most.

    Args:
        blocks: of one case.
        tolerance: the increase in time that may pass.
    """
    hidden = sorted(
        math.log(statistics.fmean(block.counted("candidate")))
        - math.log(statistics.fmean(block.counted("baseline")))
        + block.log_speedup
        for block in blocks
    )
    if len(hidden) < _FEWEST_BLOCKS:
        return None
    more = math.expm1(hidden[len(hidden) // 4])
    if more <= tolerance:
        return None
    return Reason(
        code="slow-samples",
        text=f"some of the candidate's samples take far longer than its others, and the baseline's "
        f"do not: by their mean it is {100 * more:.1f}% slower than by their median, which the "
        f"verdict rests on; do the same work in every call, or time the work that is done now and "
        f"then in a benchmark of its own",
    )
