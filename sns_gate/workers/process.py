"""One worker process: started, asked within a time limit, and killed with all its descendants."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

import psutil
from pydantic import TypeAdapter, ValidationError

from sns_gate import protocol
from sns_gate.accounts import Account, Streams
from sns_gate.errors import CallRaised, ConfigError, RefusedRun, WorkerDied, WorkerError, WorkerHung
from sns_gate.protocol import Failed, Reply, Request
from sns_gate.signals import go_on
from sns_gate.types import Side
from sns_gate.workers.environment import Launch

_R = TypeVar("_R", bound=Reply)
_T = TypeVar("_T")
_READ_BYTES = 1 << 16
_POLL_S = 0.5
_LOG_TAIL_BYTES = 2000
#: Each sweep ends what the killed ones had started meanwhile.
_SWEEPS, _KILL_S, _AGAIN_S = 20, 30.0, 1.0
#: What a worker that gave no answer in time had not done, and what helps, by the missing answer.
_STARTING = (
    "had not opened the device and imported its benchmarks",
    "mend the import that takes so long, or allow more with --start-timeout",
)
_TOO_LATE: dict[type, tuple[str, str]] = {
    protocol.Ready: _STARTING,
    protocol.Loaded: _STARTING,
    protocol.Sampled: (
        "had taken no sample, by far longer than its first ones took,",
        "see what its call waits for, at times",
    ),
}
_SETTING_UP = ("had not answered", "--timeout allows compiling, setting up and a call more")
_ADAPTERS: dict[str, TypeAdapter[Reply]] = {
    kind.__name__: TypeAdapter(kind) for kind in protocol.REPLIES
}


def _end_descendants(account: Account, pid: int) -> int:
    """Kill what this process started, directly or not; how many there were."""
    try:
        victims = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return 0
    living = [victim for victim in victims if _alive(victim)]
    if living:
        account.signal(signal.SIGKILL, [victim.pid for victim in living])
    return len(living)


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


@cache
def _lasting_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


def from_a_lasting_thread(start: Callable[[], _T]) -> _T:
    """Call this where what it starts may outlive the thread that asks.

    A worker asks the kernel to end it with its parent, and by that the kernel means the very
    thread that started it.
    """
    if threading.current_thread() is threading.main_thread():
        return start()
    return _lasting_thread().submit(start).result()


#: Files, processes or memory are used up; nothing is wrong with the interpreter then.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


class WorkerProcess:
    """A worker of one side, alive from its construction until ``kill``."""

    def __init__(self, launch: Launch, index: int) -> None:
        self.side: Side = launch.side
        self.index = index
        self.name = f"{launch.title} worker {index}"
        self.ready: protocol.Ready | None = None
        self.loaded: protocol.Loaded | None = None
        self._log: Path = launch.logs / f"{launch.title}-{index}-{time.monotonic_ns()}.log"
        self._buffer = bytearray()
        self._account = launch.account
        self._ended = False
        self._ended_by: Failed | None = None
        self._asked_s = time.monotonic()
        self.pending = 0
        with self._log.open("wb") as log:
            try:
                start = partial(
                    launch.account.start,
                    launch.command,
                    launch.folder,
                    launch.variables(index),
                    Streams(subprocess.PIPE, subprocess.PIPE, log),
                )
                self._process = from_a_lasting_thread(start)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    raise RefusedRun(
                        "no-room",
                        f"{self.name} cannot be started ({error.strerror}), as this machine or "
                        f"this user's limits (ulimit) allow no more; raise them, or take fewer "
                        f"--processes",
                    ) from None
                raise ConfigError(
                    f"{launch.command[0]} cannot be run ({error.strerror}), so there are no "
                    f"workers; give the path of a Python interpreter with --python FILE"
                ) from None

    @property
    def pid(self) -> int:
        """The process id, as this machine's kernel counts."""
        return self._account.process(self._process.pid)

    @property
    def alive(self) -> bool:
        """Whether the process still runs, and has not been given up."""
        return not self._ended and self._process.poll() is None

    @property
    def out_of_step(self) -> bool:
        """Whether a living worker's next reply would answer an older question, or none at all."""
        pipe = self._process.stdout
        if self.pending or self._buffer or pipe is None:
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            return bool(selector.select(0))

    def ask(self, request: Request, expected: type[_R], timeout_s: float) -> _R:
        """Send one request and wait for its reply.

        Raises:
            CallRaised: the code under test raised.
            WorkerDied: the process is gone, or what it says is no reply.
            WorkerHung: no reply within the time limit; the worker has been killed.
        """
        self.send(request)
        return self.receive(expected, timeout_s)

    def send(self, request: Request) -> None:
        """Send one request without waiting.

        Raises:
            WorkerDied: the process is gone.
            Terminated: a signal came before, and what it raised was kept from ending the run.
        """
        go_on()
        pipe = self._process.stdin
        try:
            assert pipe is not None  # noqa: S101 (set by Popen above)
            pipe.write(protocol.encode(request))
            pipe.flush()
            self.pending += 1
            self._asked_s = time.monotonic()
        except (BrokenPipeError, ValueError) as error:
            raise self._death() from error

    def receive(self, expected: type[_R], timeout_s: float) -> _R:
        """Wait for the reply to the last request; as ``ask``."""
        reply = self._validated(self._read_line(expected, timeout_s))
        self.pending -= 1
        if isinstance(reply, Failed):
            if reply.fatal:
                self._ended_by = reply
                self.kill()
            raise CallRaised(self.name, reply.error, reply.traceback, fatal=reply.fatal)
        if not isinstance(reply, expected):
            self.kill()
            raise WorkerDied(
                self.name,
                f"answered {type(reply).__name__} out of turn, as a process that the call forked "
                f"does where it returns from it; end such a process with os._exit",
            )
        return reply

    def kill(self) -> None:
        """End the process and everything it started; harmless where it is already gone."""
        if not self._ended:
            self._end()
            self._ended = True
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def lent(self, folder: Path) -> AbstractContextManager[None]:
        """Let workers write in a folder, whoever they run as, and take away what they leave."""
        return self._account.lent(folder)

    def log_tail(self) -> str:
        """The end of what the worker wrote to its standard error."""
        with contextlib.suppress(OSError):
            return self._log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return ""

    def _end(self) -> None:
        deadline_s = time.monotonic() + _KILL_S
        while True:
            self._kill_all()
            # Whoever was only about to become a worker finds nobody to work for, or is met again.
            if self._process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()
            # A process inside a driver's call may not end for long; nothing here waits for it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_AGAIN_S)
                return
            if time.monotonic() > deadline_s:
                return

    def _kill_all(self) -> None:
        pid = self.pid
        # Stopped first, so that it starts no more while its descendants are ended.
        own = [pid] if self.alive else []
        self._account.signal(signal.SIGSTOP, own)
        for _ in range(_SWEEPS):
            if not _end_descendants(self._account, pid):
                break
        self._account.signal(signal.SIGKILL, [-self._process.pid, *own])

    def _read_line(self, expected: type, timeout_s: float) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None  # noqa: S101 (set by Popen above)
        if pipe.closed:
            raise self._death()
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left > 0 and not selector.select(min(left, _POLL_S)):
                    go_on()
                    # A descendant may hold the pipe open after the worker itself has ended.
                    if not self.alive:
                        raise self._death()
                    continue
                if left <= 0:
                    self.kill()
                    what, mend = _TOO_LATE.get(expected, _SETTING_UP)
                    had_s = time.monotonic() - self._asked_s
                    text = f"{what} within {had_s:.0f} s and was killed; {mend}"
                    raise WorkerHung(self.name, text)
                chunk = os.read(pipe.fileno(), _READ_BYTES)
                self._buffer += chunk
                if not chunk or len(self._buffer) > protocol.MAX_LINE_BYTES:
                    raise self._death()
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return bytes(line)

    def _validated(self, line: bytes) -> Reply:
        try:
            envelope = protocol.open_envelope(line)
            return _ADAPTERS[envelope.type].validate_python(envelope.body)
        except (ValueError, KeyError, RecursionError, ValidationError) as error:
            self.kill()
            raise WorkerDied(self.name, f"sent something that is no reply: {error}") from None

    def _death(self) -> WorkerError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        code = self._process.poll()
        self.kill()
        if self._ended_by is not None:
            text = f"was ended, as it was of no more use after this: {self._ended_by.error}"
            return WorkerDied(self.name, text, self._ended_by.traceback)
        if code is None:
            return WorkerDied(self.name, "closed its pipe", self.log_tail())
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        return WorkerDied(self.name, f"the process {how}", self.log_tail())
