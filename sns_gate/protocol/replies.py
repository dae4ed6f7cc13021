"""What a worker answers."""

from __future__ import annotations

from dataclasses import dataclass

from sns_gate.protocol.shared import CaseSpec, LoadFailure


@dataclass(frozen=True)
class Ready:
    """The worker has opened its device."""

    version: int
    pid: int
    removed_finders: tuple[str, ...]
    gpu_uuid: str | None = None
    timer_step_ns: float = 1.0


@dataclass(frozen=True)
class Loaded:
    """The cases found, and the files that could not be loaded."""

    cases: tuple[CaseSpec, ...]
    failures: tuple[LoadFailure, ...]
    fingerprint: dict[str, str | int | None]
    fell_back: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placed:
    """The case stands ready."""

    seconds: float
    input_bytes: int


@dataclass(frozen=True)
class Calibrated:
    """What one worker measured of its call.

    Attributes:
        call_ns: device time of one call, flushed where the mode is cold.
        enqueue_ns: host time to enqueue one call with its flush and events.
        hold_expired: the hold ran into its limit, so the call waits for the device itself.
        capturable: the call can be captured in a graph; None where it was not tried.
        empty_ns: cost of a held pair of events around nothing.
        cache_bytes: size of the device's last-level cache, 0 where it is unknown.
        warm_ns: time of one call in a repeated run, without flush.
        changed_inputs: arrays that the callable holds and that one more call changed.
        peak_bytes: of the device's memory during one call, with its inputs; None where nobody
            counts.
    """

    call_ns: float
    enqueue_ns: float
    hold_expired: bool
    capturable: bool | None
    empty_ns: float
    cache_bytes: int
    input_bytes: int
    warm_ns: float
    changed_inputs: int = 0
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Sampled:
    """One sample.

    Attributes:
        call_ns: time a call.
        device_mhz: the device's own clock read behind it, None where there is none.
        held_ns: how long the queue was held, None where it was not.
        wall_ns: the worker's wall time for the whole sample.
        involuntary: involuntary context switches meanwhile, 0 where the call runs threads of its
            own, which take turns with each other.
        hold_expired: the hold ran into its limit.
        late_ns: how long the device was still busy after the last region's end, None where that
            cannot be.
    """

    call_ns: float
    device_mhz: float | None
    held_ns: float | None
    wall_ns: int
    involuntary: int
    hold_expired: bool = False
    late_ns: float | None = None


@dataclass(frozen=True)
class OutputWritten:
    """An output is on disk.

    Attributes:
        size_bytes: of its arrays.
        reached: digests of the arrays that the callable held before its first call there, and that
            can be renewed, where that was asked.
        renewed: how many of them were for this call.
        not_renewed: how many of them could not be, though that was asked.
    """

    size_bytes: int
    reached: tuple[str, ...] = ()
    renewed: int = 0
    not_renewed: int = 0


@dataclass(frozen=True)
class OutputsJudged:
    """What the benchmark's own comparator says; empty where both outputs are alike."""

    text: str


@dataclass(frozen=True)
class PartSeen:
    """A kernel, operator or function inside a call: its calls and own time in one of the case's."""

    name: str
    calls: float
    us: float


@dataclass(frozen=True)
class ProfileSeen:
    """A call taken apart in one way.

    Attributes:
        source: ``kernels``, ``operators`` or ``functions``.
        parts: the longest first.
        outside_us: of a call outside of all parts.
        launches: kernels in each profiled call.
        choices: configurations that autotuners settled on.
    """

    source: str
    parts: tuple[PartSeen, ...]
    outside_us: float
    launches: tuple[int, ...]
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Profiled:
    """A call taken apart in every way that the device allows."""

    profiles: tuple[ProfileSeen, ...]


@dataclass(frozen=True)
class Released:
    """The case is gone; peak memory that it took on the device."""

    peak_bytes: int


@dataclass(frozen=True)
class Proven:
    """Files of the code under test that this worker has loaded, by whose tree holds them."""

    own: tuple[str, ...]
    foreign: tuple[str, ...]


@dataclass(frozen=True)
class Failed:
    """The request could not be done.

    Attributes:
        kind: ``raised``, ``out-of-memory`` or ``device``.
        fatal: the worker is of no more use and ends.
    """

    kind: str
    error: str
    traceback: str = ""
    fatal: bool = False


Reply = (
    Ready | Loaded | Placed | Calibrated | Sampled | OutputWritten | OutputsJudged | Profiled
    | Released | Proven | Failed
)  # fmt: skip

REPLIES: tuple[type, ...] = (
    Ready,
    Loaded,
    Placed,
    Calibrated,
    Sampled,
    OutputWritten,
    OutputsJudged,
    Profiled,
    Released,
    Proven,
    Failed,
)
