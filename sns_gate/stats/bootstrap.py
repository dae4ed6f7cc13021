"""The specification's bootstrap intervals, bit for bit and vectorised."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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
