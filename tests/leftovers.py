"""What checks leave behind: processes, worktrees, temporary files, halves of a result."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

from tests.conftest import git

_GONE_WITHIN_S = 5.0
_POLL_S = 0.05


def processes_in(tmp: Path) -> list[str]:
    """Living processes that were given this folder for temporary files, or one below it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            inside = process.environ().get("TMPDIR", "").startswith(str(tmp))
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return found


def left_behind(repository: Path, tmp: Path, worktrees: int = 1) -> dict[str, object]:
    """Everything that is left of checks, empty where nothing is.

    Args:
        repository: that they ran in, with ``result.json`` ignored.
        tmp: their folder for temporary files, and nobody else's.
        worktrees: that the repository had before.
    """
    deadline_s = time.monotonic() + _GONE_WITHIN_S
    while processes_in(tmp) and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)
    listed = git(repository, "worktree", "list", "--porcelain", "-z").rstrip("\0").split("\0\0")
    found = {
        "processes": processes_in(tmp),
        "worktrees": listed[worktrees:],
        "files": [f.name for f in tmp.iterdir()],
        "beside the result": [f.name for f in repository.glob(".result.json*")],
    }
    return {name: value for name, value in found.items() if value}
