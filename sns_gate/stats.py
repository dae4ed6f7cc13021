"""Estimates and intervals from numbers alone; it knows nothing of files, workers or clocks."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Multipliers k of the half-width for 95% power with confirmation, by degrees of freedom, from
#: simulation (docs/statistics.md): the smallest slowdown that two stages see is tolerance + k·h.
_POWER_MULTIPLIERS = ((2, 5.6), (3, 3.9), (4, 3.3), (6, 2.7), (8, 2.5), (10, 2.4), (14, 2.3))
MIN_CLUSTERS = 3

FloatArray = NDArray[np.float64]


def student_t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The quantile of Student's t; fractional degrees of freedom are allowed."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def block_effect(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """The log speedup of one block: the median over pairs of log(baseline / candidate).

    Args:
        baseline: times of the baseline's samples, any unit, one a pair.
        candidate: times of the candidate's samples in the same unit and order.

    Raises:
        ValueError: no pairs, unequal lengths, or a time that is not positive and finite.
    """
    if not baseline or len(baseline) != len(candidate):
        raise ValueError(f"a block needs pairs, got {len(baseline)} and {len(candidate)} samples")
    times = np.array([baseline, candidate], dtype=float)
    if not np.all(np.isfinite(times) & (times > 0)):
        raise ValueError("a block needs positive finite times")
    return float(np.median(np.log(times[0] / times[1])))


@dataclass(frozen=True)
class Estimate:
    """A log speedup with the spread that it was seen to have.

    Attributes:
        log_speedup: mean over blocks of the block effects, log(baseline / candidate).
        variance: of that mean, both sides' worker clusters added.
        degrees_of_freedom: Welch's, infinite where the variance is zero.
        floor: the smallest half-width that the timer allows, on the log scale.
        blocks: number of blocks behind it.
    """

    log_speedup: float
    variance: float
    degrees_of_freedom: float
    floor: float
    blocks: int

    def half_width(self, level: float = 0.95) -> float:
        """Half the width of the two-sided interval at this level, on the log scale."""
        if self.variance == 0:
            return self.floor
        quantile = student_t_quantile(0.5 + level / 2, self.degrees_of_freedom)
        return max(quantile * math.sqrt(self.variance), self.floor)

    def bounds(self, level: float = 0.95) -> tuple[float, float]:
        """The speedup's interval (low, high) at this level."""
        half = self.half_width(level)
        return math.exp(self.log_speedup - half), math.exp(self.log_speedup + half)


def clustered_estimate(
    effects: Sequence[float],
    baseline_workers: Sequence[Hashable],
    candidate_workers: Sequence[Hashable],
    floor: float,
) -> Estimate:
    """The mean block effect with worker-clustered variance and Welch's degrees of freedom.

    Each side's variance is P/(P-1) · Σ over its workers (sum of the worker's residuals)² / n²,
    the cluster-robust variance of a mean with its small-sample factor; a worker's blocks share
    its process effect and so count together (Cameron & Miller 2015, "A Practitioner's Guide to
    Cluster-Robust Inference"). The two sides add, with Satterthwaite's degrees of freedom.

    Args:
        effects: one log speedup a block.
        baseline_workers: the baseline worker of each block.
        candidate_workers: the candidate worker of each block.
        floor: the smallest half-width, one timer step over the time measured (log scale).

    Raises:
        ValueError: fewer than two workers on a side, or unequal lengths.
    """
    n = len(effects)
    if not n == len(baseline_workers) == len(candidate_workers):
        raise ValueError("one baseline worker and one candidate worker are needed for each block")
    mean = math.fsum(effects) / n if n else math.nan
    residuals = [effect - mean for effect in effects]
    parts = [_cluster_variance(residuals, side) for side in (baseline_workers, candidate_workers)]
    variance = sum(value for value, _ in parts)
    spread = sum(value**2 / (clusters - 1) for value, clusters in parts)
    freedom = variance**2 / spread if spread > 0 else math.inf
    return Estimate(mean, variance, freedom, floor, n)


def _cluster_variance(residuals: Sequence[float], workers: Sequence[Hashable]) -> tuple[float, int]:
    sums: dict[Hashable, float] = {}
    for residual, worker in zip(residuals, workers, strict=True):
        sums[worker] = sums.get(worker, 0.0) + residual
    count = len(sums)
    if count < 2:  # noqa: PLR2004 (a variance needs two)
        raise ValueError("clustered variance needs at least two workers a side")
    total = math.fsum(value**2 for value in sums.values())
    return count / (count - 1) * total / len(residuals) ** 2, count


def detectable_slowdown_pct(least: float, half_width: float, degrees_of_freedom: float) -> float:
    """The smallest slowdown (in % of time) that a check like this one calls slower 95 times in 100.

    Args:
        least: the speedup below which a case is slower, 1 / (1 + tolerance) as a rule; where more
            is asked for than 1, the answer can be negative.
        half_width: of the 95% interval, on the log scale.
        degrees_of_freedom: of that interval.
    """
    freedoms, multipliers = zip(*_POWER_MULTIPLIERS, strict=True)
    multiplier = float(np.interp(degrees_of_freedom, freedoms, multipliers))
    return 100 * math.expm1(multiplier * half_width - math.log(least))


