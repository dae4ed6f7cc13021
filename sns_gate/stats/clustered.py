"""The speedup's estimate from blocks whose workers are the replicates, and what it can detect."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_CLUSTERS = 3
#: Placements are taken to differ where chance alone would make them differ so in fewer cases: an
#: interval is of the data that were drawn, unless it is plain that others would give another one.
PLACEMENTS_SEEN_AT = 0.001
#: From here on Student's t is the normal distribution to all digits shown.
_NORMAL_FREEDOM = 1e6

FloatArray = NDArray[np.float64]


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
        worker_freedom: workers of the side that has fewer, less one.
    """

    log_speedup: float
    variance: float
    degrees_of_freedom: float
    floor: float
    blocks: int
    worker_freedom: int

    def half_width(self, level: float = 0.95) -> float:
        """Half the width of the two-sided interval at this level, on the log scale."""
        found = half_width(np.array(self.variance), np.array(self.degrees_of_freedom), level)
        return max(float(found), self.floor)

    def bounds(self, level: float = 0.95) -> tuple[float, float]:
        """The speedup's interval (low, high) at this level."""
        half = self.half_width(level)
        return math.exp(self.log_speedup - half), math.exp(self.log_speedup + half)


def clustered_estimate(
    effects: Sequence[float],
    baseline_workers: Sequence[Hashable],
    candidate_workers: Sequence[Hashable],
    placements: Sequence[Hashable],
    floor: float,
) -> Estimate:
    """The mean block effect with its worker-clustered variance.

    Args:
        effects: one log speedup a block.
        baseline_workers: the baseline worker of each block.
        candidate_workers: the candidate worker of each block.
        placements: the placement of each block.
        floor: the smallest half-width, one timer step over the time measured (log scale).

    Raises:
        ValueError: fewer than two workers on a side, or unequal lengths.
    """
    rows = np.asarray([effects], dtype=float)
    found = spread(rows, baseline_workers, candidate_workers, placements)
    variance, freedom = found.combined()
    mean = math.fsum(effects) / len(effects)
    workers = min(found.baseline_freedom, found.candidate_freedom)
    return Estimate(mean, float(variance[0]), float(freedom[0]), floor, len(effects), workers)


