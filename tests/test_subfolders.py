"""Commands from a folder inside the repository read and write what those at its root do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import QUICK, check, commit, sns_gate


@pytest.fixture
def inside(repository: Path, tmp_path: Path) -> Path:
    """A subfolder of a repository whose configuration names folders and a file."""
    state = tmp_path / "state"
    state.mkdir()
    commit(repository, {
        "sns-gate.toml": f"state-dir = '{state}'\nhistory = 'past.db'\npython = '/bin/false'\n",
        ".gitignore": "result.json\n*.db*\n__pycache__/\n", "sub/x": "",
    })  # fmt: skip
    return repository / "sub"


def test_the_history_is_the_same_file(inside: Path) -> None:
    root = inside.parent
    commit(root, {"README": "the same"})
    python = ("--python", sys.executable)
    ran = check(inside, "--baseline", "HEAD~1", "--candidate", "HEAD", *python)
    assert ran.result is not None, ran.err
    assert (root / "past.db").exists()
    shown = sns_gate(inside, "history")
    assert shown.code == 0, shown.err
    assert "square" in shown.out
    named = check(
        inside, "--baseline", "HEAD~1", "--candidate", "HEAD", *python, "--history", "own.db"
    )
    assert named.result is not None
    assert sns_gate(inside, "history", "--history", "own.db").code == 0


def test_restore_looks_where_checks_keep_their_journals(inside: Path, tmp_path: Path) -> None:
    ran = sns_gate(inside, "restore")
    assert ran.code == 0
    assert f"{tmp_path / 'state'} holds no journal" in ran.out


def test_doctor_examines_the_interpreter_that_checks_use(inside: Path) -> None:
    ran = sns_gate(inside, "doctor")
    assert "/bin/false is no Python" in ran.err, ran.out


def test_calibrate_writes_into_the_configuration_that_checks_read(inside: Path) -> None:
    ran = sns_gate(
        inside, "calibrate", *QUICK[:-2], "--python", sys.executable, "--rounds", "1", "--write"
    )
    assert not (inside / "sns-gate.toml").exists()
    wrote = ran.code == 0
    assert (f"written into {inside.parent / 'sns-gate.toml'}" in ran.out) is wrote, ran.out
