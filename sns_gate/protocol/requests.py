"""What the coordinator asks of a worker."""

from __future__ import annotations

from dataclasses import dataclass

from sns_gate.protocol.shared import Recipe


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
        reach: tell which arrays the callable holds, before the call.
        renew: digests of those to put other values into before, in place; empty for none.
        poison: call it once before and overwrite the arrays that it returned.
        again: write what the last call returned, without another one.
        key: of digests that stand for the elements, which are not written; None to write them.
        most_bytes: of a larger array, elements at even distances are written.
    """

    stem: str
    seed: int
    reach: bool = False
    renew: tuple[str, ...] = ()
    poison: bool = False
    again: bool = False
    key: int | None = None
    most_bytes: int = 256 << 20


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
