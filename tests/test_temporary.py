"""Temporary folders are known by their names, also where several machines share their place."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from sns_gate.revisions import sweep
from sns_gate.temporary import ANY, is_left_behind, own_prefix


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_folder_is_left_behind_once_its_process_is_gone(tmp_path: Path) -> None:
    mine = own_prefix()
    theirs = mine.replace(f"{ANY}{os.getpid()}-", f"{ANY}{dead_pid()}-")
    assert not is_left_behind(tmp_path / f"{mine}x" / "inside")
    assert is_left_behind(tmp_path / f"{theirs}x" / "inside")
    assert not is_left_behind(tmp_path / "nothing of ours")


def test_what_another_machine_left_is_for_that_machine_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = dead_pid()
    mine = own_prefix().replace(f"{ANY}{os.getpid()}-", f"{ANY}{dead}-")
    for name in (f"{mine}x", f"{ANY}{dead}-0badcafe-x", f"{ANY}{dead}-x"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sweep()
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        f"{ANY}{dead}-0badcafe-x", f"{ANY}{dead}-x",
    ]  # fmt: skip
