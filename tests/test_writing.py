"""The result file as it grows: added to where it is large, and whole after every step."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sns_gate.errors import ResultFileError
from sns_gate.report import json as result_file
from sns_gate.report import writing
from sns_gate.report.writing import ResultFile
from sns_gate.temporary import own_prefix
from sns_gate.types import CaseResult, GateResult, Outcome, Verdict
from tests.conftest import check, commit
from tests.test_report import case, result


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as large from their first byte."""
    monkeypatch.setattr(writing, "_WHOLE_BYTES", 1)


def partial(cases: Sequence[CaseResult]) -> GateResult:
    found = result(*cases)
    ended = {"exit_code": 3, "conclusion": "failure", "verdict": Outcome.REFUSED}
    return found.model_copy(update={"complete": False, **ended})


def cases(count: int) -> list[CaseResult]:
    return [case(f"case{n}", Verdict.UNCHANGED, 0.999, 1.0, 1.001) for n in range(count)]


def failure(file: ResultFile) -> str:
    return str(file.failure or "")


def inode(path: Path) -> int:
    return path.stat().st_ino


@pytest.mark.usefixtures("large")
def test_a_large_file_is_added_to_and_reads_the_same_at_every_step(tmp_path: Path) -> None:
    file, made = ResultFile(tmp_path / "r.json"), cases(6)
    file.save(partial(made[:1]))
    first = inode(file.path)
    for count in range(2, 7):
        file.save(partial(made[:count]))
        assert result_file.read(file.path).cases == tuple(made[:count])
    assert inode(file.path) == first, "it was not replaced"
    file.finish()
    assert result_file.read(file.path) == partial(made), "what stands before them follows"
    first = inode(file.path)
    file.save(result(*reversed(made)))
    assert result_file.read(file.path) == result(*reversed(made)), "the last word has its order"
    assert inode(file.path) != first


@pytest.mark.usefixtures("large")
def test_a_changed_case_waits_for_its_place_and_has_it_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made = ResultFile(tmp_path / "r.json"), cases(3)
    file.save(partial(made))
    monkeypatch.setattr(ResultFile, "_may_rewrite", lambda _: False)
    changed = [*made[:2], case("case2", Verdict.SLOWER, 0.8, 0.85, 0.9)]
    file.save(partial(changed))
    assert result_file.read(file.path) == partial(made), "what stands there is still true"
    file.finish()
    assert result_file.read(file.path) == partial(changed)
    file.finish()


@pytest.mark.usefixtures("large")
def test_a_disk_that_fills_up_keeps_the_cases_that_stand_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made = ResultFile(tmp_path / "r.json"), cases(4)
    file.save(partial(made[:2]))
    real, left = os.pwrite, [200]

    def nearly_full(descriptor: int, data: bytes, at: int) -> int:
        if at + len(bytes(data)) <= os.fstat(descriptor).st_size:
            return real(descriptor, data, at)
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        room, left[0] = left[0], 0
        return real(descriptor, bytes(data)[:room], at)

    monkeypatch.setattr(os, "pwrite", nearly_full)
    file.save(partial(made[:3]))
    assert "No space left on device" in failure(file)
    assert result_file.read(file.path).cases == tuple(made[:2])
    monkeypatch.setattr(os, "pwrite", real)
    file.save(partial(made))
    assert failure(file) == ""
    assert result_file.read(file.path).cases == tuple(made)


def test_a_small_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file, made = ResultFile(tmp_path / "r.json"), cases(2)
    file.save(partial(made[:1]))
    first = inode(file.path)
    file.save(partial(made))
    assert inode(file.path) != first
    assert list(tmp_path.iterdir()) == [file.path]


@pytest.mark.usefixtures("large")
def test_what_no_encoding_holds_is_replaced_also_where_a_file_grows(tmp_path: Path) -> None:
    file, made = ResultFile(tmp_path / "r.json"), cases(1)
    file.save(partial(made))
    file.save(partial([*made, case("odd\ud800", Verdict.ADDED)]))
    assert [one.id for one in result_file.read(file.path).cases] == ["case0", "odd?"]


@pytest.mark.usefixtures("large")
def test_a_file_that_is_cut_off_in_mid_case_keeps_those_before_it(tmp_path: Path) -> None:
    file, made = ResultFile(tmp_path / "r.json"), cases(3)
    file.save(partial(made[:2]))
    whole = file.path.stat().st_size
    file.save(partial(made))
    grown = file.path.read_bytes()
    for length in range(whole - 1, len(grown)):
        file.path.write_bytes(grown[:length])
        found = result_file.read(file.path)
        assert found.cases[:2] == tuple(made[:2])
        assert not found.complete


def test_a_file_that_is_cut_off_before_its_first_case_is_no_result(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "r.json")
    file.save(partial(cases(1)))
    file.path.write_bytes(file.path.read_bytes()[:300])
    with pytest.raises(ResultFileError, match="it was cut off"):
        result_file.read(file.path)


@pytest.mark.usefixtures("large")
def test_of_a_complete_result_nothing_may_be_missing(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "r.json")
    file.save(result(*cases(3)))
    whole = file.path.read_bytes()
    for length in range(len(whole) - 900, len(whole) - 1, 50):
        file.path.write_bytes(whole[:length])
        with pytest.raises(ResultFileError, match="it was cut off"):
            result_file.read(file.path)


def test_a_check_that_comes_to_nothing_puts_the_earlier_result_aside(repository: Path) -> None:
    commit(repository, {"README": "the same"})
    earlier = check(repository)
    assert earlier.result is not None
    mistyped = check(repository, "--tolerance", "abc")
    assert mistyped.code == 2
    assert mistyped.result is None, "no old pass stands for a check that did not happen"
    assert "the earlier result is kept as result.json.before" in mistyped.err
    assert result_file.read(repository / "result.json.before") == earlier.result


def test_what_a_killed_writer_left_goes_with_the_next_check_and_nothing_else(
    tmp_path: Path,
) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    mine = own_prefix()
    names = {
        "dead": mine.replace(str(os.getpid()), str(dead.pid)), "living": mine,
        "elsewhere": f"sns-gate-{dead.pid}-00000000-",
    }  # fmt: skip
    files = {who: tmp_path / f".result.json.{name}x1" for who, name in names.items()}
    for file in (*files.values(), tmp_path / ".gitignore"):
        file.touch()
    ResultFile(tmp_path / "result.json").discard_old()
    assert [who for who, file in files.items() if not file.exists()] == ["dead"]
    assert (tmp_path / ".gitignore").exists()
