"""Whether the working tree stays what it was while it is measured."""

from __future__ import annotations

from pathlib import Path

from sns_gate.revisions.repository import Repository


class TrackedFiles:
    """The tracked files of a working tree as they are now.

    Args:
        root: of the tree, None for files that nobody can change meanwhile.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._before = self._state()

    def touched(self) -> tuple[str, ...]:
        """Those that have been written, removed or restored since, sorted."""
        now = self._state()
        names = self._before.keys() | now.keys()
        return tuple(sorted(n for n in names if self._before.get(n) != now.get(n)))

    def _state(self) -> dict[str, tuple[int, int] | None]:
        """When each file unlike HEAD was written, and its size; None where it is gone."""
        if self._root is None:
            return {}
        return {name: self._written(name) for name in Repository(self._root).changed_tracked()}

    def _written(self, name: str) -> tuple[int, int] | None:
        assert self._root is not None  # noqa: S101 (else there are no names)
        try:
            found = (self._root / name).lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
