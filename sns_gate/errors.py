"""The one tree of errors: each says a fact, its consequence and the next step.

GateError
├── UsageError           exit 2: what was asked cannot be done as asked
│   ├── ConfigError      a configuration file, variable or option is wrong
│   ├── RevisionError    a reference, repository or build is not what the check needs
│   └── ResultFileError  a result file cannot be read or written
├── NothingCompared      exit 5: there was nothing to compare
├── RefusedRun           exit 3: this machine cannot give a verdict now
│   ├── ClockLockError   a requested operating point could not be established
│   │   └── ClockRefused  the driver or the helper said no, so that write changed nothing
│   └── PlaceLost        what a launcher had started is gone
├── WorkerError          one worker failed; the session decides what that costs
│   ├── WorkerDied       the process is gone
│   ├── WorkerHung       no answer within the time limit
│   └── CallRaised       the code under test raised, with its traceback
└── PostError            the measurement is untouched, GitHub could not be told
    ├── PostDenied       exit 2: a token, a permission or a request is wrong
    └── PostUnreachable  exit 3: no usable answer; a write may or may not have taken effect

Terminated stands beside it, as KeyboardInterrupt beside Exception.
"""

from __future__ import annotations


class GateError(Exception):
    """The root of everything that sns-gate raises on purpose."""


class UsageError(GateError):
    """What was asked cannot be done as asked; the message names the mend."""


class ConfigError(UsageError):
    """A configuration file, environment variable or option is wrong."""


class RevisionError(UsageError):
    """A reference, a repository or a build is not what the check needs."""


class BuildError(RevisionError):
    """A revision could not be built.

    Args:
        side: of the revision.
        message: what happened, and the end of the build's output.
    """

    def __init__(self, side: str, message: str) -> None:
        super().__init__(message)
        self.side = side


class ResultFileError(UsageError):
    """A result file cannot be read or written."""


class NothingCompared(GateError):  # noqa: N818 (an outcome, not a failure of the program)
    """There was nothing to compare, so there is no pass."""


class RefusedRun(GateError):  # noqa: N818 (an outcome, not a failure of the program)
    """This machine cannot give a verdict now.

    Args:
        code: the stable reason code that stands in the result file.
        text: fact, consequence and next step.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class ClockLockError(RefusedRun, RuntimeError):
    """A requested operating point could not be established, or not be given back.

    Args:
        text: fact, consequence and next step.
    """

    def __init__(self, text: str) -> None:
        super().__init__("clock-lock", text)


class ClockRefused(ClockLockError):  # noqa: N818 (an answer, as the others here)
    """The driver or the helper said no, so that write changed nothing."""


class PlaceLost(RefusedRun):
    """What a launcher had started is gone; its other places may go on.

    Args:
        text: fact, consequence and next step.
        detail: the end of what it wrote to its standard error.
    """

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__("place-lost", text)
        self.detail = detail


class WorkerError(GateError):
    """One worker failed.

    Args:
        worker: the worker's name, for example ``baseline 2``.
        text: what happened.
        traceback: the worker's own traceback, empty where there is none.
    """

    code = "worker-failed"

    def __init__(self, worker: str, text: str, traceback: str = "") -> None:
        super().__init__(f"{worker}: {text}")
        self.worker = worker
        self.text = text
        self.traceback = traceback


class WorkerDied(WorkerError):  # noqa: N818 (says what happened)
    """The worker's process is gone."""

    code = "worker-died"


class WorkerHung(WorkerError):  # noqa: N818 (says what happened)
    """The worker gave no answer within its time limit and was killed."""

    code = "worker-hung"


class CallRaised(WorkerError):  # noqa: N818 (says what happened)
    """The code under test raised; the worker lives on, unless that was fatal to it."""

    code = "raised"

    def __init__(self, worker: str, text: str, traceback: str = "", *, fatal: bool = False) -> None:
        super().__init__(worker, text, traceback)
        self.fatal = fatal


class Terminated(BaseException):
    """A signal asked the check to end; no error, so that nobody who catches errors keeps it.

    Args:
        signal_number: the signal that arrived.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"ended by signal {signal_number}")
        self.signal_number = signal_number


class PostError(GateError):
    """GitHub could not be told; the measurement is untouched."""


class PostDenied(PostError):  # noqa: N818 (a state, as the others here)
    """GitHub understood and refused: a token, a permission or a request is wrong.

    Attributes:
        status: of its answer, 0 where what it did is not what was asked.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class PostUnreachable(PostError):  # noqa: N818 (likewise)
    """GitHub gave no usable answer; a write may or may not have taken effect."""
