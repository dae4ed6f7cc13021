"""What the gate wrote into a repository is no change of it, whatever it is called there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sns_gate import history
from sns_gate.calibration import calibrate
from sns_gate.report import html, trend
from sns_gate.report.junit import junit
from sns_gate.report.writing import ResultFile
from sns_gate.revisions import Repository, check_out
from sns_gate.types import Bisection
from tests.conftest import QUICK, WORK, commit, sns_gate
from tests.test_history import checked
from tests.test_report import CASES, result


def history_page(file: Path) -> None:
    past = file.with_name(f"{file.name}.db")
    history.add(past, checked(1, 1.0))
    file.write_text(trend.page(history.trends(past)))


#: Every file that a command writes, by a function that writes it as the command does.
WRITERS: dict[str, Callable[[Path], object]] = {
    "result": lambda file: ResultFile(file).save(result(*CASES)),
    "report": lambda file: file.write_text(html.render(result(*CASES))),
    "JUnit's": lambda file: file.write_text(junit(result(*CASES))),
    "history": lambda file: history.add(file, checked(1, 1.0)),
    "history's page": history_page,
    "calibration": lambda file: file.write_text(
        calibrate([result(*CASES)]).model_dump_json(indent=2)
    ),
    "bisection": lambda file: file.write_text(
        Bisection(good="a" * 40, bad="b" * 40, case="c", effect=0.1).model_dump_json(indent=2)
    ),
}


def changed(repository: Path, scratch: Path, *named: Path) -> tuple[str, ...]:
    """What of a working tree counts as changed, in a run that writes these files."""
    found = Repository(repository)
    with check_out(found, "candidate", "working tree", None, scratch, named) as revision:
        assert revision.dirty == bool(revision.changed_files)
        assert set(revision.untracked_files) <= set(revision.changed_files)
        return revision.changed_files


@pytest.mark.parametrize("kind", WRITERS)
def test_no_file_of_the_gates_own_is_a_change(repository: Path, tmp_path: Path, kind: str) -> None:
    WRITERS[kind](repository / "out put")
    assert changed(repository, tmp_path / "scratch") == ()
    commit(repository, {})
    (repository / "out put").write_bytes((repository / "out put").read_bytes() + b"\n")
    assert changed(repository, tmp_path / "again") == (), "nor where somebody has committed it"


def test_a_file_that_this_run_writes_is_no_change_though_it_is_gone(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, {"kept.json": "as committed\n"})
    file = repository / "kept.json"
    file.unlink()
    assert changed(repository, tmp_path / "scratch", file) == ()
    assert changed(repository, tmp_path / "again") == ("kept.json",)


def test_files_beside_a_history_or_a_bisection_are_no_change(
    repository: Path, tmp_path: Path
) -> None:
    WRITERS["history"](repository / "past.db")
    WRITERS["bisection"](repository / "bisect.json")
    (repository / "past.db-journal").touch()
    (repository / "bisect.json.builds/one").mkdir(parents=True)
    (repository / "bisect.json.builds/one/built.py").touch()
    assert changed(repository, tmp_path / "scratch") == ()


def test_a_file_of_the_users_is_a_change_whatever_it_is_called(
    repository: Path, tmp_path: Path
) -> None:
    for name in ("result.json.before", "report.html", "junit.xml", "past.db", "x.builds/y.py"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text("<!doctype html><title>mine</title>")
    assert len(changed(repository, tmp_path / "scratch")) == 5


def test_a_history_in_the_repository_takes_more_than_one_check(repository: Path) -> None:
    commit(repository, {"sns-gate.toml": "history = 'past.db'\n", ".gitignore": "__pycache__/\n"})
    for number in range(2):
        commit(repository, {"pkg/__init__.py": WORK + f"\n    number = {number}\n"})
        ran = sns_gate(repository, "check", *QUICK, "--baseline", "HEAD~1")
        assert ran.result is not None, ran.err
        assert not ran.result.candidate.dirty, ran.result.candidate.changed_files
        assert "not added" not in ran.err
    assert len(history.trends(repository / "past.db")[0].points) == 2
