"""The finished result of a check as frozen data; it measures and decides nothing."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from sns_gate.types.blocks import Block, CaseEvidence
from sns_gate.types.profile import Explanation
from sns_gate.types.timings import EnvironmentFingerprint
from sns_gate.types.words import Conclusion, MeasurementTier, Outcome, Reason, Record, Side, Verdict


class OutputCheck(Record):
    """Whether and how both sides' outputs are compared; None is the type's own tolerance."""

    wanted: bool = True
    rtol: float | None = None
    atol: float | None = None
    own: str = Field("", description="digest of the benchmark's own comparator, empty for none")
    poison: bool = Field(default=False, description="once more after its output was overwritten")


#: The note of a case that is wrong for its memory alone.
MORE_MEMORY = "more memory"
#: As long as a benchmark asks nothing else.
CHECKED = OutputCheck()


class Speedup(Record):
    """baseline time / candidate time with its interval; above 1 the candidate is faster.

    ``low`` and ``high`` are rounded outward to the digits shown.
    """

    estimate: float
    low: float
    high: float
    level: float = Field(0.95, description="coverage that the interval claims")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.low <= self.estimate <= self.high:
            raise ValueError(f"0 < low ≤ estimate ≤ high does not hold: {self}")
        return self


class Measurement(Record):
    """One complete measurement of a case."""

    speedup: Speedup
    half_width_pct: float
    degrees_of_freedom: float | None = Field(description="null where nothing varied")
    blocks: tuple[Block, ...]


class CaseResult(Record):
    """A case and what the gate says of it."""

    id: str
    file: str | None = None
    line: int | None = None
    verdict: Verdict
    note: str = Field("", description="what kind of inconclusive, or a flag on unchanged")
    broken_sides: tuple[Side, ...] = ()
    reasons: tuple[Reason, ...] = ()
    tier: MeasurementTier | None = None
    tolerance: float
    reference: str | None = Field(
        None, description="what stands on the baseline's side, where it is not the other revision"
    )
    against: str | None = Field(
        None, description="further baseline that it is compared with, null for the check's own"
    )
    machine: str | None = Field(
        None, description="where it was measured, in a result merged from several machines"
    )
    at_least: float | None = Field(
        None, description="speedup over the reference below which the case is slower"
    )
    speedup: Speedup | None = None
    half_width_pct: float | None = None
    detectable_pct: float | None = Field(
        None, description="slowdown that this check would have called slower 95 times in 100"
    )
    baseline_ms: float | None = None
    candidate_ms: float | None = None
    baseline_peak_bytes: int | None = Field(
        None, description="peak of the device's memory in one call, inputs included"
    )
    candidate_peak_bytes: int | None = None
    mode: str | None = Field(None, description="cold, graph, warm, or loop on the CPU")
    calls_per_sample: int | None = None
    covers: tuple[str, ...] = Field((), description="sources of variation inside the interval")
    evidence: CaseEvidence | None = None
    seconds: float = 0.0
    explanation: Explanation | None = Field(
        None, description="both sides' calls taken apart after all timing, where they differ"
    )
    screening: Measurement | None = Field(
        None, description="the first measurement, where a confirmation followed"
    )
    blocks: tuple[Block, ...] = ()

    @property
    def least(self) -> float:
        """The speedup below which the case is slower."""
        return self.at_least if self.at_least is not None else 1 / (1 + self.tolerance)


class RevisionInfo(Record):
    """One side of the check."""

    ref: str = Field(description="as asked for, or as found")
    commit: str | None = None
    dirty: bool = False
    changed_files: tuple[str, ...] = Field((), description="uncommitted changes, if dirty")
    fingerprint: EnvironmentFingerprint | None = None
    loaded: tuple[str, ...] = Field((), description="files of the code under test seen loaded")


class MachineInfo(Record):
    """One of several machines whose results were merged."""

    name: str
    device: str
    baseline: EnvironmentFingerprint | None = None
    candidate: EnvironmentFingerprint | None = None


class Acceptance(Record):
    """Somebody lets a case pass that would not; found at GitHub, never in a file."""

    case: str
    by: str = Field(description="login, or name where GitHub knows none")
    how: Literal["label", "trailer"]
    reason: str = ""


class GateResult(Record):
    """Everything about one check; any renderer can work from it without a GPU."""

    schema_version: Literal[1] = 1
    tool_version: str
    verdict: Outcome
    exit_code: int
    conclusion: Conclusion = Field("failure", description="what a check on GitHub ends as")
    on_refused: Conclusion = Field("failure", description="the policy's word for exit code 3")
    on_inconclusive: Conclusion = Field("neutral", description="the policy's word for exit code 4")
    accepted: tuple[Acceptance, ...] = Field(
        (), description="who let which case pass; empty in every file"
    )
    complete: bool = Field(description="false while cases are still to come")
    tolerance: float
    baseline: RevisionInfo
    candidate: RevisionInfo
    further_baselines: tuple[RevisionInfo, ...] = Field(
        (), description="that cases are compared with too"
    )
    machines: tuple[MachineInfo, ...] = Field(
        (), description="whose results were merged, where they differ"
    )
    shard: str | None = Field(
        None, pattern=r"^\d+/\d+$", description="part of the cases that this holds, as I/N"
    )
    device: str
    seed: int
    processes: int
    placements: int
    started_at: str
    seconds: float
    disclosures: tuple[Reason, ...] = Field((), description="what a reader should know")
    cases: tuple[CaseResult, ...]
