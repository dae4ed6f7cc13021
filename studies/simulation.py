"""The statistics of a check by simulation: coverage, false alarms and power, stops included.

``python -m studies.simulation FILE`` runs all of it and keeps the figures; the tests run the same
at a smaller size. The components of variance are those measured on a GPU (percent of the time).
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sns_gate.gate import MORE_TO_CONFIRM
from sns_gate.session.blocks import PAIRS
from sns_gate.session.measuring import ROTATIONS
from sns_gate.stats import (
    confirmation_level,
    detectable_slowdown_pct,
    half_width,
    in_vain,
    spread,
)

Array = NDArray[np.float64]

PROCESSES, PLACEMENTS = 6, 3
_FULL = 20_000


@dataclass(frozen=True)
class Scenario:
    """Where a case's time varies; standard deviations in % of the time.

    Attributes:
        name: of the kernel, or of what goes wrong.
        sample: of one sample.
        placement: of one worker at one placement.
        process: of one worker, on either side.
        one_sided: the candidate's workers alone differ.
        mode_gap: workers fall into two speeds this far apart.
        mode_share: share of workers in the slower one.
        outliers: share of samples that the host interrupts, which makes them half as long again.
        drift: of the clock over a block.
        lost: workers of each side that are lost after the first placement.
        data: of the speedup over the data that placements draw, alike for all workers.
        effect: true log speedup, in %.
    """

    name: str
    sample: float
    placement: float
    process: float
    one_sided: bool = False
    mode_gap: float = 0.0
    mode_share: float = 0.5
    outliers: float = 0.0
    drift: float = 0.0
    lost: int = 0
    data: float = 0.0
    effect: float = 0.0


#: From recordings: noise of a sample, spread between placements and between processes, in %.
KERNELS = (
    Scenario("add", 0.4, 0.16, 0.08),
    Scenario("softmax", 0.5, 0.11, 0.10),
    Scenario("layer norm in a graph", 0.5, 0.29, 0.24),
    Scenario("matmul 4096, power-capped", 1.0, 0.02, 0.25),
    Scenario("transpose", 0.15, 1.27, 0.1),
    Scenario("sort", 0.6, 0.97, 0.1),
    Scenario("batched 256²", 1.5, 0.66, 0.1),
    Scenario("copy 64 MiB", 2.6, 0.54, 0.1),
    Scenario("convolution", 0.35, 0.18, 0.05),
    Scenario("fp32 matmul", 0.08, 0.01, 0.0),
    Scenario("processes alone", 0.1, 0.02, 0.5),
    Scenario("processes of one side alone", 0.1, 0.1, 0.5, one_sided=True),
)
DISTURBED = (
    Scenario("drift", 0.4, 0.16, 0.1, drift=2.0),
    Scenario("outliers", 0.4, 0.16, 0.1, outliers=0.08),
    Scenario("two speeds, half each", 0.3, 0.1, 0.05, mode_gap=3.0),
    Scenario("two speeds, a fifth slower", 0.3, 0.1, 0.05, mode_gap=3.0, mode_share=0.2),
    Scenario("a lost worker a side", 0.4, 0.16, 0.1, lost=1),
    Scenario("a lost worker, processes alone", 0.1, 0.02, 0.5, lost=1),
)
#: Speedups that differ with the data of a placement, by so much in %: what follows from few draws
#: of them is less sure than it looks, most where their spread is near that of the noise.
OF_DATA = tuple(
    Scenario(f"speedup of the data, {data:g}%", 0.4, 0.16, 0.08, data=data)
    for data in (0.2, 0.5, 1.0, 3.0)
)


@dataclass(frozen=True)
class Layout:
    """Which workers meet in each block, in the order of the rotation."""

    baseline: NDArray[np.intp]
    candidate: NDArray[np.intp]
    placement: NDArray[np.intp]

    @classmethod
    def rotated(cls, processes: int, placements: int, lost: int = 0) -> Layout:
        """Rows of the Latin square; the workers lost after the first row are missing from it on."""
        rows = [
            (worker, (worker + placement) % (processes - gone), placement)
            for placement in range(placements)
            for gone in ((lost if placement else 0),)
            for worker in range(processes - gone)
        ]
        return cls(*np.array(rows, dtype=np.intp).T)

    def first(self, blocks: int) -> Layout:
        """The layout of its first blocks."""
        return Layout(self.baseline[:blocks], self.candidate[:blocks], self.placement[:blocks])

    @property
    def columns(self) -> tuple[list[int], list[int], list[int]]:
        """As the statistics take them."""
        return self.baseline.tolist(), self.candidate.tolist(), self.placement.tolist()


def blocks(scenario: Scenario, layout: Layout, runs: int, rng: np.random.Generator) -> Array:
    """Block effects (log speedups) of so many independent measurements: (runs, blocks)."""
    workers = int(layout.baseline.max()) + 1
    baseline, candidate = (rng.normal(0, scenario.process, (runs, workers)) for _ in range(2))
    if scenario.one_sided:
        baseline = np.zeros_like(baseline)
    baseline, candidate = (
        side + scenario.mode_gap * (rng.random((runs, workers)) < scenario.mode_share)
        for side in (baseline, candidate)
    )
    count = len(layout.baseline)
    cells = rng.normal(0, scenario.placement, (2, runs, count))
    data = rng.normal(0, scenario.data, (runs, int(layout.placement.max()) + 1))
    mean = (
        scenario.effect + data[:, layout.placement]
        + baseline[:, layout.baseline] + cells[0]
        - candidate[:, layout.candidate] - cells[1]
    )  # fmt: skip
    effects: Array = (mean + _median_noise(scenario, (runs, count), rng)) / 100
    return effects


def _median_noise(scenario: Scenario, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Noise of a block: the median over pairs, each disturbed by drift and interruptions."""
    order = np.where(np.arange(PAIRS) % 2, -1.0, 1.0)
    drift = scenario.drift / (2 * PAIRS) * order
    noise: Array = np.empty(shape)
    for block in range(shape[1]):  # a block at a time, to bound the memory
        pairs = rng.normal(0, scenario.sample * math.sqrt(2), (shape[0], PAIRS)) + drift
        if scenario.outliers:
            for sign in (1.0, -1.0):
                hit = rng.random((shape[0], PAIRS)) < scenario.outliers
                pairs += sign * 100 * math.log(1.5) * hit
        noise[:, block] = np.median(pairs, axis=1)
    return noise