def predicted_half_width(
    effects: Sequence[float],
    baseline_workers: Sequence[Hashable],
    candidate_workers: Sequence[Hashable],
    blocks: int,
) -> float:
    """The 95% half-width to expect at ``blocks`` blocks of the same workers (log scale).

    The spread inside workers shrinks with more blocks, the spread between workers does not; the
    share of the second is estimated by the method of moments, and never below zero.
    """
    n = len(effects)
    estimate = clustered_estimate(effects, baseline_workers, candidate_workers, 0.0)
    within = _within_variance(effects, baseline_workers, candidate_workers)
    between = max(0.0, estimate.variance - 2 * within / n)
    variance = between + 2 * within / blocks
    quantile = student_t_quantile(0.975, estimate.degrees_of_freedom) if variance else 0.0
    return quantile * math.sqrt(variance)


def _within_variance(
    effects: Sequence[float],
    baseline_workers: Sequence[Hashable],
    candidate_workers: Sequence[Hashable],
) -> float:
    """Residual variance of a block once both workers' own means are taken out (least squares)."""
    baselines, candidates = (
        sorted(set(baseline_workers), key=str),
        sorted(set(candidate_workers), key=str),
    )
    design = np.zeros((len(effects), len(baselines) + len(candidates)))
    for row, (b, c) in enumerate(zip(baseline_workers, candidate_workers, strict=True)):
        design[row, baselines.index(b)] = 1
        design[row, len(baselines) + candidates.index(c)] = 1
    y = np.asarray(effects, dtype=float)
    fitted, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    freedom = len(y) - int(rank)
    if freedom <= 0:
        return 0.0
    return float(np.sum((y - design @ fitted) ** 2) / freedom)


def bootstrap_ci(
    samples: Sequence[float],
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0xC0FFEE,
) -> tuple[float, float]:
    """Percentile bootstrap interval of the median; the same samples always give the same one.

    Args:
        samples: at least two, any unit.
        confidence: share of resamples inside.
        n_resamples: number of resamples.
        seed: of ``random.Random``, whose draws are reproduced bit for bit.

    Raises:
        ValueError: fewer than two samples.
    """
    if len(samples) < 2:  # noqa: PLR2004 (a resample of one is that one)
        raise ValueError("bootstrap CI needs at least 2 samples")
    draws = _uniform_draws(seed, n_resamples, len(samples))
    return _percentile_bounds(_row_medians(_chosen(samples, draws)), confidence)


def ratio_ci(
    candidate: Sequence[float],
    baseline: Sequence[float],
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0xC0FFEE,
) -> tuple[float, float]:
    """Percentile bootstrap interval of the speedup median(baseline) / median(candidate).

    Both sides are resampled independently, so that the uncertainty of each is in the ratio.

    Args:
        candidate: at least two samples, in the unit of ``baseline``.
        baseline: at least two samples.
        confidence: share of resamples inside.
        n_resamples: number of resamples.
        seed: of ``random.Random``, whose draws are reproduced bit for bit.

    Raises:
        ValueError: fewer than two samples on a side, or a candidate median of zero.
    """
    if len(candidate) < 2 or len(baseline) < 2:  # noqa: PLR2004 (as above)
        raise ValueError("ratio CI needs at least 2 samples on each side")
    draws = _uniform_draws(seed, n_resamples, len(candidate) + len(baseline))
    bottom = _row_medians(_chosen(candidate, draws[:, : len(candidate)]))
    top = _row_medians(_chosen(baseline, draws[:, len(candidate) :]))
    if np.any(bottom == 0):
        raise ValueError("candidate median resampled to zero")
    return _percentile_bounds(top / bottom, confidence)


def _uniform_draws(seed: int, rows: int, columns: int) -> FloatArray:
    """What ``random.Random(seed).random()`` gives, row by row.

    NumPy's legacy generator is the same Mersenne Twister with the same 53-bit conversion, and it
    accepts the state of Python's.
    """
    state = random.Random(seed).getstate()[1]
    generator = np.random.RandomState()
    generator.set_state(("MT19937", np.array(state[:-1], dtype=np.uint32), state[-1], 0, 0.0))
    return generator.random_sample((rows, columns))


def _chosen(samples: Sequence[float], draws: FloatArray) -> FloatArray:
    """The elements that ``random.choices`` picks for these draws."""
    picked = (draws * float(len(samples))).astype(np.intp)
    return np.asarray(samples, dtype=float).take(picked)


def _row_medians(rows: FloatArray) -> FloatArray:
    """The median of each row, sorted whole: several times faster than selecting on short rows."""
    ordered, count = np.sort(rows, axis=1), rows.shape[1]
    medians: FloatArray = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
    return medians


def _percentile_bounds(values: FloatArray, confidence: float) -> tuple[float, float]:
    ordered = np.sort(values)
    alpha = 1.0 - confidence
    low = int((alpha / 2) * len(ordered))
    high = min(len(ordered) - 1, int((1 - alpha / 2) * len(ordered)))
    return float(ordered[low]), float(ordered[high])


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
