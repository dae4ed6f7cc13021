"""Intervals that were tried for the mean of blocks, side by side: what they cover and how wide.

``python -m studies.estimators FILE`` keeps the figures; it needs no GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sns_gate.stats import Spread, half_width, spread
from studies.simulation import Array, Layout, Scenario, blocks

_RUNS = 40_000
_RESAMPLES = 400
_BOOTSTRAP_RUNS = 4_000
#: Spread between processes in units of that between blocks: (baseline, candidate).
GRID = ((0.0, 0.0), (0.25, 0.25), (0.5, 0.0), (1.0, 1.0), (1.0, 0.0), (2.0, 0.5), (10.0, 3.0))
LAYOUTS = ((4, 4), (6, 3), (4, 12), (3, 4))


@dataclass(frozen=True)
class _Blocks:
    effects: Array
    layout: Layout

    def spread(self) -> Spread:
        return spread(self.effects, *self.layout.columns)


def _plain_t(found: _Blocks) -> Array:
    count = found.effects.shape[1]
    variance = found.effects.var(axis=1, ddof=1) / count
    return half_width(variance, np.full(len(variance), count - 1.0))


def _welch(parts: Spread) -> tuple[Array, Array]:
    b, c = parts.baseline, parts.candidate
    freedom = (b + c) ** 2 / (b**2 / parts.baseline_freedom + c**2 / parts.candidate_freedom)
    return b + c, freedom


def _sum_of_sides(found: _Blocks) -> Array:
    return half_width(*_welch(found.spread()))


def _pooled_freedom(found: _Blocks) -> Array:
    parts = found.spread()
    variance, _ = _welch(parts)
    freedom = float(parts.baseline_freedom + parts.candidate_freedom)
    return half_width(variance, np.full(len(variance), freedom))


def _noise_once(found: _Blocks) -> Array:
    parts = found.spread()
    total, freedom = _welch(parts)
    larger = np.maximum(parts.baseline, parts.candidate)
    return half_width(np.maximum(total - parts.block, larger), freedom)


def _truncated(found: _Blocks) -> Array:
    """Components by moments, each cut at zero, with Satterthwaite's degrees of freedom."""
    parts = found.spread()
    block = parts.block
    b, c = (np.maximum(p - block, 0) for p in (parts.baseline, parts.candidate))
    variance = b + c + block
    count = found.effects.shape[1]
    left = count - parts.baseline_freedom - parts.candidate_freedom - 1
    share = block * (1.0 - (b > 0) - (c > 0))
    spread_ = (
        np.where(b > 0, parts.baseline**2, 0) / parts.baseline_freedom
        + np.where(c > 0, parts.candidate**2, 0) / parts.candidate_freedom
        + share**2 / left
    )
    return half_width(variance, np.clip(variance**2 / spread_, 1, count))


def _adopted(found: _Blocks) -> Array:
    return half_width(*found.spread().combined())


INTERVALS: dict[str, Callable[[_Blocks], Array]] = {
    "t over blocks": _plain_t,
    "both sides' clusters, Welch": _sum_of_sides,
    "both sides' clusters, degrees of freedom added": _pooled_freedom,
    "components by moments, Satterthwaite": _truncated,
    "noise of blocks once, Welch": _noise_once,
    "noise of blocks once, mean of two Welch (adopted)": _adopted,
}


def run(seed: int = 1) -> dict[str, Any]:
    """Coverage of each interval over the grid, and its width against the adopted one's."""
    rng = np.random.default_rng(seed)
    kept: dict[str, Any] = {}
    for processes, placements in LAYOUTS:
        rows: dict[str, list[list[float]]] = {name: [] for name in INTERVALS}
        rows["hierarchical bootstrap"] = []
        for between in GRID:
            found = _simulated(processes, placements, between, _RUNS, rng)
            adopted = float(_adopted(found).mean())
            for name, interval in INTERVALS.items():
                rows[name].append(_figures(found.effects, interval(found), adopted))
            few = _Blocks(found.effects[:_BOOTSTRAP_RUNS], found.layout)
            rows["hierarchical bootstrap"].append(_bootstrap(few, adopted, rng))
        kept[f"{processes} processes, {placements} placements"] = rows
    return kept


def _simulated(
    processes: int, placements: int, between: tuple[float, float], runs: int,
    rng: np.random.Generator,
) -> _Blocks:  # fmt: skip
    layout = Layout.rotated(processes, placements)
    # The placements of both sides make a block's own spread of 1.
    effects = blocks(Scenario("", 0.0, 0.5**0.5, 0.0), layout, runs, rng)
    b, c = (rng.normal(0, sd / 100, (runs, processes)) for sd in between)
    return _Blocks(effects + b[:, layout.baseline] - c[:, layout.candidate], layout)


def _figures(effects: Array, half: Array, adopted: float) -> list[float]:
    held = np.abs(effects.mean(axis=1)) <= half
    return [round(float(held.mean()), 4), round(float(half.mean()) / adopted, 3)]


def _bootstrap(found: _Blocks, adopted: float, rng: np.random.Generator) -> list[float]:
    """Percentile bootstrap of workers on both sides, each block counting by how often both fell."""
    processes = int(found.layout.baseline.max()) + 1
    means = np.empty((_RESAMPLES, len(found.effects)))
    for row in range(_RESAMPLES):
        weights = (
            _times(processes, rng)[found.layout.baseline]
            * (_times(processes, rng)[found.layout.candidate])
        )
        total = weights.sum()
        means[row] = found.effects @ weights / total if total else found.effects.mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    held = (low <= 0) & (high >= 0)
    return [round(float(held.mean()), 4), round(float((high - low).mean()) / 2 / adopted, 3)]


def _times(processes: int, rng: np.random.Generator) -> NDArray[np.intp]:
    return np.bincount(rng.integers(0, processes, processes), minlength=processes)


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    lines = [
        "## Intervals that were tried\n",
        "Simulated blocks whose processes differ by 0 to 10 times as much as blocks do, on both "
        "sides or on one. Worst coverage of a nominal 95% over that grid, coverage where "
        "processes do not differ, and width there against the adopted interval's.\n",
    ]
    for layout, rows in kept.items():
        lines += [
            f"**{layout}**\n",
            "| interval | worst coverage, % | without process effects, % | width |",
            "|---|---|---|---|",
        ]
        for name, figures in rows.items():
            worst = min(held for held, _ in figures)
            lines.append(
                f"| {name} | {100 * worst:.1f} | {100 * figures[0][0]:.1f} | {figures[0][1]:.2f} |"
            )
        lines.append("")
    return lines


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(run()) + "\n", encoding="utf-8")
