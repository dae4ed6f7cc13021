"""Percentile, variation and the mean's interval of plain samples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def student_t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The quantile of Student's t; fractional degrees of freedom are allowed."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def mean_interval(
    values: Sequence[float], floor: float, level: float = 0.95
) -> tuple[float, float, float]:
    """The mean of independent replicates with its t interval: (low, mean, high).

    Args:
        values: one a replicate, at least two.
        floor: the smallest half-width.
        level: coverage of the interval.

    Raises:
        ValueError: fewer than two replicates.
    """
    n = len(values)
    if n < 2:  # noqa: PLR2004 (a variance needs two)
        raise ValueError("an interval needs at least two replicates")
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    half = max(student_t_quantile(0.5 + level / 2, n - 1) * deviation / math.sqrt(n), floor)
    return mean - half, mean, mean + half


def percentile(samples: Sequence[float], p: float) -> float:
    """The linearly interpolated percentile; ``p`` lies in [0, 1].

    Raises:
        ValueError: no samples, or ``p`` outside [0, 1].
    """
    if not samples:
        raise ValueError("percentile of an empty sample set")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must be in [0, 1], got {p}")
    ordered = sorted(samples)
    index = (len(ordered) - 1) * p
    low = int(index)
    high = min(low + 1, len(ordered) - 1)
    fraction = index - low
    return float(ordered[low] * (1 - fraction) + ordered[high] * fraction)


def cv_percent(samples: Sequence[float]) -> float:
    """The coefficient of variation in percent (population form); 0.0 for a zero mean.

    Raises:
        ValueError: no samples.
    """
    if not samples:
        raise ValueError("cv of an empty sample set")
    mean = statistics.mean(samples)
    if len(samples) == 1 or mean == 0:
        return 0.0
    return 100.0 * statistics.pstdev(samples) / abs(mean)
