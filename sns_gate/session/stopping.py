"""When a case's measurement stops and what its next blocks are like; no verdict has a say in it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sns_gate.protocol import Recipe
from sns_gate.replicates import columns, enough_workers, spread_of
from sns_gate.stats import (
    Estimate,
    clustered_estimate,
    in_vain,
    predicted_half_width,
    worthwhile_pairs,
)
from sns_gate.types import Block, Reason

#: A normal distribution's standard deviation in units of its median absolute deviation.
_NORMAL_DEVIATION = 1.4826


@dataclass(frozen=True)
class StoppingRule:
    """Stops where the interval is narrow enough, where time is up, or where more is in vain.

    Attributes:
        precision: half-width that was asked for, on the log scale.
        most: blocks that may be taken.
        deadline_s: monotonic time after which no placement is added.
        floor_ns: the smallest advance the timer shows.
        recipe: how samples are taken.
    """

    precision: float
    most: int
    deadline_s: float
    floor_ns: float
    recipe: Recipe

    def estimate(self, blocks: Sequence[Block]) -> Estimate | None:
        """The blocks' estimate, None below three workers a side."""
        if not enough_workers(blocks):
            return None
        calls = self.recipe.calls * self.recipe.regions
        floor = self.floor_ns / (1e6 * min(min(block.ms) for block in blocks) * calls)
        return clustered_estimate(*columns(blocks), floor)

    def stop(self, blocks: Sequence[Block]) -> Reason | bool | None:
        """Why to stop here: True where it is precise enough, a reason else, None to go on."""
        found = self.estimate(blocks)
        if found is None or found.half_width() <= self.precision or len(blocks) >= self.most:
            return True
        if time.monotonic() > self.deadline_s:
            width = 100 * found.half_width()
            return Reason(
                code="budget-spent",
                text=f"its share of the budget is spent at ±{width:.2f}%; --budget raises it",
            )
        if not in_vain(spread_of(blocks), self.most, self.precision)[0]:
            return None
        best = predicted_half_width(*columns(blocks), self.most)
        return Reason(
            code="needs-more-processes",
            text=f"its processes differ, so more placements would reach ±{100 * best:.2f}% at "
            f"best, and ±{100 * self.precision:.2f}% was asked; --processes narrows it further",
        )


def pairs_of_next(blocks: Sequence[Block], pairs: int) -> int:
    """Pairs in each further block, by where the blocks so far varied and what they cost."""
    if not enough_workers(blocks):
        return pairs
    of_mean = float(spread_of(blocks).block[0])
    seconds = [(b.placing_s + b.settling_s, b.sampling_s / len(b.pair_logs())) for b in blocks]
    fixed_s, pair_s = (statistics.median(column) for column in zip(*seconds, strict=True))
    return worthwhile_pairs(
        pair_variance=statistics.median(_scatter(block.pair_logs()) for block in blocks),
        block_variance=of_mean * len(blocks),
        pairs=pairs,
        fixed_s=fixed_s,
        pair_s=pair_s,
    )


def _scatter(pairs: Sequence[float]) -> float:
    """Variance of one pair that no interrupted pair moves: by the median deviation."""
    middle = statistics.median(pairs)
    return (_NORMAL_DEVIATION * statistics.median(abs(pair - middle) for pair in pairs)) ** 2
