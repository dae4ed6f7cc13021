"""Names of temporary folders, which say whose they are: by them those of dead checks are known."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from functools import cache
from pathlib import Path

import psutil

#: What every one of them begins with, on every machine.
ANY = "sns-gate-"


def own_prefix() -> str:
    """What this process's own begin with.

    A process's number means nothing on another machine or in another container, and they may share
    a folder for temporary files.
    """
    return f"{ANY}{os.getpid()}-{_here()}-"


def is_left_behind(path: Path) -> bool:
    """Whether a path is, or lies in, the folder of a process of this machine that is gone."""
    for part in path.parts:
        number, _, rest = part.removeprefix(ANY).partition("-")
        if part.startswith(ANY) and number.isdecimal():
            return rest.startswith(f"{_here()}-") and not psutil.pid_exists(int(number))
    return False


@cache
def _here() -> str:
    """A short name of this machine, and in it of this container."""
    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    name = f"{socket.gethostname()}|{space}"
    return hashlib.blake2b(name.encode(errors="replace"), digest_size=4).hexdigest()
