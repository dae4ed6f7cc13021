"""The messages between coordinator and worker, one JSON line each; standard library only."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

VERSION = 1
#: A call shorter than this many empty pairs of events, 41 µs on an H200, is captured in a graph
#: where that is possible: a matmul of 25 µs differs ten times less there than one cold call does.
SHORT_CALL_PAIRS = 32
MAX_LINE_BYTES = 64 * 1024 * 1024

# ----------------------------------------------------------------- what both sides speak of


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


# ----------------------------------------------------------------------------- requests


@dataclass(frozen=True)
class Hello:
    """Open the device; the worker answers Ready.

    Attributes:
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        foreign_roots: folders of the other side's code, which must not be loaded here.
        own_roots: folders of this side's code.
        keep_editable: finders that serve this side's own tree may stay.
        benchmark_roots: folders of benchmarks, which both sides share.
        cpus: CPUs to stay on, empty for all.
    """

    device: str
    foreign_roots: tuple[str, ...]
    own_roots: tuple[str, ...]
    keep_editable: bool
    benchmark_roots: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Load:
    """Load benchmark files; a file that fails is tried at its fallback, where one is named.

    Attributes:
        files: of benchmarks.
        fallbacks: one a file.
        as_reference: this worker runs the references of the cases that have one.
        functions: names of a candidate's and a baseline's set-up to compare, instead of files.
    """

    files: tuple[str, ...]
    fallbacks: tuple[str | None, ...]
    as_reference: bool = False
    functions: tuple[str, str] | None = None


@dataclass(frozen=True)
class Place:
    """Set a case up at fresh addresses and call it until it is warm."""

    case: str
    seed: int
    padding_seed: int
    recipe: Recipe | None
    warm_up: bool = True


@dataclass(frozen=True)
class Rehearse:
    """Run a case's set-up once without calling it, for the imports in it; answers Placed."""

    case: str
    seed: int


@dataclass(frozen=True)
class Calibrate:
    """Measure the placed call well enough to choose a recipe."""

    mode: str


@dataclass(frozen=True)
class TakeSample:
    """Take one sample of the placed case by its recipe."""


@dataclass(frozen=True)
class WriteOutput:
    """Call the placed case once, seeded, and write its output to ``stem.json`` and ``stem.bin``.

    Attributes:
        stem: path without an ending.
        seed: of random generators.
        renew: put other values into the inputs before, in place.
        poison: call it once before and overwrite the arrays that it returned.
    """

    stem: str
    seed: int
    renew: bool = False
    poison: bool = False


@dataclass(frozen=True)
class JudgeOutputs:
    """Have the placed case's own comparator judge two outputs on disk; answers OutputsJudged.

    Attributes:
        baseline: path of the baseline's, without an ending.
        candidate: path of the candidate's, likewise.
    """

    baseline: str
    candidate: str


@dataclass(frozen=True)
class ProfileCall:
    """Take the placed case's call apart by a profiler; answers Profiled. Nothing is timed after."""


@dataclass(frozen=True)
class Release:
    """Free the placed case."""


@dataclass(frozen=True)
class Prove:
    """Say which files of the code under test are loaded."""


Request = (
    Hello | Load | Rehearse | Place | Calibrate | TakeSample | WriteOutput | JudgeOutputs
    | ProfileCall | Release | Prove
)  # fmt: skip

# ------------------------------------------------------------------------------ replies


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
        involuntary: involuntary context switches meanwhile.
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
    """An output is on disk; the size of its arrays."""

    size_bytes: int


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

REQUESTS: tuple[type, ...] = (
    Hello,
    Load,
    Rehearse,
    Place,
    Calibrate,
    TakeSample,
    WriteOutput,
    JudgeOutputs,
    ProfileCall,
    Release,
    Prove,
)
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


@dataclass(frozen=True)
class Envelope:
    """A message with the name of its type, as it stands on the line."""

    type: str
    body: dict[str, Any] = field(default_factory=dict)


def encode(message: Request | Reply) -> bytes:
    """One line of JSON, newline included."""
    body = dataclasses.asdict(message)
    return json.dumps({"type": type(message).__name__, "body": body}).encode() + b"\n"


def open_envelope(line: bytes) -> Envelope:
    """Read a line's type and body without judging the body.

    Raises:
        ValueError: the line is not such a message.
    """
    message = json.loads(line)
    if not isinstance(message, dict) or set(message) != {"type", "body"}:
        raise ValueError("not a message")
    if not isinstance(message["type"], str) or not isinstance(message["body"], dict):
        raise ValueError("not a message")  # noqa: TRY004 (one error for whatever is no message)
    return Envelope(message["type"], message["body"])


def decode_request(line: bytes) -> Request:
    """Read a request; the worker trusts the coordinator for the types of its fields.

    Raises:
        ValueError: the line is not a request.
    """
    envelope = open_envelope(line)
    kinds = {kind.__name__: kind for kind in REQUESTS}
    if envelope.type not in kinds:
        raise ValueError(f"{envelope.type} is no request")
    body = dict(envelope.body)
    if isinstance(body.get("recipe"), dict):
        body["recipe"] = Recipe(**body["recipe"])
    # JSON has no tuples, and frozen messages serve as keys.
    body = {key: tuple(v) if isinstance(v, list) else v for key, v in body.items()}
    return kinds[envelope.type](**body)  # type: ignore[no-any-return]
