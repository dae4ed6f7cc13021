"""Past results: kept once each by many writers, shown as trends, and never a baseline."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sns_gate import history
from sns_gate.errors import UsageError
from sns_gate.report import trend as shown
from sns_gate.report.writing import ResultFile
from sns_gate.types import GateResult, MeasurementTier, Verdict
from tests.conftest import commit, git, sns_gate
from tests.test_report import case, result


def checked(number: int, ms: float, tier: str = "A", name: str = "softmax") -> GateResult:
    one = case(name, Verdict.UNCHANGED, 0.99, 1.0, 1.01)
    one = one.model_copy(update={"candidate_ms": ms, "tier": MeasurementTier(tier)})
    found = result(one)
    clean = found.candidate.model_copy(
        update={"commit": f"{number:040x}", "dirty": False, "changed_files": ()}
    )
    return found.model_copy(
        update={"candidate": clean, "started_at": f"2026-01-01T00:{number:02}:00+00:00"}
    )


def levels(*counts: tuple[int, float], seed: int = 1) -> list[GateResult]:
    """Checks whose times stay at each level for a while, with 0.2% of noise."""
    rng = random.Random(seed)
    values = [ms * (1 + rng.gauss(0, 0.002)) for count, ms in counts for _ in range(count)]
    return [checked(number, ms) for number, ms in enumerate(values)]


def test_a_result_is_kept_once_and_reads_as_a_trend(tmp_path: Path) -> None:
    file = tmp_path / "past.db"
    made = levels((10, 1.0), (10, 1.03))
    assert [history.add(file, one) for one in made] == [1] * 20
    assert history.add(file, made[3]) == 0, "it is there already"
    (found,) = history.trends(file)
    assert (found.case, len(found.points), found.changes) == ("softmax", 20, (10,))
    assert found.points[0].commit == f"{0:040x}"
    said = shown.change(found, 10)
    assert said.startswith(f"from {10:040x}"[:14])
    assert "(+3.0%)" in said or "(+2.9%)" in said or "(+3.1%)" in said


@pytest.mark.parametrize("seed", range(10))
def test_times_that_only_vary_have_no_change(seed: int) -> None:
    rng = random.Random(seed)
    times = [1.0 * (1 + rng.gauss(0, 0.003)) for _ in range(40)]
    assert history.change_points(times) == ()
    assert history.change_points([1.0] * 40) == ()
    assert history.change_points([1.0, 2.0]) == ()


def test_times_of_floating_clocks_are_never_compared(tmp_path: Path) -> None:
    file = tmp_path / "past.db"
    for number in range(20):
        history.add(file, checked(number, 1.0 if number < 10 else 2.0, tier="B"))
    (found,) = history.trends(file)
    assert (len(found.points), found.times, found.changes) == (20, (), ())


def test_what_is_no_commit_or_not_whole_or_not_trusted_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "past.db"
    whole = checked(1, 1.0)
    dirty = whole.candidate.model_copy(update={"dirty": True})
    assert history.add(file, whole.model_copy(update={"candidate": dirty})) == 0
    assert history.add(file, whole.model_copy(update={"complete": False})) == 0
    assert history.add(file, checked(2, 1.0, tier="C")) == 0


def test_machines_that_differ_are_trends_of_their_own(tmp_path: Path) -> None:
    file, one = tmp_path / "past.db", checked(1, 1.0)
    found = one.candidate.fingerprint
    assert found is not None
    other = one.candidate.model_copy(
        update={"fingerprint": found.model_copy(update={"driver_version": "600.1"})}
    )
    history.add(file, one)
    history.add(file, one.model_copy(update={"candidate": other}))
    assert len({trend.machine for trend in history.trends(file)}) == 2
    assert history.trends(file, "nothing like it") == []


def test_a_case_that_no_check_has_had_is_said_with_those_that_there_are(tmp_path: Path) -> None:
    history.add(tmp_path / "past.db", checked(1, 1.0))
    ran = sns_gate(tmp_path, "history", "--history", "past.db", "sofmax")
    assert ran.code == 2
    assert "no case of past.db matches sofmax" in ran.err
    assert "the cases are: softmax" in ran.err


WRITER = """
import sys
from pathlib import Path
from sns_gate import history
from tests.test_history import checked
first = int(sys.argv[2])
for number in range(first, first + 10):
    assert history.add(Path(sys.argv[1]), checked(number, 1.0)) == 1
"""


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "past.db"
    root = Path(__file__).parents[1]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file), str(10 * n)], cwd=root)
        for n in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    (found,) = history.trends(file)
    assert len(found.points) == 40


def test_a_file_that_is_no_history_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello, this is no database at all" * 50)
    with pytest.raises(UsageError, match="is no history that can be used"):
        history.add(tmp_path / "notes.txt", checked(1, 1.0))
    with sqlite3.connect(tmp_path / "newer.db") as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(UsageError, match="of schema 7"):
        history.add(tmp_path / "newer.db", checked(1, 1.0))
    with pytest.raises(UsageError, match="there is no history at"):
        history.trends(tmp_path / "none.db")


def test_the_page_holds_every_trend_and_no_text_of_a_user_acts(tmp_path: Path) -> None:
    file = tmp_path / "past.db"
    history.add(file, checked(1, 1.0, name="<script>alert(1)</script>"))
    page = shown.page(history.trends(file))
    assert "&lt;script&gt;alert" in page
    assert "<script>alert(1)" not in page


def test_a_check_of_a_commit_adds_itself_and_the_command_shows_it(repository: Path) -> None:
    commit(repository, {"README": "the same", "sns-gate.toml": 'history = "past.db"\n',
                        ".gitignore": "past.db\nresult.json\n"})  # fmt: skip
    head = git(repository, "rev-parse", "HEAD")
    none = sns_gate(repository, "history")
    assert none.code == 2
    assert "there is no history at" in none.err
    options = ("--device", "cpu", "--processes", "3", "--placements", "2", "--tolerance", "90%")
    ran = sns_gate(repository, "check", *options, "--baseline", "HEAD~1", "--candidate", head)
    assert ran.result is not None, ran.err
    told = sns_gate(repository, "history", "square", "--html", "past.html")
    assert told.code == 0, told.err
    assert "square[n=2000]" in told.out
    assert "no check reached tier A" in told.out
    assert (repository / "past.html").stat().st_size > 1000
    ResultFile(repository / "again.json").save(ran.result)
    again = sns_gate(repository, "history", "--add", "again.json")
    assert "again.json: 0 cases added" in again.out


def test_two_results_of_one_second_are_two_where_their_cases_differ(tmp_path: Path) -> None:
    file = tmp_path / "past.db"
    first, second = checked(1, 1.0), checked(1, 1.0, name="add")
    assert [history.add(file, one) for one in (first, second, second)] == [1, 1, 0]
