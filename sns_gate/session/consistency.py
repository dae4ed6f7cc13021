"""What workers claim of their samples beside what this process saw pass: a gain must be in both.

A worker times itself, and the code under test runs in it. So the difference between the sides'
times is compared with the difference between the times that their answers took to come. What the
worker does besides, on either side, cancels; time that its queue was held is the host's and is
taken off.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sns_gate.types import SIDES, Block, Reason, Side

#: A claim is doubted where half of the gain is missing, a tenth of the sample, and more than any
#: pipe takes, and where that is so in most of the blocks.
_SHARE_OF_GAIN, _SHARE_OF_SAMPLE, _FLOOR_US = 0.5, 0.1, 50.0
_SHARE_OF_BLOCKS = 0.75
_FEWEST = 3


def doubtful(blocks: Sequence[Block], calls: int) -> Reason | None:
    """Why the candidate's times are not believed, None where they may be.

    Args:
        blocks: of one case.
        calls: in a sample.
    """
    seen = [_block(block, calls) for block in blocks if block.wall_us]
    if len(seen) < _FEWEST:
        return None
    gains, walls, samples = (statistics.median(column) for column in zip(*seen, strict=True))
    lacking = [gain - wall for gain, wall, _ in seen]
    allowed = max(_SHARE_OF_GAIN * abs(gains), _SHARE_OF_SAMPLE * samples, _FLOOR_US)
    clearly = sum(lack > allowed / 2 for lack in lacking)
    # Medians, since other work on the host takes whole milliseconds now and then, from either side.
    if statistics.median(lacking) <= allowed or clearly < _SHARE_OF_BLOCKS * len(lacking):
        return None
    return Reason(
        code="wall-disagrees",
        text=f"the candidate's samples claim to take {gains:.0f} µs less than the baseline's, and "
        f"of that {walls:.0f} µs could be seen from outside, so its times are not believed; let "
        f"the callable do all of its work before it returns, and leave clocks and timers alone",
    )


def _block(block: Block, calls: int) -> tuple[float, float, float]:
    """How much less the candidate's samples take by its own word, by the wall, and a sample."""
    claimed = {side: 1e3 * calls * statistics.median(block.counted(side)) for side in SIDES}
    wall = {side: statistics.median(_wall_us(block, side)) for side in SIDES}
    return (
        claimed["baseline"] - claimed["candidate"],
        wall["baseline"] - wall["candidate"],
        max(claimed.values()),
    )


def _wall_us(block: Block, side: Side) -> list[float]:
    indices = (i for i in range(block.settling, len(block.sides)) if block.sides[i] == side[0])
    return [block.wall_us[i] - (block.held_us[i] or 0.0) for i in indices]
