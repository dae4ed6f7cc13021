"""A revision against itself: what it says of a runner, and what it writes down."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest
from rich.console import Console

from sns_gate.calibration import calibrate
from sns_gate.errors import ConfigError
from sns_gate.report.calibration import render, write
from sns_gate.types import Block, CaseResult, GateResult, Outcome, RevisionInfo, Speedup, Verdict
from tests.conftest import commit, sns_gate

PROCESSES = 4


def case(  # noqa: PLR0913 (a case has so many sides)
    id_: str, half_pct: float, *, placement: float = 0.1, process: float = 0.0, seed: int = 1,
    verdict: Verdict = Verdict.UNCHANGED, estimate: float = 1.0,
) -> CaseResult:  # fmt: skip
    """A measured case of identical code whose blocks vary as asked, in %."""
    rng = random.Random(seed)
    workers = [[rng.gauss(0, process / 100) for _ in range(PROCESSES)] for _ in range(2)]
    blocks = tuple(
        Block(
            placement=placement_, baseline_worker=b, candidate_worker=(b + placement_) % PROCESSES,
            settling=0, sides="", ms=(), device_mhz=(), held_us=(),
            log_speedup=workers[0][b] - workers[1][(b + placement_) % PROCESSES]
            + rng.gauss(0, placement / 100),
        )
        for placement_ in range(4)
        for b in range(PROCESSES)
    )  # fmt: skip
    half = half_pct / 100
    speedup = Speedup(estimate=estimate, low=estimate - half, high=estimate + half)
    return CaseResult(
        id=id_, verdict=verdict, tolerance=0.02, speedup=speedup, half_width_pct=half_pct,
        detectable_pct=3.0, seconds=2.0, blocks=blocks,
    )  # fmt: skip


def result(*cases: CaseResult) -> GateResult:
    side = RevisionInfo(ref="HEAD")
    return GateResult(
        tool_version="0", verdict=Outcome.PASS, exit_code=0, complete=True, tolerance=0.02,
        baseline=side, candidate=side, device="cuda:0", seed=0, processes=PROCESSES, placements=4,
        started_at="2026-01-01T00:00:00+00:00", seconds=9.0, cases=cases,
    )  # fmt: skip


def test_the_tolerance_suits_all_cases_but_the_tenth_that_wants_more() -> None:
    quiet = [case(f"case{n}", 0.2) for n in range(9)]
    found = calibrate([result(*quiet, case("loud", 2.4))])
    assert found.tolerance == 0.005
    assert found.excepted == ("loud",)
    assert found.cases[-1].tolerance == 0.05
    assert found.detectable_pct is not None
    assert 0.5 < found.detectable_pct < 1.5
    assert calibrate([result(*quiet[:3], case("loud", 2.4))]).tolerance == 0.05


def test_the_widest_round_counts_and_misses_and_alarms_are_counted() -> None:
    missed = case("a", 0.1, estimate=1.01, verdict=Verdict.FASTER)
    alarm = case("a", 0.9, estimate=0.97, verdict=Verdict.SLOWER)
    found = calibrate([result(case("a", 0.1)), result(missed), result(alarm)])
    (noise,) = found.cases
    assert (noise.rounds, noise.missed, noise.alarms) == (3, 2, 1)
    assert noise.half_width_pct == 0.9
    assert found.alarms == 1


def test_where_placement_rules_more_placements_are_recommended() -> None:
    found = calibrate([result(case("transpose", 0.9, placement=2.5))])
    assert found.tolerance == 0.02
    assert found.placements > 4
    assert calibrate([result(case("quiet", 0.9, placement=0.1))]).placements == 4


def test_the_components_tell_placement_from_process() -> None:
    rounds = [result(case("a", 0.5, placement=0.2, process=1.0, seed=seed)) for seed in range(30)]
    (noise,) = calibrate(rounds).cases
    assert noise.process_pct == pytest.approx(1.0, rel=0.25)
    assert noise.placement_pct == pytest.approx(0.2, rel=0.25)


def test_a_case_without_an_interval_is_named_with_its_reason_and_recommends_nothing() -> None:
    refused = CaseResult(id="a", verdict=Verdict.REFUSED, note="tier C", tolerance=0.02)
    found = calibrate([result(refused)])
    assert found.tolerance is None
    assert found.cases[0].refused == ("tier C",)
    with pytest.raises(ValueError, match="at least one check"):
        calibrate([])


def test_a_machine_too_noisy_for_any_tolerance_is_said_to_be_so() -> None:
    found = calibrate([result(case("a", 40.0))])
    assert found.tolerance is None
    console = Console(file=io.StringIO(), width=200)
    render(found, console)
    assert "too wide for any tolerance up to 50%" in console.file.getvalue()  # type: ignore[attr-defined]


def test_what_suits_is_written_and_all_else_stays(tmp_path: Path) -> None:
    found = calibrate([result(case("a", 0.9))])
    shared = tmp_path / "pyproject.toml"
    shared.write_text('# ours\n[tool.sns-gate]\ntolerance = "90%"  # too much\nseed = 3\n')
    assert write(found, tmp_path) == shared
    assert shared.read_text() == (
        '# ours\n[tool.sns-gate]\ntolerance = "2%"  # too much\nseed = 3\n'
        "placements = 4\nprocesses = 4\n"
    )
    shared.write_text("[project]\nname = 'x'\n")
    assert write(found, tmp_path) == tmp_path / "sns-gate.toml"
    assert shared.read_text() == "[project]\nname = 'x'\n"
    (tmp_path / "sns-gate.toml").write_text("tolerance =")
    with pytest.raises(ConfigError, match="write the settings by hand"):
        write(found, tmp_path)


def test_what_is_no_comparison_with_itself_says_nothing_of_the_noise() -> None:
    slow = case("a vs plain", 1.0, verdict=Verdict.SLOWER, estimate=0.5)
    held = slow.model_copy(update={"reference": "plain", "against": None})
    older = slow.model_copy(update={"id": "a against v1", "against": "v1"})
    found = calibrate([result(case("a", 1.0), held, older)])
    assert [one.id for one in found.cases] == ["a"]
    assert found.alarms == 0


def test_figures_that_could_not_be_kept_are_measured_by_nobody(repository: Path) -> None:
    ran = sns_gate(repository, "calibrate", "--device", "cpu", "--json", "nowhere/noise.json")
    assert ran.code == 2
    assert "round" not in ran.out


def test_calibrate_measures_head_against_itself_in_rounds(repository: Path) -> None:
    commit(repository, {"sns-gate.toml": "# ours\n"})
    ran = sns_gate(
        repository, "calibrate", "--device", "cpu", "--processes", "3", "--placements", "2",
        "--tolerance", "90%", "--rounds", "2", "--write", "--json", "noise.json",
    )  # fmt: skip
    assert "square[n=2000]" in ran.out
    kept = json.loads((repository / "noise.json").read_text())
    assert (kept["rounds"], kept["cases"][0]["rounds"]) == (2, 2)
    # A busy core may make the intervals too wide to recommend anything.
    recommends = kept["tolerance"] is not None
    assert ran.code == (0 if recommends else 3), ran.out + ran.err
    assert ("tolerance" in (repository / "sns-gate.toml").read_text()) is recommends
    assert not (repository / "result.json").exists()
    assert sns_gate(repository, "calibrate", "--rounds", "0").code == 2


def test_what_was_refused_says_nothing_of_what_the_machine_can_do() -> None:
    refused = case("a", 0.1, verdict=Verdict.REFUSED).model_copy(update={"note": "tier C"})
    found = calibrate([result(refused)] * 3)
    assert found.tolerance is None
    assert found.cases[0].refused == ("tier C",)
    assert calibrate([result(refused), result(case("a", 0.9))]).cases[0].half_width_pct == 0.9