@dataclass(frozen=True)
class Measured:
    """Many measurements of one case, each stopped as the gate stops it.

    Attributes:
        mean: log speedups.
        variance: of them.
        freedom: degrees of freedom.
        blocks: taken.
    """

    mean: Array
    variance: Array
    freedom: Array
    blocks: Array

    def half(self, level: float = 0.95) -> Array:
        """Half-widths on the log scale."""
        return half_width(self.variance, self.freedom, level)


def measure(
    scenario: Scenario,
    runs: int,
    rng: np.random.Generator,
    *,
    precision: float,
    processes: int = PROCESSES,
    placements: int = PLACEMENTS,
) -> Measured:
    """So many measurements with the precision stop and the futility stop.

    Args:
        scenario: where time varies.
        runs: number of measurements.
        rng: of all of it.
        precision: half-width at which a measurement stops (log scale).
        processes: workers a side.
        placements: in the first rotation; three rotations are the most.
    """
    most = ROTATIONS * placements
    layout = Layout.rotated(processes, most, scenario.lost)
    effects = blocks(scenario, layout, runs, rng)
    found = np.zeros((4, runs))
    going = np.ones(runs, dtype=bool)
    for rows in range(placements, most + 1):
        count = processes + (rows - 1) * (processes - scenario.lost)
        part = effects[going, :count]
        spreads = spread(part, *layout.first(count).columns)
        variance, freedom = spreads.combined()
        vain = in_vain(spreads, len(layout.baseline), precision)
        stop = (half_width(variance, freedom) <= precision) | vain | (rows == most)
        here = np.flatnonzero(going)[stop]
        for row, values in enumerate((part.mean(axis=1), variance, freedom)):
            found[row, here] = values[stop]
        found[3, here] = count
        going[here] = False
    return Measured(*found)


def coverage(
    scenario: Scenario, runs: int, rng: np.random.Generator, *, precision: float
) -> dict[str, float]:
    """Share of intervals that hold the truth, their width, and what they cost."""
    found = measure(scenario, runs, rng, precision=precision)
    half = found.half()
    held = np.abs(found.mean - scenario.effect / 100) <= half
    return {
        "coverage": round(float(held.mean()), 4),
        "half_width_pct": round(100 * float(np.median(half)), 3),
        "blocks": round(float(found.blocks.mean()), 1),
    }


