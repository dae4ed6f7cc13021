"""What requests and replies both speak of."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1
#: A call shorter than this many empty pairs of events, 41 µs on an H200, is captured in a graph
#: where that is possible: a matmul of 25 µs differs ten times less there than one cold call does.
SHORT_CALL_PAIRS = 32
MAX_LINE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class CaseSpec:
    """A case as its file defines it.

    Attributes:
        id: unique among the cases of a side.
        file: where its set-up is written.
        line: of that.
        tolerance: of its own, None where the configured one holds.
        mode: as it asks.
        source: the benchmark file that was asked for, whichever was loaded.
        digest: of the set-up's source, empty where there is none.
        reference: name of the reference it is compared with, empty for the other revision.
        at_least: speedup over the reference that is asked for, None where the tolerance says it.
        check: whether both sides' outputs are compared.
        rtol: relative tolerance of that, None for the type's own.
        atol: absolute tolerance, likewise.
        own_check: digest of the benchmark's own comparator, empty where it brings none.
        poison: what the callable returned is overwritten before the last check.
        memory_tolerance: largest increase in peak memory, None where the configured one holds.
    """

    id: str
    file: str
    line: int
    tolerance: float | None
    mode: str
    source: str = ""
    digest: str = ""
    reference: str = ""
    at_least: float | None = None
    check: bool = True
    rtol: float | None = None
    atol: float | None = None
    own_check: str = ""
    poison: bool = False
    memory_tolerance: float | None = None


@dataclass(frozen=True)
class LoadFailure:
    """A benchmark file that could not be loaded."""

    file: str
    error: str
    traceback: str


@dataclass(frozen=True)
class Recipe:
    """How one sample is taken, the same on both sides.

    Attributes:
        mode: ``cold`` flushes the cache before each call, ``graph`` replays a graph over rotated
            copies of the inputs, ``warm-graph`` replays one over the same inputs, ``warm``
            repeats the call, ``loop`` repeats it on the CPU.
        calls: calls in a region.
        regions: regions in a sample.
        copies: set-ups a placement, so that their inputs together exceed the cache.
        held: whether the queue is held until everything is enqueued.
        batch: regions enqueued behind one hold.
    """

    mode: str
    calls: int = 1
    regions: int = 1
    copies: int = 1
    held: bool = False
    batch: int = 1
