"""A case's blocks as the replicates that the statistics take; it judges nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sns_gate.stats import MIN_CLUSTERS, Spread, spread
from sns_gate.types import Block


def columns(blocks: Sequence[Block]) -> tuple[list[float], list[int], list[int], list[int]]:
    """Log speedups, baseline workers, candidate workers and placements, one entry a block."""
    return (
        [block.log_speedup for block in blocks],
        [block.baseline_worker for block in blocks],
        [block.candidate_worker for block in blocks],
        [block.placement for block in blocks],
    )


def enough_workers(blocks: Sequence[Block]) -> bool:
    """Whether both sides have the workers that an interval needs."""
    _, *sides, _ = columns(blocks)
    return min(len(set(side)) for side in sides) >= MIN_CLUSTERS


def spread_of(blocks: Sequence[Block]) -> Spread:
    """What the variance of their mean is made of."""
    effects, baseline, candidate, placements = columns(blocks)
    return spread(np.array([effects]), baseline, candidate, placements)
