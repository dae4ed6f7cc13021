"""The second measurement of a slower case: other data, and what fails there counts."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from sns_gate.protocol import CaseSpec
from sns_gate.session import (
    BrokenCase,
    CaseOutcome,
    CaseRun,
    PlannedCase,
    confirmed,
    measure_case,
)
from sns_gate.stats import Estimate
from sns_gate.types import SIDES, CaseResult, MeasurementTier, Reason, Side, Verdict
from tests.conftest import check, commit
from tests.recorded import QuietObserver, SilentProgress
from tests.test_report import case

ESTIMATE = Estimate(-0.1, (0.01 / 1.96) ** 2, 6, 0.0, 16, 3)
FIRST = CaseOutcome(case("f", Verdict.SLOWER, 0.88, 0.9, 0.92, half_width_pct=1.0), ESTIMATE)
WHY = (Reason(code="raised", text="ValueError"),)


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        (case("f", Verdict.BROKEN, broken_sides=("candidate",), reasons=WHY), Verdict.BROKEN),
        (case("f", Verdict.WRONG, reasons=WHY), Verdict.WRONG),
        (case("f", Verdict.BROKEN, broken_sides=("baseline",)), Verdict.INCONCLUSIVE),
        (case("f", Verdict.BROKEN, broken_sides=SIDES), Verdict.INCONCLUSIVE),
    ],
)
def test_what_the_candidate_does_wrong_in_it_counts(second: CaseResult, verdict: Verdict) -> None:
    found = confirmed(FIRST, CaseOutcome(second), 1)
    assert found.verdict is verdict
    assert found.screening is not None


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"verdict": Verdict.WRONG, "note": "more memory"}, Verdict.WRONG),
        ({"verdict": Verdict.REFUSED, "note": "wall-disagrees"}, Verdict.REFUSED),
        ({"verdict": Verdict.SLOWER}, Verdict.SLOWER),
        ({"verdict": Verdict.REFUSED, "tier": MeasurementTier.C}, Verdict.INCONCLUSIVE),
    ],
)
def test_an_estimate_does_not_undo_what_else_was_found(
    changes: dict[str, object], verdict: Verdict
) -> None:
    again = FIRST.result.model_copy(update=changes)
    assert confirmed(FIRST, CaseOutcome(again, ESTIMATE), 1).verdict is verdict


def test_it_draws_other_data(repository: Path) -> None:
    seeds = repository.parent / "seeds"
    bench = f"""
        import random, time
        from sns_gate import benchmark
        import pkg

        @benchmark(check=False)
        def f():
            with open({str(seeds)!r}, "a") as file:
                file.write(f"{{random.random()}}\\n")
            return lambda: time.sleep(pkg.work(0.001))
    """
    files = {"benchmarks/bench_work.py": bench, "pkg/__init__.py": "def work(s):\n    return s\n"}
    commit(repository, files)
    commit(repository, {"pkg/__init__.py": "def work(s):\n    return 3 * s\n"})
    assert check(repository).verdicts == {"f": "slower"}
    drawn = seeds.read_text().splitlines()
    of_first, of_second = set(drawn[: len(drawn) // 3]), set(drawn[-len(drawn) // 3 :])
    assert of_first
    assert not of_first & of_second


def test_a_case_knows_its_seed_by_the_check_alone() -> None:
    spec = CaseSpec("f", "benchmarks/bench_f.py", 1, None, "auto")
    planned = PlannedCase(spec, 0.02)
    assert planned.seed(7) == 7
    again = replace(planned, again=True)
    assert len({again.seed(7), again.seed(8), 7, 8}) == 4
    assert again.seed(7) == again.seed(7)


@pytest.mark.parametrize("side", SIDES)
def test_a_side_without_workers_breaks_the_case_and_nothing_else(side: Side) -> None:
    """As where all of them were killed at once, by a machine that ran out of memory."""
    run = CaseRun(
        case="f", mode="auto", precision=1, placements=1, device="cpu", seed=0, setup_timeout_s=1,
        deadline_s=time.monotonic() + 60, timer_step_ns=32.0,
    )  # fmt: skip
    there = {one: [] if one == side else [object()] for one in SIDES}
    found = measure_case(lambda one: there[one], run, QuietObserver(), SilentProgress())  # type: ignore[arg-type, return-value]
    assert isinstance(found, BrokenCase)
    assert found.sides == (side,)
    assert found.reasons[0].code == "worker-died"
