"""A launcher's process and the lines that pass through it, each within a time limit."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from sns_gate import __version__
from sns_gate.errors import PlaceLost, RefusedRun, UsageError
from sns_gate.outpost import lines
from sns_gate.outpost.messages import PROTOCOL, Alive, Answer, Greeting, Message
from sns_gate.protocol import MAX_LINE_BYTES
from sns_gate.signals import go_on

#: An outpost says every few seconds that it is there.
SILENCE_S = 30.0
_POLL_S = 0.25
_READ_BYTES = 1 << 16
#: What shells may print before the outpost's first word.
_MAX_BANNER_BYTES = 1 << 20
_LOG_TAIL_BYTES = 2000
#: For an outpost's own clean-up, then for its launcher's.
_LEAVE_S, _END_S = 10.0, 3.0
_NOT_FOUND = 127
#: Names, and beginnings of names, of what authenticates to GitHub and to nobody that launchers ask.
_SECRET = frozenset(
    ("GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GATE_TOKEN",
     "GITHUB_PAT", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
)  # fmt: skip
_SECRET_PREFIXES = ("ACTIONS_", "INPUT_")


def launcher_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's own variables, which ssh, srun and kubectl need, without GitHub's secrets."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _SECRET and not name.startswith(_SECRET_PREFIXES)
    }


def command_of(launcher: str, python: str | None) -> list[str]:
    """The launcher's words and what it is to start, none of which a shell there would change.

    Raises:
        UsageError: this interpreter's path would not pass a shell unchanged.
    """
    there = python or sys.executable
    if shlex.quote(there) != there:
        raise UsageError(
            f"{there} holds characters that a shell at the other end would change, so nothing can "
            f"be started by it; give a path without them with --launcher-python FILE"
        )
    # -P: the folder that it starts in may hold the candidate's files.
    return [*shlex.split(launcher), there, "-P", "-m", "sns_gate.outpost"]


class _Gone(Exception):  # noqa: N818 (says what happened)
    """Nobody is there who could be understood: how that came, for a sentence about the place."""


def _answer(line: bytes) -> Answer:
    try:
        return lines.answer(line)
    except ValueError as error:
        raise _Gone(f"sent something that is no answer ({error})") from None


class Launched:
    """A launcher's process, alive from its construction until ``end``.

    Args:
        name: of the place, for messages.
        command: the launcher with what it starts.
        environment: of the launcher.
        log: file for what is written to standard error, there and here.
        silence_s: without a line, after which nobody is taken to be there.

    Raises:
        RefusedRun: the launcher cannot be run.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str],
        log: Path,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.name = name
        self._command, self._log, self._silence_s = command, log, silence_s
        self._buffer = bytearray()
        self._left_s: float | None = None
        with log.open("wb") as errors:
            try:
                self._process = subprocess.Popen(  # noqa: S603 (the launcher is the user's)
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=dict(environment),
                    start_new_session=True,
                )
            except OSError as error:
                raise RefusedRun(
                    "place-not-opened",
                    f"{command[0]} cannot be run ({error.strerror}), so nothing can be measured "
                    f"by '{name}'; install it, or correct --launcher",
                ) from None
        os.set_blocking(self._to.fileno(), False)

    @property
    def _to(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 (set by Popen above)
        return self._process.stdin

    @property
    def _from(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101 (likewise)
        return self._process.stdout

    def greet(self, timeout_s: float) -> Greeting:
        """Wait for the outpost's first word, and skip what shells print before it.

        Args:
            timeout_s: for it; a queue of jobs may take long.

        Raises:
            RefusedRun: nothing there answered, or it is of another version.
        """
        deadline_s = time.monotonic() + timeout_s
        skipped = 0
        try:
            while True:
                line = self._line(max(0.0, deadline_s - time.monotonic()), _MAX_BANNER_BYTES)
                if line.startswith(lines.MARK):
                    break
                skipped += len(line)
                if skipped > _MAX_BANNER_BYTES:
                    raise _Gone("printed more than a banner")  # noqa: TRY301 (one message)
            greeting = _answer(line.removeprefix(lines.MARK))
        except _Gone as gone:
            raise self._not_opened(str(gone)) from None
        if not isinstance(greeting, Greeting):
            raise self._not_opened(f"began with {type(greeting).__name__}")
        if (greeting.version, greeting.protocol) != (__version__, PROTOCOL):
            raise RefusedRun(
                "place-not-opened",
                f"sns-gate {greeting.version} (protocol {greeting.protocol}) answered by "
                f"'{self.name}', and this is {__version__} (protocol {PROTOCOL}), so they might "
                f"not mean the same; install sns-gate {__version__} there",
            )
        return greeting

    def send(self, message: Message) -> None:
        """Send one line.

        Raises:
            PlaceLost: nobody takes it.
        """
        go_on()
        left = memoryview(lines.encoded(message))
        with selectors.DefaultSelector() as selector:
            try:
                selector.register(self._to, selectors.EVENT_WRITE)
                while left:
                    if not selector.select(self._silence_s):
                        raise self._lost(f"took nothing for {self._silence_s:.0f} s")
                    left = left[os.write(self._to.fileno(), left) :]
            except (BrokenPipeError, ValueError):
                raise self._lost(self._ending()) from None

    def receive(self) -> Answer:
        """The next line that says something new.

        Raises:
            PlaceLost: there is none, or it is no answer.
        """
        while True:
            try:
                answer = _answer(self._line(self._silence_s, MAX_LINE_BYTES))
            except _Gone as gone:
                raise self._lost(str(gone)) from None
            if not isinstance(answer, Alive):
                return answer

    def leave(self) -> None:
        """Hang up: at the other end everything ends by itself, and who waits here is told."""
        self._left_s = self._left_s or time.monotonic()
        with contextlib.suppress(OSError):
            self._to.close()

    def end(self) -> None:
        """Hang up and wait until the launcher has ended, with all that it started here."""
        self.leave()
        gone_s = time.monotonic() - (self._left_s or 0.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, _LEAVE_S - gone_s))
        for number in (signal.SIGTERM, signal.SIGKILL):  # its descendants share its group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        self._from.close()

    def log_tail(self) -> str:
        """The end of what was written to standard error."""
        with contextlib.suppress(OSError):
            return self._log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return ""

    def _line(self, timeout_s: float, most_bytes: int) -> bytes:
        deadline_s = time.monotonic() + timeout_s
        if self._from.closed:
            raise _Gone(self._ending())
        with selectors.DefaultSelector() as selector:
            selector.register(self._from, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(_POLL_S):
                    go_on()
                    self._require_somebody(deadline_s, timeout_s)
                    continue
                chunk = os.read(self._from.fileno(), _READ_BYTES)
                self._buffer += chunk
                if not chunk:
                    raise _Gone(self._ending())
                if len(self._buffer) > most_bytes:
                    raise _Gone(f"sent a line of more than {most_bytes >> 20} MiB")
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return bytes(line)

    def _require_somebody(self, deadline_s: float, timeout_s: float) -> None:
        if self._left_s is not None:
            raise _Gone("was told to end")
        # A descendant may hold the pipe open after the launcher itself has ended.
        if self._process.poll() is not None:
            raise _Gone(self._ending())
        if time.monotonic() > deadline_s:
            raise _Gone(f"said nothing for {timeout_s:.0f} s")

    def _ending(self) -> str:
        """How the launcher ended, for a sentence that its name begins."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        code = self._process.poll()
        if code is None:
            return "closed its standard streams"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    def _lost(self, how: str) -> PlaceLost:
        said = self.log_tail()
        mend = "see what it wrote, mend that," if said else "see there what ended it,"
        return PlaceLost(
            f"'{self.name}' {how}, so nothing can be measured there any more; {mend} and check "
            f"again",
            said,
        )

    def _not_opened(self, how: str) -> RefusedRun:
        said = self.log_tail()
        code = self._process.poll()
        if "No module named" in said and "sns_gate" in said:
            mend = f"install sns-gate {__version__} for that interpreter, or name another with "
            mend += "--launcher-python FILE"
        elif code == _NOT_FOUND or "o such file" in said:
            mend = "name an interpreter that is there with --launcher-python FILE"
        else:
            mend = f"try it by hand: {shlex.join(self._command)}"
        return RefusedRun(
            "place-not-opened",
            f"no outpost answered by '{self.name}' (it {how}), so nothing can be measured there; "
            f"{mend}" + (f"\n{said}" if said else ""),
        )
