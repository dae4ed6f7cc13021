"""Estimates and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate.stats import (
    block_effect,
    clustered_estimate,
    cv_percent,
    detectable_slowdown_pct,
    in_vain,
    percentile,
    predicted_half_width,
    spread,
    worthwhile_pairs,
)
from sns_gate.stats.planning import MAX_PAIRS, MIN_PAIRS
from tests.contract import contract

TIMES = st.floats(1e-3, 1e3)
PAIRS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=20)


def rotated(processes: int, placements: int) -> tuple[list[int], list[int], list[int]]:
    """The baseline's worker, the candidate's and the placement of each block."""
    baseline = [b for _ in range(placements) for b in range(processes)]
    candidate = [(b + p) % processes for p in range(placements) for b in range(processes)]
    return baseline, candidate, [p for p in range(placements) for _ in range(processes)]


@given(PAIRS)
def test_swapping_the_sides_inverts_a_block(pairs: list[tuple[float, float]]) -> None:
    baseline, candidate = zip(*pairs, strict=True)
    assert block_effect(baseline, candidate) == pytest.approx(-block_effect(candidate, baseline))


@given(PAIRS, st.floats(0.01, 100))
def test_rescaling_time_changes_no_block(pairs: list[tuple[float, float]], factor: float) -> None:
    baseline, candidate = zip(*pairs, strict=True)
    scaled = block_effect([b * factor for b in baseline], [c * factor for c in candidate])
    assert scaled == pytest.approx(block_effect(baseline, candidate), abs=1e-9)


def test_one_interrupted_sample_does_not_move_a_block() -> None:
    baseline, candidate = [1.0] * 12, [1.01] * 12
    quiet = block_effect(baseline, candidate)
    candidate[5] = 300.0
    assert block_effect(baseline, candidate) == quiet


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_no_time_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive finite"):
        block_effect([1.0, bad], [1.0, 1.0])


def test_the_clustered_variance_is_the_formula_of_the_design() -> None:
    effects = [0.01, 0.02, -0.01, 0.03, 0.00, 0.01, 0.02, -0.02, 0.01]
    baseline, candidate, places = rotated(3, 3)
    found = clustered_estimate(effects, baseline, candidate, places, 0.0)
    mean = sum(effects) / 9
    parts = []
    for side in (baseline, candidate):
        sums = [
            sum(e - mean for e, w in zip(effects, side, strict=True) if w == k) for k in range(3)
        ]
        parts.append(3 / 2 * sum(s * s for s in sums) / 81)
    design = np.zeros((9, 9))
    for row, (i, j, k) in enumerate(zip(baseline, candidate, places, strict=True)):
        design[row, i] = design[row, 3 + j] = design[row, 6 + k] = 1
    left = np.array(effects) - design @ np.linalg.lstsq(design, np.array(effects), rcond=None)[0]
    block = float(left @ left) / 2 / 9
    larger, total = max(parts), sum(parts)
    variance = max(total - block, larger)
    assert found.variance == pytest.approx(variance)
    both = total**2 / sum(part**2 / 2 for part in parts)
    rest = variance**2 / (larger**2 / 2 + (variance - larger) ** 2 / 2)
    assert found.degrees_of_freedom == pytest.approx((both + rest) / 2)
    assert found.worker_freedom == 2


def test_the_interval_covers_the_truth_at_its_rate_when_processes_differ() -> None:
    rng = np.random.default_rng(1)
    baseline, candidate, places = rotated(4, 4)
    hits = 0
    for _ in range(2000):
        b, c = rng.normal(0, 0.004, 4), rng.normal(0, 0.004, 4)
        noise = rng.normal(0, 0.003, 16)
        effects = [c[j] - b[i] + e for i, j, e in zip(baseline, candidate, noise, strict=True)]
        low, high = clustered_estimate(effects, baseline, candidate, places, 0.0).bounds()
        hits += low <= 1 <= high
    assert 0.94 <= hits / 2000 <= 0.995


def test_no_variation_gives_one_timer_step_and_not_zero_width() -> None:
    baseline, candidate, places = rotated(3, 3)
    found = clustered_estimate([0.01] * 9, baseline, candidate, places, floor=0.0005)
    assert found.half_width() == 0.0005


def test_fewer_than_two_workers_have_no_variance() -> None:
    with pytest.raises(ValueError, match="two workers"):
        clustered_estimate([0.1, 0.2], [0, 0], [0, 1], [0, 0], 0.0)


def test_process_effects_put_a_floor_under_what_more_placements_can_reach() -> None:
    rng = np.random.default_rng(3)
    baseline, candidate, places = rotated(4, 4)
    b = rng.normal(0, 0.01, 4)
    ruled = [b[i] + e for i, e in zip(baseline, rng.normal(0, 0.0005, 16), strict=True)]
    free = list(rng.normal(0, 0.01, 16))
    now = clustered_estimate(ruled, baseline, candidate, places, 0.0).half_width()
    assert predicted_half_width(ruled, baseline, candidate, places, 48) > 0.9 * now
    now = clustered_estimate(free, baseline, candidate, places, 0.0).half_width()
    assert predicted_half_width(free, baseline, candidate, places, 48) < 0.8 * now
    rows = np.array([ruled, free])
    vain = in_vain(spread(rows, baseline, candidate, places), 48, precision=0.0001)
    assert list(vain) == [True, False]
    assert not in_vain(spread(rows, baseline, candidate, places), 48, precision=1.0).any()


@given(st.floats(0.001, 0.2), st.floats(1e-4, 0.05), st.integers(2, 40))
def test_more_than_the_tolerance_can_be_detected_and_wider_intervals_detect_less(
    tolerance: float, half: float, freedom: int
) -> None:
    least = 1 / (1 + tolerance)
    found = detectable_slowdown_pct(least, half, freedom)
    assert found > 100 * tolerance
    assert detectable_slowdown_pct(least, 2 * half, freedom) > found
    assert detectable_slowdown_pct(least, half, freedom + 1) <= found
    assert detectable_slowdown_pct(least, half, freedom, cases=50) == pytest.approx(found)
    assert detectable_slowdown_pct(least, half, freedom, cases=1000) > found


def test_a_block_gets_the_pairs_that_its_own_noise_is_worth() -> None:
    def pairs(noise: float, placement: float, fixed_s: float = 0.05, pair_s: float = 0.01) -> int:
        block = placement**2 + math.pi / 2 * noise**2 / 12
        return worthwhile_pairs(noise**2, block, 12, fixed_s, pair_s)

    assert pairs(noise=0.15, placement=1.8) == MIN_PAIRS, "a transpose wants placements"
    assert pairs(noise=2.6, placement=0.1) == MAX_PAIRS, "a copy wants samples"
    assert pairs(noise=1.0, placement=0.5) == math.ceil(math.sqrt(math.pi / 2 * 4 * 5))
    assert pairs(1.0, 0.5, fixed_s=0.5) > pairs(1.0, 0.5) > pairs(1.0, 0.5, fixed_s=0.01)


@contract("percentile", "Linear-interpolated percentile. p is in [0, 1].")
@contract("cv_percent", "Coefficient of variation as a percentage. 0.0 for a zero mean.")
def test_percentile_and_cv_follow_their_definitions() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert percentile([7.0], 0.9) == 7.0
    assert cv_percent([1.0, 3.0]) == 50.0
    assert cv_percent([5.0]) == 0.0
    assert cv_percent([-1.0, 1.0]) == 0.0
    with pytest.raises(ValueError, match="empty"):
        percentile([], 0.5)
    with pytest.raises(ValueError, match="must be in"):
        percentile([1.0], 1.5)
    with pytest.raises(ValueError, match="empty"):
        cv_percent([])


@pytest.mark.parametrize("data", [0.0, 0.02, 0.1])
def test_a_speedup_that_depends_on_the_data_is_as_sure_as_its_placements_agree(
    data: float,
) -> None:
    """Where it does not, what placements do to noise makes no interval wider."""
    rng = np.random.default_rng(5)
    baseline, candidate, places = rotated(6, 3)
    held, widths = 0, []
    for _ in range(1000):
        b, c = rng.normal(0, 0.001, 6), rng.normal(0, 0.001, 6)
        of_data, noise = rng.normal(0, data, 3), rng.normal(0, 0.001, 18)
        effects = [
            c[j] - b[i] + of_data[k] + e
            for i, j, k, e in zip(baseline, candidate, places, noise, strict=True)
        ]
        found = clustered_estimate(effects, baseline, candidate, places, 0.0)
        low, high = found.bounds()
        held += low <= 1 <= high
        widths.append(found.half_width())
    assert held / 1000 >= 0.91
    if not data:
        assert np.median(widths) < 0.0017


def test_placements_that_agree_are_seldom_taken_to_differ() -> None:
    rng = np.random.default_rng(6)
    found = spread(rng.normal(0, 0.01, (20_000, 18)), *rotated(6, 3))
    assert 0 < np.mean(found.placement > 0) < 0.002
