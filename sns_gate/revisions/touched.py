"""Whether the working tree stays what it was while it is measured."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from sns_gate.errors import RevisionError
from sns_gate.revisions.checkout import Revision
from sns_gate.revisions.outputs import is_output
from sns_gate.revisions.repository import Repository


class TrackedFiles:
    """The tracked files of a working tree as they are now.

    Args:
        revision: that is measured, None for none; one that is not measured in place has files that
            nobody else knows of.
        outputs: files that this run writes, which are none of the code.
    """

    def __init__(self, revision: Revision | None = None, outputs: Collection[Path] = ()) -> None:
        self._root = revision.repository if revision and revision.in_place else None
        self._outputs = outputs
        self._before = self._state()

    def touched(self) -> tuple[str, ...]:
        """Those that have been written, removed or restored since, sorted; none if git fails."""
        try:
            now = self._state()
        except RevisionError:  # it is beside the measurement
            return ()
        names = self._before.keys() | now.keys()
        return tuple(sorted(n for n in names if self._before.get(n) != now.get(n)))

    def _state(self) -> dict[str, tuple[int, int] | None]:
        """When each file unlike HEAD was written, and its size; None where it is gone."""
        if self._root is None:
            return {}
        files = {name: self._root / name for name in Repository(self._root).changed_tracked()}
        return {
            name: _written(file)
            for name, file in files.items()
            if not is_output(file, self._outputs)
        }


def _written(file: Path) -> tuple[int, int] | None:
    try:
        found = file.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
