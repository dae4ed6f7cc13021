"""How a running check tells of itself: a bar at a terminal, lines in a log."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from sns_gate.report.progress import Detail, LiveProgress, PlainProgress, progress_for
from sns_gate.report.terminal import console_for
from sns_gate.session import Standing
from sns_gate.stats import Estimate
from sns_gate.types import MeasurementTier
from tests.test_report import CASES

STANDING = Standing(
    blocks=4, planned=16, pairs=96, tier=MeasurementTier.B,
    estimate=Estimate(math.log(0.99), (0.004 / 1.96) ** 2, math.inf, 0.0, 4, 3),
)  # fmt: skip


def test_a_bar_shows_a_cases_whole_name() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    bar = LiveProgress(console)
    bar.start()
    bar.cases_known(1)
    bar.case_started("softmax[n=4096]", confirming=False)
    bar.block_done("softmax[n=4096]", STANDING)
    bar.stop()
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "1/1 softmax[n=4096]  96 pairs  0.9900 ±0.40%  tier B" in shown


def told(detail: Detail, **environment: str) -> str:
    """What a log holds of a check with one case and one block."""
    stream = io.StringIO()
    progress = progress_for(console_for(stream, environment), detail)
    progress.start()
    progress.stage("starting 6 workers")
    progress.cases_known(1)
    progress.case_started("add", confirming=False)
    progress.block_done("add", STANDING)
    progress.case_finished(CASES[1])
    progress.stop()
    return stream.getvalue()


def test_a_log_has_as_many_lines_as_asked_for() -> None:
    usual = ["starting 6 workers", "1/1 add  slower  0.9713 [0.9673, 0.9753]"]
    assert told("usual").splitlines() == usual
    block = "  add  block 4 of 16  96 pairs  0.9900 ±0.40%  tier B"
    assert told("verbose").splitlines() == [usual[0], block, usual[1]]
    assert told("quiet") == ""


def test_a_second_check_of_one_command_counts_its_cases_anew() -> None:
    console = Console(file=io.StringIO(), width=140, highlight=False)
    progress = progress_for(console)
    for _ in range(2):
        progress.cases_known(1)
        progress.case_started("add", confirming=False)
        progress.case_finished(CASES[1])
        progress.case_started("add", confirming=True)
        progress.case_finished(CASES[1])
    starts = [line.split()[0] for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert starts == ["1/1", "again:", "1/1", "again:"]


def test_cases_against_a_further_baseline_are_counted_on() -> None:
    console = Console(file=io.StringIO(), width=140, highlight=False)
    progress = progress_for(console)
    for known in (1, 2):
        progress.cases_known(known)
        progress.case_started("add", confirming=False)
        progress.case_finished(CASES[1])
    starts = [line.split()[0] for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert starts == ["1/1", "2/2"]


def test_github_folds_the_lines_of_a_running_check_away() -> None:
    lines = told("usual", GITHUB_ACTIONS="true").splitlines()
    assert (lines[0], lines[-1]) == ("::group::sns-gate: measuring", "::endgroup::")
    assert "::" not in "".join(lines[1:-1])


@pytest.mark.parametrize("variable", ["CI", "GITHUB_ACTIONS"])
def test_a_runners_log_has_lines_and_no_bar_even_where_it_poses_as_a_terminal(
    variable: str,
) -> None:
    class Posing(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(progress_for(console_for(Posing(), {variable: "true"})), PlainProgress)
    assert isinstance(progress_for(console_for(Posing(), {"TERM": "xterm"})), LiveProgress)
