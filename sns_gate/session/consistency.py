"""What workers claim of their samples beside what this process saw pass: a gain must be in both.

A worker times itself, and the code under test runs in it. So what each answer took to come beyond
what it claims is compared between the sides. What the worker does besides, on either side, cancels;
time that its queue was held is the host's and is taken off. Other work on the host delays a sample
and its answer alike, or the answer alone, on either side; so each answer is set against its own
claim, and what counts is seen in most blocks.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sns_gate.types import SIDES, Block, Reason, Side

#: A claim is doubted where half of the gain is missing, a tenth of the sample, and more than any
#: pipe takes.
_SHARE_OF_GAIN, _SHARE_OF_SAMPLE, _FLOOR_US = 0.5, 0.1, 50.0
_LATE_FLOOR_US = 15.0
#: Median deviations of the baseline's own blocks that are no sign of anything.
_NOISES = 4.0
_FEWEST_BLOCKS = 3


def doubtful(blocks: Sequence[Block], calls: int, share: float = _SHARE_OF_SAMPLE) -> Reason | None:
    """Why the candidate's times are not believed, None where they may be.

    Args:
        blocks: of one case.
        calls: in a sample.
        share: of a sample that may go missing: half of what a verdict would turn on, and no more
            than a tenth.
    """
    share = min(share, _SHARE_OF_SAMPLE)
    late = _works_on(blocks, share)
    if late is not None:
        return late
    seen = [block for block in blocks if block.wall_us]
    if len(seen) < _FEWEST_BLOCKS:
        return None
    claimed = {side: _claimed_us(seen, side, calls) for side in SIDES}
    gain = claimed["baseline"] - claimed["candidate"]
    hidden, noise = _hidden_us(seen, calls)
    visible, longest = gain - hidden, max(claimed.values())
    if hidden <= max(_SHARE_OF_GAIN * abs(gain), share * longest, _FLOOR_US + _NOISES * noise):
        return None
    return Reason(
        code="wall-disagrees",
        text=f"the candidate's samples claim to take {gain:.0f} µs less than the baseline's, and "
        f"of that {visible:.0f} µs could be seen from outside, so its times are not believed; let "
        f"the callable do all of its work before it returns, and leave clocks and timers alone",
    )


def _works_on(blocks: Sequence[Block], share: float) -> Reason | None:
    """Says that the candidate's work runs on after its region's end, and the baseline's does not.

    Other streams are no part of a region, and a flush of the cache between regions hides them from
    the clock on the wall.
    """
    late = [block.late_us for block in blocks if block.late_us is not None]
    if len(late) < _FEWEST_BLOCKS:
        return None
    baseline_us, candidate_us = (statistics.median(side) for side in zip(*late, strict=True))
    call_us = 1e3 * statistics.median(ms for block in blocks for ms in block.counted("candidate"))
    more_us = candidate_us - baseline_us
    if more_us <= max(share * call_us, _LATE_FLOOR_US):
        return None
    return Reason(
        code="work-outlives",
        text=f"after the timed call had ended the candidate kept the device busy for "
        f"{more_us:.0f} µs longer than the baseline, so not all of its work was timed; let the "
        f"current stream wait for the others before the callable returns",
    )


def _claimed_us(blocks: Sequence[Block], side: Side, calls: int) -> float:
    """A sample by the side's own word."""
    return 1e3 * calls * statistics.median(ms for block in blocks for ms in block.counted(side))


def _hidden_us(blocks: Sequence[Block], calls: int) -> tuple[float, float]:
    """How much longer beyond their claims the candidate's answers took, and what of it is noise.

    What is hidden is hidden in every block, and what the host does to either side is not: of the
    blocks' differences, each between the least delayed answers of both, all but a quarter are as
    large as this. How far the baseline's own blocks lie apart is what the host does.
    """
    baseline, candidate = (
        [min(_beyond_us(block, side, calls)) for block in blocks] for side in SIDES
    )
    differences = sorted(c - b for b, c in zip(baseline, candidate, strict=True))
    middle = statistics.median(baseline)
    noise = statistics.median(abs(value - middle) for value in baseline)
    return differences[len(differences) // 4], noise


def _beyond_us(block: Block, side: Side, calls: int) -> list[float]:
    """How much longer than it claims each of a side's answers took to come."""
    indices = (i for i in range(block.settling, len(block.sides)) if block.sides[i] == side[0])
    return [
        block.wall_us[i] - (block.held_us[i] or 0.0) - 1e3 * calls * block.ms[i] for i in indices
    ]