@dataclass(frozen=True)
class Spread:
    """What the variance of a mean of blocks is made of, one entry a measurement.

    Attributes:
        baseline: the mean's variance as the spread between baseline workers shows it.
        candidate: as the spread between candidate workers shows it.
        block: as the spread of blocks about both workers' own levels, and their placement's, shows
            it, 0 where unknown.
        placement: what the mean varies by because it is of these placements and no others; 0 where
            they differ by no more than their blocks make them.
        baseline_freedom: degrees of freedom of the first.
        candidate_freedom: of the second.
        placement_freedom: of the part of placements.
        blocks: number of blocks behind the mean.
    """

    baseline: FloatArray
    candidate: FloatArray
    block: FloatArray
    placement: FloatArray
    baseline_freedom: int
    candidate_freedom: int
    placement_freedom: int
    blocks: int

    def combined(self) -> tuple[FloatArray, FloatArray]:
        """The mean's variance and its degrees of freedom.

        Each side's part holds the noise of the blocks, so the sum would count it twice: it is
        taken out once, as two-way clustering does (Cameron, Gelbach & Miller 2011, "Robust
        Inference With Multiway Clustering"), but never below the larger part. Degrees of freedom
        lie half-way between Welch's of the two parts and Welch's of what is left of them, which by
        simulation holds the level where either alone is too narrow or too wide
        (docs/statistics.md).

        Every worker meets every placement, so what its data do to all of them alike is in neither
        side's part; it is added with its own degrees of freedom, as Satterthwaite's do.
        """
        larger, total = np.maximum(self.baseline, self.candidate), self.baseline + self.candidate
        variance = np.maximum(total - self.block, larger)
        left = variance - larger
        b, c = np.square(self.baseline), np.square(self.candidate)
        larger_freedom, other_freedom = (
            np.where(b >= c, self.baseline_freedom, self.candidate_freedom),
            np.where(b >= c, self.candidate_freedom, self.baseline_freedom),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            both = total**2 / (b / self.baseline_freedom + c / self.candidate_freedom)
            rest = variance**2 / (larger**2 / larger_freedom + left**2 / other_freedom)
            freedom = np.where(variance > 0, (both + rest) / 2, math.inf)
            whole = variance + self.placement
            parts = variance**2 / freedom + self.placement**2 / max(self.placement_freedom, 1)
            freedom = np.where(self.placement > 0, whole**2 / parts, freedom)
        return np.asarray(whole), freedom

    def at(self, blocks: int) -> Spread:
        """What to expect at so many blocks of the same workers.

        The spread inside workers shrinks with more blocks, the spread between workers does not.
        """
        block = self.block * self.blocks / blocks
        placements = (self.placement_freedom + 1) * blocks // self.blocks
        return Spread(
            baseline=np.maximum(self.baseline - self.block, 0) + block,
            candidate=np.maximum(self.candidate - self.block, 0) + block,
            block=block,
            placement=self.placement * self.blocks / blocks,
            baseline_freedom=self.baseline_freedom,
            candidate_freedom=self.candidate_freedom,
            placement_freedom=max(placements - 1, 1),
            blocks=blocks,
        )


def spread(
    effects: FloatArray,
    baseline_workers: Sequence[Hashable],
    candidate_workers: Sequence[Hashable],
    placements: Sequence[Hashable],
) -> Spread:
    """The parts of the variance of each row's mean.

    A side's part is P/(P-1) · Σ over its workers (sum of the worker's residuals)² / n², the
    cluster-robust variance of a mean with its small-sample factor; a worker's blocks share its
    process effect and so count together (Cameron & Miller 2015, "A Practitioner's Guide to
    Cluster-Robust Inference").

    Whether placements differ is asked by an F test beside both sides' workers: where a speedup
    depends on the data, more of the same data would not show it.

    Args:
        effects: log speedups, a row a measurement, a column a block.
        baseline_workers: the baseline worker of each block.
        candidate_workers: the candidate worker of each block.
        placements: the placement of each block.

    Raises:
        ValueError: fewer than two workers on a side, or unequal lengths.
    """
    count = effects.shape[1]
    if not count == len(baseline_workers) == len(candidate_workers):
        raise ValueError("one baseline worker and one candidate worker are needed for each block")
    designs = [_design(workers) for workers in (baseline_workers, candidate_workers)]
    residuals = effects - effects.mean(axis=1, keepdims=True)
    parts = []
    for design in designs:
        clusters = design.shape[1]
        if clusters < 2:  # noqa: PLR2004 (a variance needs two)
            raise ValueError("clustered variance needs at least two workers a side")
        sums = residuals @ design
        parts.append(clusters / (clusters - 1) * np.sum(sums**2, axis=1) / count**2)
    workers = np.hstack(designs)
    about_workers, freedom_there = _unexplained(residuals, workers)
    about_all, freedom = _unexplained(residuals, np.hstack([workers, _design(placements)]))
    if freedom == 0:  # two placements leave nothing beside their own difference
        about_all, freedom = about_workers, freedom_there
    noise = about_all / freedom / count if freedom > 0 else 0.0 * parts[0]
    between = freedom_there - freedom
    placement = _of_placements(about_workers - about_all, between, noise * count, freedom) / count
    freedoms = [design.shape[1] - 1 for design in designs]
    return Spread(
        baseline=parts[0],
        candidate=parts[1],
        block=noise,
        placement=placement,
        baseline_freedom=freedoms[0],
        candidate_freedom=freedoms[1],
        placement_freedom=between,
        blocks=count,
    )


def _unexplained(residuals: FloatArray, design: FloatArray) -> tuple[FloatArray, int]:
    """The sum of squares that a design leaves in each row, and its degrees of freedom."""
    left = residuals - residuals @ (design @ np.linalg.pinv(design)).T
    freedom = design.shape[0] - int(np.linalg.matrix_rank(design))
    return np.asarray(np.sum(left**2, axis=1)), freedom


def _of_placements(
    squares: FloatArray, between: int, noise: FloatArray, freedom: int
) -> FloatArray:
    """How much more than noise the mean square between placements is; 0 where none is seen."""
    from scipy.special import fdtrc

    if between < 1 or freedom < 1:
        return np.zeros_like(squares)
    mean_square = np.maximum(squares, 0) / between
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = fdtrc(between, freedom, mean_square / noise)
    seen = (chance < PLACEMENTS_SEEN_AT) & (mean_square > noise)
    return np.where(seen, mean_square - noise, 0.0)


def _design(workers: Sequence[Hashable]) -> FloatArray:
    """One row a block, one column a worker, 1 where the worker took part."""
    names = list(dict.fromkeys(workers))
    design = np.zeros((len(workers), len(names)))
    design[np.arange(len(workers)), [names.index(worker) for worker in workers]] = 1
    return design


def half_width(variance: FloatArray, freedom: FloatArray, level: float = 0.95) -> FloatArray:
    """Half the width of the two-sided t interval; 0 where nothing varied."""
    from scipy.special import stdtrit

    quantile = stdtrit(np.minimum(freedom, _NORMAL_FREEDOM), 0.5 + level / 2)
    return np.asarray(quantile * np.sqrt(variance))
