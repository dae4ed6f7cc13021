"""The user that code under test runs as where nothing else is asked: the gate's own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True)
class Streams:
    """What a process reads and writes, as ``subprocess`` takes it."""

    stdin: int
    stdout: int | IO[bytes]
    stderr: int | IO[bytes]


class Account:
    """The gate's own user: nothing is handed over, and nothing kept from anybody."""

    def variables(self, folder: Path) -> dict[str, str]:
        """Variables that name the user, with this folder for a home where it has none."""
        del folder
        return {}

    def start(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Streams
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own.

        Args:
            words: of the command.
            folder: to work in.
            environment: all of its variables.
            streams: that it gets.

        Raises:
            OSError: it cannot be run.
        """
        return subprocess.Popen(  # noqa: S603 (running the user's code is what was asked)
            [*words],
            cwd=folder,
            env=dict(environment),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            start_new_session=True,
            **self._identity,
        )

    @property
    def _identity(self) -> dict[str, Any]:
        """What ``subprocess`` has to change of who a started program is."""
        return {}

    def process(self, pid: int) -> int:
        """The process that a started program runs in, by the one that ``start`` gave."""
        return pid

    def signal(self, number: signal.Signals, pids: Sequence[int]) -> None:
        """Send a signal to processes, and to groups by their negated number; gone ones are none."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def require(self, paths: Sequence[Path]) -> None:
        """Refuse unless the user may read all of these."""

    def show(self, folder: Path) -> None:
        """Let the user read a folder of the check's own."""

    def hand_over(self, folder: Path) -> None:
        """Make a folder of the check's own, with all that is in it, the user's to write in."""

    @contextmanager
    def lent(self, folder: Path) -> Iterator[None]:
        """Hand a folder over, and take away afterwards what the user left in it."""
        self.hand_over(folder)
        try:
            yield
        finally:
            self.remove(folder)

    def remove(self, folder: Path) -> None:
        """Take away what in a folder is the user's and not the gate's to take away."""

    def end(self, folder: Path) -> int:
        """Kill the user's processes that were given a folder; how many there were."""
        del folder
        return 0


OWN = Account()
