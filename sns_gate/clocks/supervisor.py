"""A process that outlives the gate and gives the clocks back when the gate is gone, however.

It has left the gate's session, is nobody's child, and ignores the signals of a terminal; only the
closing of its input, which the kernel does even after SIGKILL, makes it act.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sns_gate.clocks.journal import ClockJournal, read
from sns_gate.clocks.undo import undo
from sns_gate.errors import ClockLockError

#: The GitHub runner kills every process that carries this variable when a job ends.
_TRACKING = "RUNNER_TRACKING_ID"
_READY = b"ready\n"
_START = "import sys; from sns_gate.clocks.supervisor import main; sys.exit(main(sys.argv[1:]))"
_START_TIMEOUT_S = 30.0


class Supervisor:
    """A running supervisor of one journal; it acts when ``release`` or this process ends.

    Args:
        path: where the journal will be.
        journal: what will stand in it; another's at that path is left alone.
        helper: command of the root-owned helper, None for the usual way.

    Attributes:
        lifeline: descriptor that keeps it waiting, in whichever process it is open.

    Raises:
        ClockLockError: it could not be started.
    """

    def __init__(
        self, path: Path, journal: ClockJournal, helper: Sequence[str] | None = None
    ) -> None:
        environment = {k: v for k, v in os.environ.items() if k != _TRACKING}
        command = [sys.executable, "-c", _START, str(path), journal.model_dump_json()]
        reading, self.lifeline = os.pipe()
        try:
            starter = subprocess.run(  # noqa: S603 (this package's own module)
                [*command, *(helper or ())],
                stdin=reading,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,
                timeout=_START_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            os.close(self.lifeline)
            raise ClockLockError(f"the supervisor of the clocks did not start: {error}") from None
        finally:
            os.close(reading)
        if starter.stdout != _READY:
            os.close(self.lifeline)
            raise ClockLockError("the supervisor of the clocks did not start, so none are pinned")

    def release(self) -> None:
        """Let it go: without a journal it has nothing to do."""
        with contextlib.suppress(OSError):
            os.close(self.lifeline)


def main(arguments: Sequence[str]) -> int:
    """Detach, say ready, wait until the input closes, and undo the journal if it is still there."""
    path, ours = Path(arguments[0]), ClockJournal.model_validate_json(arguments[1])
    helper = list(arguments[2:]) or None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    if os.fork():
        # The starter's parent waits for this exit, by which time the child has its own session.
        os.write(1, _READY)
        os._exit(0)
    os.setsid()
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    os.chdir("/")
    while os.read(0, 1):
        pass
    if read(path) == ours:
        with contextlib.suppress(ClockLockError):  # the journal stays for 'sns-gate restore'
            undo(path, ours, helper)
    return 0
