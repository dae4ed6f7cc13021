"""What more measuring would bring, and what a check can see; it decides no verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from sns_gate.stats.clustered import Spread, half_width, spread

#: Multipliers k of the half-width for 95% power with confirmation, by a side's workers less one,
#: from simulation (docs/statistics.md): the smallest slowdown that two stages see is least + k·h.
POWER_MULTIPLIERS = ((2, 4.9), (3, 3.3), (5, 2.6), (7, 2.3), (11, 2.2))
#: Expected false confirmations in a check were every first measurement wrong.
FALSE_ALARM_SHARE = 1.25
#: Bounds of the pairs in a block; fewer make no median, more buy almost nothing.
MIN_PAIRS, MAX_PAIRS = 4, 24
#: More blocks are taken, even where they cannot reach the precision, while they may narrow the
#: interval to this share of its width.
WORTHWHILE_SHARE = 0.8
#: Processes rule a case where their part is this many times the blocks'; by chance it is so in
#: about one case in twenty (F distribution of 3 and 9 degrees of freedom).
RULING_RATIO = 4.0


def detectable_slowdown_pct(
    least: float, half_width: float, worker_freedom: int, cases: int = 1
) -> float:
    """The smallest slowdown (in % of time) that a check like this one calls slower 95 times in 100.

    Args:
        least: the speedup below which a case is slower, 1 / (1 + tolerance) as a rule; where more
            is asked for than 1, the answer can be negative.
        half_width: of the 95% interval, on the log scale.
        worker_freedom: workers of the side that has fewer, less one.
        cases: in the check; with many of them a confirmation must be surer of each.
    """
    from scipy.special import stdtrit

    freedoms, multipliers = zip(*POWER_MULTIPLIERS, strict=True)
    multiplier = float(np.interp(worker_freedom, freedoms, multipliers))
    level = confirmation_level(cases)
    # The second half-width, in units of the first, grows with its quantile.
    surer = stdtrit(1.5 * worker_freedom, [0.5 + level / 2, 0.975])
    return 100 * math.expm1(multiplier * float(surer[0] / surer[1]) * half_width - math.log(least))


def confirmation_level(cases: int) -> float:
    """The level of the second interval: with many cases it must be surer of each.

    Both stages must err to the same side, so that all cases together are called slower by chance
    in 2.5% times ``FALSE_ALARM_SHARE`` of checks, and in simulation of every disturbance in fewer
    than 5%.
    """
    return 1 - 2 * min(0.025, FALSE_ALARM_SHARE / max(cases, 1))


def predicted_half_width(
    effects: Sequence[float],
    baseline_workers: Sequence[Hashable],
    candidate_workers: Sequence[Hashable],
    placements: Sequence[Hashable],
    blocks: int,
) -> float:
    """The 95% half-width to expect at ``blocks`` blocks of the same workers (log scale)."""
    rows = np.asarray([effects], dtype=float)
    found = spread(rows, baseline_workers, candidate_workers, placements)
    variance, freedom = found.at(blocks).combined()
    return float(half_width(variance, freedom)[0])


def in_vain(found: Spread, most: int, precision: float) -> NDArray[np.bool_]:
    """Whether more blocks of the same workers would neither reach the precision nor help much.

    Processes must be seen to rule: where they do not, their part looks large by chance too often.

    Args:
        found: the parts of the variance now.
        most: blocks that may be taken in all.
        precision: half-width that was asked for.
    """
    width, best = half_width(*found.combined()), half_width(*found.at(most).combined())
    processes = np.maximum(found.baseline, found.candidate)
    ruled = processes > RULING_RATIO * found.block
    return np.asarray(ruled & (best > precision) & (best > WORTHWHILE_SHARE * width))


def worthwhile_pairs(
    pair_variance: float, block_variance: float, pairs: int, fixed_s: float, pair_s: float
) -> int:
    """Pairs a block that make the narrowest interval a second, once a rotation has been seen.

    A block's variance is that of its placement and, over the pairs, that of their median (π/2 that
    of their mean); a block costs what placing and settling take, and its pairs. The optimum is
    sqrt(noise / placement · fixed cost / cost of a pair), as in any two-stage sample.

    Args:
        pair_variance: of one pair's log ratio.
        block_variance: of a block about its workers' levels.
        pairs: in each block so far.
        fixed_s: seconds to place, settle and free a block.
        pair_s: seconds a pair.
    """
    noise = math.pi / 2 * pair_variance
    placement = block_variance - noise / pairs
    if placement <= 0 or pair_s <= 0:
        return MAX_PAIRS
    wanted = math.sqrt(noise / placement * fixed_s / pair_s)
    return max(MIN_PAIRS, min(MAX_PAIRS, math.ceil(wanted)))
