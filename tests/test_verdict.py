"""Verdicts and exit codes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate.stats import confirmation_level
from sns_gate.types import CaseResult, Side, Speedup, Verdict
from sns_gate.verdict import (
    ExitCode,
    case_exit,
    exit_code,
    hull,
    judge,
    shown,
)

T = 0.02
LOWER, UPPER = 1 / 1.02, 1.02


def speedup(low: float, high: float) -> Speedup:
    return Speedup(estimate=(low + high) / 2, low=low, high=high)


def case(verdict: Verdict, *sides: Side) -> CaseResult:
    return CaseResult(id="x", verdict=verdict, tolerance=T, broken_sides=sides)


@pytest.mark.parametrize(
    ("low", "high", "verdict", "note"),
    [
        (0.90, 0.95, Verdict.SLOWER, ""),
        (0.97, LOWER, Verdict.INCONCLUSIVE, "not faster"),
        (0.97, 1.01, Verdict.INCONCLUSIVE, "not faster"),
        (0.97, 1.03, Verdict.INCONCLUSIVE, "too wide"),
        (LOWER, UPPER, Verdict.UNCHANGED, ""),
        (0.985, 0.995, Verdict.UNCHANGED, "slightly slower, within tolerance"),
        (1.001, 1.01, Verdict.UNCHANGED, "slightly faster, within tolerance"),
        (0.99, 1.03, Verdict.NOT_SLOWER, ""),
        (UPPER, 1.03, Verdict.NOT_SLOWER, ""),
        (1.03, 1.05, Verdict.FASTER, ""),
    ],
)
def test_the_table_of_verdicts(low: float, high: float, verdict: Verdict, note: str) -> None:
    judged = judge(speedup(low, high), T)
    assert (judged.verdict, judged.note) == (verdict, note)


def test_an_interval_that_is_not_finite_is_refused() -> None:
    wild = Speedup.model_construct(estimate=1.0, low=0.5, high=math.inf, level=0.95)
    assert judge(wild, T).verdict is Verdict.REFUSED


@given(st.floats(-0.5, 0.5), st.floats(0, 0.3), st.floats(0.001, 0.2))
def test_rounding_is_outward_and_the_estimate_stays_inside(
    middle: float, half: float, tolerance: float
) -> None:
    low, high = math.exp(middle - half), math.exp(middle + half)
    found = shown(math.exp(middle), (low, high))
    assert found.low <= low
    assert found.high >= high
    assert found.low <= found.estimate <= found.high
    wider = shown(math.exp(middle), (low / 1.01, high * 1.01))
    if judge(wider, tolerance).verdict is Verdict.SLOWER:
        assert judge(found, tolerance).verdict is Verdict.SLOWER


@given(st.floats(0.5, 2), st.floats(0, 0.3), st.floats(0.001, 0.2))
def test_an_interval_that_holds_one_is_never_slower_nor_faster(
    estimate: float, half: float, tolerance: float
) -> None:
    low, high = min(estimate * math.exp(-half), 1.0), max(estimate * math.exp(half), 1.0)
    assert judge(speedup(low, high), tolerance).verdict not in (Verdict.SLOWER, Verdict.FASTER)


@pytest.mark.parametrize(
    ("verdict", "sides", "code"),
    [
        (Verdict.SLOWER, (), ExitCode.FAIL),
        (Verdict.WRONG, (), ExitCode.FAIL),
        (Verdict.BROKEN, ("candidate",), ExitCode.FAIL),
        (Verdict.BROKEN, ("baseline",), ExitCode.REFUSED),
        (Verdict.BROKEN, ("baseline", "candidate"), ExitCode.REFUSED),
        (Verdict.REFUSED, (), ExitCode.REFUSED),
        (Verdict.REMOVED, (), ExitCode.REFUSED),
        (Verdict.INCONCLUSIVE, (), ExitCode.INCONCLUSIVE),
        (Verdict.UNCHANGED, (), ExitCode.OK),
        (Verdict.FASTER, (), ExitCode.OK),
        (Verdict.NOT_SLOWER, (), ExitCode.OK),
    ],
)
def test_the_table_of_exit_codes(verdict: Verdict, sides: tuple[Side, ...], code: ExitCode) -> None:
    assert case_exit(case(verdict, *sides)) is code
    assert exit_code([case(Verdict.UNCHANGED), case(verdict, *sides)]) is code


def test_nothing_compared_is_never_a_pass() -> None:
    assert exit_code([]) is ExitCode.NOTHING_COMPARED
    assert exit_code([case(Verdict.ADDED)]) is ExitCode.NOTHING_COMPARED
    assert exit_code([case(Verdict.ADDED), case(Verdict.UNCHANGED)]) is ExitCode.OK


def test_the_most_severe_case_wins() -> None:
    cases = [case(v) for v in (Verdict.INCONCLUSIVE, Verdict.REFUSED, Verdict.SLOWER)]
    assert exit_code(cases) is ExitCode.FAIL
    assert exit_code(cases[:2]) is ExitCode.REFUSED


def test_with_many_cases_the_confirmation_must_be_surer() -> None:
    assert confirmation_level(1) == pytest.approx(0.95)
    assert confirmation_level(50) == pytest.approx(0.95)
    assert confirmation_level(1000) == pytest.approx(1 - 2 * 0.00125)


def test_the_hull_holds_both_intervals() -> None:
    both = hull(speedup(0.90, 0.95), speedup(0.97, 1.01))
    assert (both.low, both.high) == (0.90, 1.01)
