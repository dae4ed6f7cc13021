"""One gate a GPU: a lock that works across users and across containers that share its folder."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sns_gate.errors import RefusedRun
from sns_gate.types import Record

_SUFFIX = ".lock"
_POLL_S = 0.1


class Holder(Record):
    """Who holds a lock, and for which check where several processes are of one."""

    pid: int
    user: str
    since: str
    check: str = ""

    def __str__(self) -> str:
        """For a message."""
        return f"process {self.pid} of {self.user} since {self.since}"


@contextmanager
def hold(
    names: Sequence[str],
    folder: Path,
    waiting: Callable[[str], None],
    timeout_s: float,
    check: str = "",
) -> Iterator[None]:
    """Hold the locks of these devices; wait, saying so, while another gate has one.

    The kernel drops a lock when its process ends in whatever way, so none is ever stale.

    Args:
        names: of the devices; taken in sorted order, so that two gates cannot wait in a ring.
        folder: shared by all who use the devices.
        waiting: hears who holds the lock, once.
        timeout_s: how long to wait for each.
        check: what the processes of one check know each other by, empty where there is one alone.

    Raises:
        RefusedRun: it was not free in time, another process of this check holds it, or the folder
            takes no lock.
    """
    with ExitStack() as stack:
        for name in sorted(names):
            stack.enter_context(_hold_one(name, folder, waiting, timeout_s, check))
        yield


@contextmanager
def hold_some(
    names: Sequence[str],
    count: int,
    folder: Path,
    waiting: Callable[[str], None],
    timeout_s: float,
    check: str = "",
) -> Iterator[list[str]]:
    """Hold the locks of so many of these devices, whichever are free.

    Where too few are, none is kept while it waits: two gates that each kept some could wait for
    each other in a ring.

    Args:
        names: of the devices, best first.
        count: how many are needed, at most all of them.
        folder: as for ``hold``.
        waiting: as for ``hold``.
        timeout_s: how long to wait for all of them.
        check: as for ``hold``; what its other processes hold is not waited for.

    Raises:
        RefusedRun: as ``hold``.
    """
    deadline_s, said = time.monotonic() + timeout_s, False
    while True:
        with ExitStack() as stack:
            got, busy, ours = _hold_free(stack, names, count, folder, check)
            if len(got) == count:
                yield got
                return
        if not busy and ours is not None:
            raise ours
        by = holder(folder / f"{busy[0]}{_SUFFIX}") or "another check"
        if not said:
            waiting(f"waiting for {busy[0]}, held by {by}")
            said = True
        if time.monotonic() > deadline_s:
            raise _busy(busy[0], by, timeout_s)
        time.sleep(_POLL_S)


def _hold_free(
    stack: ExitStack, names: Sequence[str], count: int, folder: Path, check: str
) -> tuple[list[str], list[str], _Ours | None]:
    """Hold up to so many that are free; which they are, which others hold, and whether we do."""
    got: list[str] = []
    busy: list[str] = []
    ours: _Ours | None = None
    for name in names:
        if len(got) == count:
            break
        try:
            stack.enter_context(_hold_one(name, folder, _never, -1, check))
        except _Busy:
            busy.append(name)
        except _Ours as error:
            ours = ours or error
        else:
            got.append(name)
    return got, busy, ours


def holder(path: Path) -> Holder | None:
    """Who wrote a lock file last, None where that cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        return Holder.model_validate(json.loads(path.read_text(encoding="utf-8")))
    return None


@contextmanager
def _hold_one(
    name: str, folder: Path, waiting: Callable[[str], None], timeout_s: float, check: str
) -> Iterator[None]:
    path = folder / f"{name}{_SUFFIX}"
    descriptor = _open(path)
    try:
        _wait(descriptor, path, name, (waiting, timeout_s), check)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        mine = Holder(pid=os.getpid(), user=_user(), since=since, check=check)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, mine.model_dump_json().encode(), 0)
        try:
            yield
        finally:  # whoever waits next is told of nobody who is gone
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        if not path.parent.is_dir():
            with contextlib.suppress(FileExistsError):
                path.parent.mkdir(parents=True)
                path.parent.chmod(0o1777)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise RefusedRun(
            "no-lock",
            f"the lock {path} cannot be opened ({error.strerror}), so another check could disturb "
            f"this one; name a folder that all users may write with --state-dir",
        ) from None
    with contextlib.suppress(OSError):  # the owner alone can, and did so already
        os.fchmod(descriptor, 0o666)
    return descriptor


def _wait(
    descriptor: int,
    path: Path,
    name: str,
    patience: tuple[Callable[[str], None], float],
    check: str,
) -> None:
    waiting, timeout_s = patience
    deadline, said = time.monotonic() + timeout_s, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = holder(path)
        else:
            return
        if check and who is not None and who.check == check:
            raise _Ours(
                "same-device",
                f"{name} is held through another launcher of this check, so both lead to one "
                f"device and would wait for each other; leave one out, or give each a device of "
                f"its own, as by 'env CUDA_VISIBLE_DEVICES=1' at its end",
            )
        by = who or "another check"
        if not said and timeout_s >= 0:
            waiting(f"waiting for {name}, held by {by}")
            said = True
        if time.monotonic() > deadline:
            raise _busy(name, by, timeout_s)
        time.sleep(_POLL_S)


class _Busy(RefusedRun):
    """A lock was not free in time."""


def _busy(name: str, by: Holder | str, timeout_s: float) -> _Busy:
    return _Busy(
        "device-busy",
        f"{name} was held by {by} for longer than {timeout_s:.0f} s, so nothing was measured; "
        f"wait for that check, or allow more time with --lock-timeout",
    )


class _Ours(RefusedRun):
    """Another process of the same check has it, and keeps it until this one is done too."""


def _never(text: str) -> None:
    del text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
