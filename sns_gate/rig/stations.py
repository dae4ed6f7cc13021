"""Places to measure at, each with workers of both sides; cases are spread over them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from sns_gate import protocol
from sns_gate.errors import RefusedRun
from sns_gate.rig.device import Device
from sns_gate.rig.functions import FunctionsRig
from sns_gate.rig.mount import Rig
from sns_gate.session import CaseOutcome, PlannedCase, Progress
from sns_gate.types import EnvironmentFingerprint, Explanation, Reason, RevisionInfo, Side
from sns_gate.workers import WorkerPool

Stage = Callable[[str], None]
#: What a result says of the baseline and of the candidate.
Infos = tuple[RevisionInfo, RevisionInfo]
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Team:
    """One kind of workers: of both revisions, or of the candidate's code and its references.

    Attributes:
        rig: whose code they run.
        references: the baseline's side runs the references that cases name.
    """

    rig: Rig | FunctionsRig
    references: bool = False

    def start(self, name: str, processes: int, device: Device) -> WorkerPool:
        """So many workers a side on a device of this machine, with the caches of a name."""
        start = self.rig.reference_pool if self.references else self.rig.pool
        return start(name, processes, device)


class Station(Protocol):
    """A place to measure at while workers of both sides are alive there."""

    @property
    def name(self) -> str:
        """What the result calls it."""

    @property
    def lost(self) -> bool:
        """Whether nothing can be measured there any more."""

    @property
    def loaded(self) -> Mapping[Side, protocol.Loaded | None]:
        """What a worker of each side has loaded."""

    @property
    def disclosures(self) -> Sequence[Reason]:
        """What a reader should know of how the workers started."""

    def measure(
        self, case: PlannedCase, deadline_s: float, progress: Progress, cases: int
    ) -> CaseOutcome:
        """One case; as ``Machine.measure``."""

    def describe(self, known: Infos) -> Infos:
        """What is known of both sides, with fingerprints and the files of code seen loaded."""

    def fingerprint(self) -> EnvironmentFingerprint:
        """The candidate's toolchain on the device there."""

    def close(self) -> None:
        """End the workers; who waits for them is told that they are gone."""


class Places(Protocol):
    """Where a check measures: devices of this machine, or wherever launchers lead."""

    @property
    def device(self) -> str:
        """All devices as ``--device`` names them."""

    @property
    def count(self) -> int:
        """Cases that are measured at the same time."""

    @property
    def is_named(self) -> bool:
        """Whether each case says where it was measured."""

    def prepare(self, stage: Stage) -> None:
        """Build every side's code where it is needed, saying so first."""

    def to_themselves(self, stage: Stage) -> AbstractContextManager[None]:
        """Keep other checks off the devices meanwhile."""

    def own_cases(
        self, rig: Rig | FunctionsRig
    ) -> AbstractContextManager[Callable[[], protocol.Loaded | None]]:
        """The baseline's own cases; as ``Rig.baseline_cases``."""

    def stations(
        self, team: Team, name: str, processes: int
    ) -> AbstractContextManager[Sequence[Station]]:
        """Start these workers everywhere, so many a side, and end them again.

        Raises:
            RefusedRun: places are unlike, or fewer than three workers a side could start.
            WorkerError: a worker could not start for another reason.
        """

    def taken_apart(
        self, team: Team, cases: Sequence[PlannedCase]
    ) -> Iterator[tuple[PlannedCase, Explanation | Reason | None]]:
        """Each case with its explanation, or why it has none, from workers that time nothing."""


def refuse_unlike(found: Sequence[Station]) -> None:
    """Places whose cases would not be comparable must not share a check.

    Raises:
        RefusedRun: fingerprints differ; the message names two places and in what they differ.
    """
    first = found[0]
    for station in found[1:]:
        differing = first.fingerprint().differences(station.fingerprint())
        if differing:
            raise RefusedRun(
                "gpus-differ",
                f"{first.name} and {station.name} differ in {', '.join(differing)}, so cases "
                f"measured on one would not be those of the other; choose like ones with --device "
                f"or --launcher",
            )


def spread(
    there: Sequence[Station],
    work: Sequence[_T],
    do: Callable[[Station, _T], _R],
    keep: Callable[[Station, _T, _R], None],
) -> None:
    """Do each piece of work at whichever station is free, and keep what came of it, one at a time.

    A station that is lost takes no more while there is another; the last one breaks what is left.

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
        for piece in queue.pieces_until(lambda: _is_replaced(station, there)):
            found = do(station, piece)
            with queue.open() as is_open:
                if is_open:
                    keep(station, piece, found)

    def end() -> None:
        queue.close()
        for station in there:
            station.close()

    all_at_once([partial(run, station) for station in there], end)


def _is_replaced(station: Station, there: Sequence[Station]) -> bool:
    """Whether a station is lost and another one is there for what is left."""
    return station.lost and not all(one.lost for one in there)


def all_at_once(runs: Sequence[Callable[[], object]], end: Callable[[], None]) -> None:
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

    def pieces_until(self, enough: Callable[[], bool]) -> Iterator[_T]:
        """One after the other, for one of those who share them."""
        while not (self._closed.is_set() or enough()):
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