def called_slower(
    scenario: Scenario, runs: int, rng: np.random.Generator, *, tolerance: float, cases: int
) -> tuple[NDArray[np.bool_], Array]:
    """Which measurements end as ``slower``, confirmation included, and the slowdown each printed.

    Args:
        scenario: where time varies; its effect is negative for a slowdown.
        runs: number of cases.
        rng: of all of it.
        tolerance: share of time worth letting pass.
        cases: in a check, which sets the confirmation's level.
    """
    least, precision = 1 / (1 + tolerance), max(tolerance / 4, 1e-4)
    first = measure(scenario, runs, rng, precision=precision)
    half = first.half()
    slower = first.mean + half < math.log(least)
    again = np.flatnonzero(slower)
    if len(again):
        second = measure(
            scenario, len(again), rng, precision=precision, processes=PROCESSES + MORE_TO_CONFIRM
        )
        bound = second.mean + second.half(confirmation_level(cases))
        slower[again] = bound < math.log(least)
    freedom = PROCESSES - 1 - scenario.lost
    printed = np.array([detectable_slowdown_pct(least, float(h), freedom, cases) for h in half])
    return slower, printed


#: Tolerances at which false alarms are counted: near zero, and one that a user may ask for.
TOLERANCES = (1e-6, 0.01)
CASES = (1, 10, 50, 100)
_RUNS_TO_COUNT_ALARMS = 40_000
_PRECISIONS = (0.005, 0.0005)


def run(
    runs: int = _FULL, alarm_runs: int = _RUNS_TO_COUNT_ALARMS, seed: int = 1
) -> dict[str, Any]:
    """Coverage and false alarms of every scenario, and power at the slowdown that is printed."""
    rng = np.random.default_rng(seed)
    kept: dict[str, Any] = {}
    for scenario in (*KERNELS, *DISTURBED, *OF_DATA):
        kept[scenario.name] = {
            "components": [scenario.sample, scenario.placement, scenario.process],
            "coverage": [coverage(scenario, runs, rng, precision=p) for p in _PRECISIONS],
            "alarms": {
                f"{tolerance:g}": {
                    str(cases): _any_alarm(scenario, alarm_runs, rng, tolerance, cases)
                    for cases in CASES
                }
                for tolerance in TOLERANCES
            },
            "power": _power(scenario, runs, rng),
        }
        print(_row(scenario.name, kept[scenario.name]), flush=True)
    return kept


def _any_alarm(
    scenario: Scenario, runs: int, rng: np.random.Generator, tolerance: float, cases: int
) -> float:
    """The chance that any of so many identical cases is called slower."""
    slower, _ = called_slower(scenario, runs, rng, tolerance=tolerance, cases=cases)
    return round(float(1 - (1 - slower.mean()) ** cases), 5)


def _power(scenario: Scenario, runs: int, rng: np.random.Generator) -> dict[str, float]:
    """What a check at 1% typically says it detects, and how often it then does."""
    _, printed = called_slower(scenario, runs, rng, tolerance=0.01, cases=1)
    typical = float(np.median(printed))
    planted = replace(scenario, effect=-100 * math.log1p(typical / 100))
    slower, printed = called_slower(planted, runs, rng, tolerance=0.01, cases=1)
    says_so = printed <= typical
    return {"printed_pct": round(typical, 3), "slower": round(float(slower[says_so].mean()), 4)}


def _row(name: str, kept: dict[str, Any]) -> str:
    sample, placement, process = kept["components"]
    usual, finest = kept["coverage"]
    near, one = (kept["alarms"][f"{tolerance:g}"]["100"] for tolerance in TOLERANCES)
    power = kept["power"]
    return (
        f"| {name} | {sample:g} | {placement:g} | {process:g} | {100 * usual['coverage']:.1f} | "
        f"{usual['half_width_pct']:.2f} | {usual['blocks']:.0f} | {100 * finest['coverage']:.1f} | "
        f"{100 * near:.1f} | {100 * one:.2f} | {power['printed_pct']:.2f} | "
        f"{100 * power['slower']:.1f} |"
    )


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    return [
        "## The statistics by simulation\n",
        f"{PROCESSES} processes a side, {PLACEMENTS} placements a rotation, at most {ROTATIONS} "
        f"rotations, stops and confirmation as in a check. Standard deviations of a sample, of a "
        f"placement and of a process in % of the time, as recorded on an H200; the next rows "
        f"disturb them, and in the last ones the speedup depends on the data that each placement "
        f"draws, with this standard deviation. Coverage is of nominal 95% intervals, at the "
        f"precision of tolerance 2% "
        f"and at the finest; alarms are chances, in %, that any of 100 cases of identical code is "
        f"called slower, at a tolerance near zero and at 1%; power is how often a slowdown of the "
        f"size that a check at 1% prints is called slower.\n",
        "| case | sample | placement | process | coverage | half-width | blocks | finest "
        "| alarms near 0 | at 1% | printed, % | power |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(_row(name, row) for name, row in kept.items()),
        "",
    ]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(run()) + "\n", encoding="utf-8")
