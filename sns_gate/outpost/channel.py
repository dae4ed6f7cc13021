"""The outpost's end of the standard streams, kept to itself; when they close, everything ends."""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Iterator

from sns_gate import __version__
from sns_gate.errors import Terminated
from sns_gate.outpost import lines
from sns_gate.outpost.messages import PROTOCOL, Alive, Greeting, Message, Request

#: Often enough that silence means something, for whoever waits at the other end.
PULSE_S = 5.0
#: Requests that may wait, so that a large tree does not fill the memory.
_WAITING = 8


class Channel:
    """Requests in, answers out.

    From here on nothing else can write to the coordinator, nor read from it: what code prints goes
    to standard error, and what asks for input has none.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._from, self._to = os.dup(0), os.dup(1)
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._writing = threading.Lock()
        self._busy = threading.Event()
        self._gone = threading.Event()

    def open(self) -> None:
        """Greet, and begin to read and to say that somebody is here."""
        me = Greeting(
            version=__version__, protocol=PROTOCOL, host=socket.gethostname(), pid=os.getpid()
        )
        self._write(lines.greeting(me))
        for run in (self._read, self._pulse):
            threading.Thread(target=run, daemon=True).start()

    def requests(self) -> Iterator[Request]:
        """What is asked, in turn, until the coordinator hangs up.

        Raises:
            ValueError: it is no request.
        """
        while (line := self._waiting.get()) is not None:
            self._busy.set()
            yield lines.request(line)
            self._busy.clear()

    def say(self, message: Message) -> None:
        """Send one line.

        Raises:
            Terminated: nobody reads any more.
        """
        self._write(lines.encoded(message))

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            with self._writing:
                while left:
                    left = left[os.write(self._to, left) :]
        except OSError:
            self._gone.set()
            raise Terminated(signal.SIGHUP) from None

    def _read(self) -> None:
        with os.fdopen(self._from, "rb") as stream:
            for line in stream:
                self._waiting.put(line)
        self._gone.set()
        if self._busy.is_set():  # what is under way ends like any interrupted check
            os.kill(os.getpid(), signal.SIGTERM)
        self._waiting.put(None)

    def _pulse(self) -> None:
        while not self._gone.wait(PULSE_S):
            try:
                self.say(Alive())
            except Terminated:
                os.kill(os.getpid(), signal.SIGTERM)
