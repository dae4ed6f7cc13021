"""The claim by simulation: honest intervals, no false alarms, and prints that are right.

``make study-simulation`` runs the same in full.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from studies.simulation import (
    DISTURBED,
    KERNELS,
    PLACEMENTS,
    PROCESSES,
    TOLERANCES,
    Scenario,
    called_slower,
    coverage,
    measure,
)

#: Three standard errors of a share of 95% in so many runs.
RUNS = 3000
SLACK = 3 * math.sqrt(0.05 * 0.95 / RUNS)
ALL = (*KERNELS, *DISTURBED)


@pytest.mark.parametrize("precision", [0.005, 0.0005])
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_intervals_hold_the_truth_at_their_rate_stops_included(
    scenario: Scenario, precision: float
) -> None:
    found = coverage(scenario, RUNS, np.random.default_rng(2), precision=precision)
    assert 0.94 - SLACK / 2 <= found["coverage"] <= 0.995


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_a_hundred_identical_cases_are_not_called_slower(scenario: Scenario) -> None:
    runs = 8_000
    for tolerance, most in zip(TOLERANCES, (0.05, 0.001), strict=True):
        slower, _ = called_slower(
            scenario, runs, np.random.default_rng(3), tolerance=tolerance, cases=100
        )
        # Of so many runs this many may be called slower before the share is more than chance.
        expected = runs * most / 100
        assert slower.sum() <= expected + 3 * math.sqrt(expected)


@pytest.mark.parametrize("scenario", KERNELS, ids=lambda scenario: scenario.name)
def test_a_slowdown_of_the_size_that_is_printed_is_called_slower(scenario: Scenario) -> None:
    rng = np.random.default_rng(4)
    _, printed = called_slower(scenario, 2000, rng, tolerance=0.01, cases=1)
    typical = float(np.median(printed))
    planted = replace(scenario, effect=-100 * math.log1p(typical / 100))
    slower, printed = called_slower(planted, 2000, rng, tolerance=0.01, cases=1)
    assert slower[printed <= typical].mean() >= 0.93
    missed = replace(scenario, effect=-100 * math.log1p(0.003))
    slower, _ = called_slower(missed, 2000, rng, tolerance=0.01, cases=1)
    assert slower.sum() == 0, "a slowdown well within the tolerance is never called slower"


def test_placement_ruled_cases_go_on_and_process_ruled_ones_stop() -> None:
    def blocks(scenario: Scenario) -> float:
        found = measure(scenario, 500, np.random.default_rng(5), precision=0.005)
        return float(found.blocks.mean())

    named = {scenario.name: scenario for scenario in KERNELS}
    first = PROCESSES * PLACEMENTS
    assert blocks(named["transpose"]) > 2 * first
    assert blocks(named["processes alone"]) < 1.15 * first
    assert blocks(named["add"]) < 1.1 * first


def test_two_speeds_never_give_a_narrow_wrong_interval() -> None:
    scenario = next(s for s in DISTURBED if s.name == "two speeds, half each")
    found = measure(scenario, 5000, np.random.default_rng(6), precision=0.005)
    wrong = np.abs(found.mean) > found.half()
    assert wrong.mean() < 0.05
    # All of one side in one speed and all of the other in the other looks like a real change.
    assert (wrong & (found.half() < 0.005)).mean() < 2 * 0.5 ** (2 * PROCESSES) + 0.003
