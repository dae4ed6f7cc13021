"""The coordinator's end: one outpost, asked one thing at a time."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sns_gate.errors import PlaceLost
from sns_gate.outpost import lines
from sns_gate.outpost.launched import Launched
from sns_gate.outpost.messages import (
    BlockDone,
    Done,
    Event,
    Failure,
    FolderSeen,
    Look,
    Looked,
    Message,
    Receive,
    StageBegun,
    TakenApart,
)
from sns_gate.revisions import pack

_CHUNK_BYTES = 1 << 20
_T = TypeVar("_T", bound=Message)
Hear = Callable[[Event], None]


class Outpost:
    """What a launcher has started, and the words exchanged with it.

    Args:
        launched: its process, which has greeted.

    Attributes:
        name: of the place.
        device: there, once it is prepared.
        loss: why it is of no more use, None as long as it is.
    """

    def __init__(self, launched: Launched) -> None:
        self.name = launched.name
        self.device = ""
        self.loss: PlaceLost | None = None
        self._launched = launched
        self._asking = threading.Event()

    @property
    def lost(self) -> bool:
        """Whether it is of no more use."""
        return self.loss is not None

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._asking.is_set()

    def ask(self, request: Message, expected: type[_T], hear: Hear | None = None) -> _T:
        """Ask one thing and wait for the answer.

        Args:
            request: what to do.
            expected: what answers it.
            hear: told of what happens meanwhile.

        Raises:
            PlaceLost: it is gone, now or before.
            GateError: what it could not do, with the name of the place.
        """
        if self.loss is not None:
            raise self.loss
        self._asking.set()
        try:
            self._launched.send(request)
            return self._answer(expected, hear)
        except PlaceLost as error:
            self._give_up(error)
            raise

    def _answer(self, expected: type[_T], hear: Hear | None) -> _T:
        while True:
            answer = self._launched.receive()
            if isinstance(answer, StageBegun | BlockDone | TakenApart):
                if hear is not None:
                    hear(answer)
                continue
            self._asking.clear()
            if isinstance(answer, Failure):
                raise lines.raised(answer, self.name)
            if not isinstance(answer, expected):
                raise PlaceLost(
                    f"'{self.name}' answered {type(answer).__name__} out of turn, so nothing that "
                    f"it says counts any more; check again",
                    self._launched.log_tail(),
                )
            return answer

    def sees(self, file: Path, text: str, folders: tuple[Path, ...]) -> bool:
        """Whether folders of this machine are there under the same paths.

        Args:
            file: with a text that nobody can guess, in a folder of the check's own.
            text: of it.
            folders: that belong to others, so that nothing is written into them.
        """
        seen = tuple(
            FolderSeen(folder=folder, inode=found.st_ino, changed_ns=found.st_mtime_ns)
            for folder in folders
            for found in [folder.stat()]
        )
        return self.ask(Look(file=file, text=text, folders=seen), Looked).everything

    def ship(self, tree: str, root: Path) -> None:
        """Send the files of a folder, to be kept there under a name.

        Raises:
            RevisionError: a file cannot be read.
            PlaceLost: it is gone.
        """
        if self.loss is not None:
            raise self.loss

        def send(data: bytes) -> None:
            text = base64.b64encode(data).decode()
            self._launched.send(Receive(tree=tree, data=text, last=False))

        try:
            chunks = _Chunks(send)
            pack(root, chunks)
            chunks.finish()
        except PlaceLost as error:
            self._give_up(error)
            raise
        self.ask(Receive(tree=tree, data="", last=True), Done)

    def _give_up(self, why: PlaceLost) -> None:
        """Whoever may still be there ends what it does, and keeps no device from others."""
        self.loss = why
        self._launched.leave()

    def leave(self) -> None:
        """Hang up; who waits for an answer is told."""
        if self.loss is None:
            self.loss = PlaceLost(f"'{self.name}' was told to end, so nothing is measured there")
        self._launched.leave()

    def end(self) -> None:
        """Hang up and wait until the launcher has ended."""
        self._launched.end()


class _Chunks:
    """Gathers what is written into pieces that fit a line."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        """Take all of it, and send what fills a piece."""
        self._held += data
        while len(self._held) >= _CHUNK_BYTES:
            self._send(bytes(self._held[:_CHUNK_BYTES]))
            del self._held[:_CHUNK_BYTES]
        return len(data)

    def flush(self) -> None:
        """Small pieces are not worth a line."""

    def finish(self) -> None:
        """Send what is left."""
        self._send(bytes(self._held))
        self._held.clear()
