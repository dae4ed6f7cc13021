"""Where a speedup stands on the axis of all cases: linear within tolerances, shrinking beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sns_gate.types import CaseResult

#: The axis shows at least so many tolerances to either side.
_LEAST_TOLERANCES = 2.0
#: A file may ask for a tolerance that no check takes; the axis still needs a unit.
_LEAST_UNIT = 1e-6


def reach(cases: Sequence[CaseResult]) -> float:
    """Half the axis, on the asinh scale of tolerances, wide enough for every interval."""
    ends = [
        abs(_scaled(end, case.tolerance))
        for case in cases
        if case.speedup is not None
        for end in (case.speedup.low, case.speedup.high)
    ]
    return max([math.asinh(_LEAST_TOLERANCES), *ends])


def place(speedup: float, tolerance: float, reach: float) -> float:
    """Where a speedup stands: -1 at the slow end, 0 where nothing changed, 1 at the fast end.

    Args:
        speedup: baseline / candidate; what is no speedup, 0 and below, stands at the slow end.
        tolerance: of its case, which is the axis's unit.
        reach: of all cases that share the axis.
    """
    if speedup <= 0:
        return -1.0
    return max(-1.0, min(1.0, _scaled(speedup, tolerance) / reach))


def _scaled(speedup: float, tolerance: float) -> float:
    return math.asinh(math.log(speedup) / math.log1p(max(tolerance, _LEAST_UNIT)))
