"""What was changed on a GPU, written down before it is changed; one journal a GPU."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil
from pydantic import ValidationError

from sns_gate.types import Record

_SUFFIX = ".clocks.json"


class ClockJournal(Record):
    """One GPU's pinned clocks and what they were before.

    Attributes:
        uuid: of the GPU.
        sm_mhz: the SM clock that is pinned.
        memory_mhz: the memory clock that is pinned, None where it is not.
        power_limit_w: the power limit to set back, None where it is not changed.
        pid: of the gate that pinned them.
        started_at: when that process started, so that a new one of its number is told apart.
    """

    uuid: str
    sm_mhz: int
    memory_mhz: int | None = None
    power_limit_w: float | None = None
    pid: int
    started_at: float

    @property
    def owner_alive(self) -> bool:
        """Whether the gate that wrote it still runs."""
        with contextlib.suppress(psutil.Error):
            return abs(psutil.Process(self.pid).create_time() - self.started_at) < 1
        return False


def journal_path(state_dir: Path, uuid: str) -> Path:
    """Where the journal of a GPU is."""
    return state_dir / f"{uuid}{_SUFFIX}"


def prepare(state_dir: Path) -> Path:
    """Make the shared folder, open to all users and sticky like a temporary one."""
    if not state_dir.is_dir():
        with contextlib.suppress(FileExistsError):
            state_dir.mkdir(parents=True)
            state_dir.chmod(0o1777)
    return state_dir


def create(path: Path, journal: ClockJournal) -> None:
    """Write a new journal to the disk itself.

    Raises:
        FileExistsError: one is there already.
        OSError: it could not be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(journal.model_dump_json())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> ClockJournal | None:
    """The journal at this path; None where there is none, or none that we may believe."""
    try:
        if path.stat().st_uid not in (0, os.getuid()):
            return None
        return ClockJournal.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None


def journals(state_dir: Path) -> list[tuple[Path, ClockJournal]]:
    """All journals of a folder that we may believe."""
    found = ((path, read(path)) for path in sorted(state_dir.glob(f"*{_SUFFIX}")))
    return [(path, journal) for path, journal in found if journal is not None]
