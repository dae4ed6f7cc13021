"""An output that a worker wrote, read as what it is: a claim of code that nobody trusts."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from sns_gate.errors import WorkerDied
from sns_gate.protocol import OutputWritten
from sns_gate.session.blocks import Worker
from sns_gate.types import Record

#: Stored as float32, which holds each of their values.
NARROW_STARTS = ("float8_", "float6_", "float4_")
_MOST_JSON_BYTES = 64 << 20
_DISK = {"bfloat16": "<u2", "bool": "|u1", "complex32": "<c8"}


class Node(Record):
    """A part of an output as a worker describes it."""

    kind: str
    form: str = ""
    type: str = ""
    of: str = ""
    text: str = ""
    keys: tuple[str, ...] = ()
    items: tuple[Node, ...] = ()
    shape: tuple[int, ...] = ()
    step: int = 1
    at: int = 0
    size: int = 0
    digest: str = ""


def _opened(path: Path) -> BinaryIO:
    """A file that a worker wrote, and no other that it points to and may not read itself."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        file.close()
        raise OSError(f"{path} is no file of its own")
    return file


@dataclass(frozen=True)
class Output:
    """One side's output on disk, as untrusted as the side's code."""

    tree: Node
    data: Path
    worker: str
    reached: tuple[str, ...]
    renewed: bool

    @classmethod
    def read(cls, stem: Path, worker: Worker, reply: OutputWritten) -> Output:
        """What a worker wrote under a stem.

        Raises:
            WorkerDied: it wrote nothing that can be read.
        """
        path = stem.with_suffix(".json")
        try:
            with _opened(path) as file:
                text = file.read(_MOST_JSON_BYTES + 1)
            if len(text) > _MOST_JSON_BYTES:
                raise WorkerDied(worker.name, "described its output at an impossible length")
            tree = Node.model_validate_json(text)
        except (OSError, ValidationError, RecursionError):
            raise WorkerDied(worker.name, "wrote no output that can be read") from None
        return cls(
            tree, stem.with_suffix(".bin"), worker.name, reply.reached, reply.not_renewed == 0
        )

    def array(self, node: Node) -> NDArray[np.generic]:
        """The elements of an array, flat, read as they are needed."""
        narrow = node.type.startswith(NARROW_STARTS)
        name = "<f4" if narrow else _DISK.get(node.type, node.type)
        impossible = WorkerDied(self.worker, "wrote an output that is not as it says")
        if min(node.at, node.size) < 0:
            raise impossible
        try:
            dtype = np.dtype(name)
            if node.size == 0:
                return np.empty(0, dtype)
            with _opened(self.data) as file:
                whole = np.memmap(file, dtype=np.uint8, mode="r")
            part = whole[node.at : node.at + node.size].view(dtype)
        except (OSError, TypeError, ValueError):
            raise impossible from None
        if part.nbytes != node.size or dtype.kind not in "biufc":
            raise impossible
        return part
