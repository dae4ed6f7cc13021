"""The files that make a revision: what git tracks or would track, and nothing that it ignores."""

from __future__ import annotations

import gzip
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Protocol

from sns_gate.errors import RevisionError

_NEVER = {".git", "__pycache__"}
_QUICK = 1


class Sink(Protocol):
    """Takes bytes in one pass."""

    def write(self, data: bytes, /) -> object:
        """Take them all."""

    def flush(self) -> object:
        """Nobody waits for that."""


def pack(root: Path, into: Sink) -> None:
    """Write a folder's files as a gzipped tar archive, named relative to it.

    In a working tree these are git's own and new ones that it does not ignore, and submodules
    whole; elsewhere all of them. What others remove meanwhile is left out.

    Args:
        root: a worktree, or any folder.
        into: takes it.

    Raises:
        RevisionError: a file cannot be read.
    """
    try:
        with (
            gzip.GzipFile(fileobj=into, mode="wb", compresslevel=_QUICK) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for name in _names(root):
                path = root / name
                if os.path.lexists(path):
                    archive.add(path, arcname=name, filter=_kept)
    except (OSError, tarfile.TarError) as error:
        raise RevisionError(
            f"the files of {root} cannot be shipped ({error}); mend that, or measure where this "
            f"folder is seen under the same path"
        ) from None


def unpack(archive: Path, root: Path) -> None:
    """Take such an archive apart into a new folder."""
    root.mkdir(parents=True)
    with tarfile.open(archive, "r:gz") as packed:
        # Early releases of Python 3.11 have no filters.
        packed.extraction_filter = getattr(tarfile, "tar_filter", lambda entry, _: entry)
        packed.extractall(root)  # noqa: S202 (the coordinator packed it)


def _names(root: Path) -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 (the user's git)
        cwd=root, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode or not (root / ".git").exists():
        return sorted(entry.name for entry in root.iterdir())
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(entry.name).name in _NEVER else entry
