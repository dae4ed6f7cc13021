"""Places to measure at: one a device, each with workers of its own; cases are spread over them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from sns_gate.config import Settings
from sns_gate.errors import RefusedRun
from sns_gate.rig.device import Device
from sns_gate.rig.machine import Machine
from sns_gate.workers import WorkerPool

#: Starts so many workers a side on a device, with the caches of a name.
Start = Callable[[str, int, Device], WorkerPool]
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Station:
    """A device with the workers of both sides on it, and what watches them."""

    device: Device
    pool: WorkerPool
    machine: Machine


@contextmanager
def stations(
    settings: Settings, devices: Sequence[Device], start: Start, name: str, processes: int
) -> Iterator[list[Station]]:
    """Open a station on every device, all at once, and close them again.

    Raises:
        RefusedRun: devices are unlike, or fewer than three workers a side could open one.
        WorkerError: a worker could not start for another reason.
    """
    with ExitStack() as stack:
        pools = _opened(stack, [start(name, processes, device) for device in devices])
        found = []
        for device, pool in zip(devices, pools, strict=True):
            machine = stack.enter_context(Machine(settings, device, pool))
            found.append(Station(device, pool, machine))
        _refuse_unlike(found)
        yield found


def _opened(stack: ExitStack, pools: Sequence[WorkerPool]) -> list[WorkerPool]:
    """Start all pools at once; what has started is closed however this ends."""
    for pool in pools:
        stack.callback(pool.close)
    if len(pools) == 1:
        return [pools[0].__enter__()]

    def end() -> None:
        for pool in pools:
            pool.close()

    _all_at_once([partial(_enter, pool) for pool in pools], end)
    return list(pools)


def _enter(pool: WorkerPool) -> None:
    pool.__enter__()


def _refuse_unlike(found: Sequence[Station]) -> None:
    first = found[0]
    for station in found[1:]:
        mine, theirs = (s.machine.fingerprint("candidate", s.pool) for s in (first, station))
        differing = mine.differences(theirs)
        if differing:
            raise RefusedRun(
                "gpus-differ",
                f"{first.device.name} and {station.device.name} differ in {', '.join(differing)}, "
                f"so cases measured on one would not be those of the other; choose like GPUs with "
                f"--device",
            )


def spread(
    there: Sequence[Station],
    work: Sequence[_T],
    do: Callable[[Station, _T], _R],
    keep: Callable[[Station, _T, _R], None],
) -> None:
    """Do each piece of work at whichever station is free, and keep what came of it, one at a time.

    Args:
        there: stations.
        work: pieces, begun in their order.
        do: at a station; several at once, each at a station of its own.
        keep: never two at once, and nothing any more once something has failed.

    Raises:
        BaseException: the first that ``do`` or ``keep`` raised, once no station works any more.
    """
    if len(there) == 1:
        for piece in work:
            keep(there[0], piece, do(there[0], piece))
        return
    queue = _Queue(work)

    def run(station: Station) -> None:
        for piece in queue:
            found = do(station, piece)
            with queue.open() as is_open:
                if is_open:
                    keep(station, piece, found)

    def end() -> None:
        queue.close()
        for station in there:
            station.pool.close()

    _all_at_once([partial(run, station) for station in there], end)


def _all_at_once(runs: Sequence[Callable[[], None]], end: Callable[[], None]) -> None:
    """Run them at once; where one fails, or this is interrupted, end the others and say so."""
    executor = ThreadPoolExecutor(len(runs))
    try:
        running = [executor.submit(run) for run in runs]
        done, _ = wait(running, return_when="FIRST_EXCEPTION")
        for one in done:
            one.result()
    except BaseException:
        end()
        raise
    finally:
        executor.shutdown(wait=True)


class _Queue(Generic[_T]):
    """Pieces of work, each handed out once, until there are none or it is closed."""

    def __init__(self, work: Sequence[_T]) -> None:
        self._left = iter(work)
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[_T]:
        while not self._closed.is_set():
            with self._lock:
                piece = list(itertools.islice(self._left, 1))
            if not piece:
                return
            yield piece[0]

    @contextmanager
    def open(self) -> Iterator[bool]:
        """Nobody else meanwhile; says whether anything is still wanted."""
        with self._lock:
            yield not self._closed.is_set()

    def close(self) -> None:
        """Hand out no more, and want nothing more."""
        self._closed.set()
