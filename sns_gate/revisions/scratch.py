"""The check's own temporary folder, and those that killed checks left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sns_gate.accounts import remove_marked
from sns_gate.signals import to_its_end
from sns_gate.temporary import ANY, is_left_behind, own_prefix


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, named after this process and removed with all that is in it."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=own_prefix())).resolve()
    try:
        yield folder
    finally:
        to_its_end(_remove_own)


def _remove_own() -> None:
    """Remove the folder, and what was made beside it: this process's name is in all of them."""
    for own in Path(tempfile.gettempdir()).glob(f"{own_prefix()}*"):
        _remove(own)


def sweep() -> None:
    """Remove the folders of checks whose process is gone; other users' are left alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{ANY}*-*"):
        with contextlib.suppress(OSError):
            if is_left_behind(folder) and folder.stat().st_uid == os.getuid():
                _remove(folder)


def _remove(folder: Path) -> None:
    remove_marked(folder)
    shutil.rmtree(folder, ignore_errors=True)
