"""The check's own temporary folder, and those that killed checks left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from sns_gate.accounts import remove_marked
from sns_gate.signals import to_its_end

_PREFIX = "sns-gate-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, named after this process and removed with all that is in it."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve()
    try:
        yield folder
    finally:
        to_its_end(_remove_own)


def _remove_own() -> None:
    """Remove the folder, and what was made beside it: this process's name is in all of them."""
    for own in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{os.getpid()}-*"):
        _remove(own)


def sweep() -> None:
    """Remove the folders of checks whose process is gone; other users' are left alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        with contextlib.suppress(OSError):
            if is_left_behind(folder) and folder.stat().st_uid == os.getuid():
                _remove(folder)


def _remove(folder: Path) -> None:
    remove_marked(folder)
    shutil.rmtree(folder, ignore_errors=True)


def is_left_behind(path: Path) -> bool:
    """Whether a path is, or lies in, the folder of a check whose process is gone."""
    for part in path.parts:
        number = part.removeprefix(_PREFIX).partition("-")[0]
        if part.startswith(_PREFIX) and number.isdecimal():
            return not psutil.pid_exists(int(number))
    return False
