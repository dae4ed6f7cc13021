"""The finished result of a check as frozen data; it measures and decides nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

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


#: A moment in UTC, so written that texts sort as times do.
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$"
#: The note of a case that is wrong for its memory alone.
MORE_MEMORY = "more memory"
#: The note of a case that looked slower and could not be measured again.
UNCONFIRMED = "unconfirmed"
#: As long as a benchmark asks nothing else.
CHECKED = OutputCheck()


class Speedup(Record):
    """baseline time / candidate time with its interval; above 1 the candidate is faster.

    ``low`` and ``high`` are rounded outward to the digits shown.
    """

    estimate: float = Field(description="1.02 for 2% faster")
    low: float = Field(description="lower end of the interval, which is what is judged")
    high: float = Field(description="upper end")
    level: float = Field(0.95, description="coverage that the interval claims")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.low <= self.estimate <= self.high:
            raise ValueError(f"0 < low ≤ estimate ≤ high does not hold: {self}")
        return self


class Measurement(Record):
    """One complete measurement of a case."""

    speedup: Speedup
    half_width_pct: float = Field(description="of the interval, in % of the speedup")
    degrees_of_freedom: float | None = Field(description="null where nothing varied")
    blocks: tuple[Block, ...]


class CaseResult(Record):
    """A case and what the gate says of it."""

    id: str = Field(description="unique in a check: benchmark[parameter=value,…]")
    file: str | None = Field(None, description="where the benchmark is written")
    line: int | None = Field(None, description="of its decorator")
    verdict: Verdict
    note: str = Field("", description="what kind of inconclusive, or a flag on unchanged")
    broken_sides: tuple[Side, ...] = Field((), description="sides that could not run")
    reasons: tuple[Reason, ...] = Field((), description="why verdict and tier are what they are")
    tier: MeasurementTier | None = Field(None, description="null where nothing was measured")
    tolerance: float = Field(description="largest increase in time let pass, 0.02 for 2%")
    reference: str | None = Field(
        None, description="what stands on the baseline's side, where it is not the other revision"
    )
    against: str | None = Field(
        None, description="further baseline that it is compared with, null for the check's own"
    )
    device: str | None = Field(
        None,
        description="that it was measured on, where its check spread cases over several or "
        "launchers led elsewhere",
    )
    machine: str | None = Field(
        None, description="where it was measured, in a result merged from several machines"
    )
    at_least: float | None = Field(
        None, description="speedup over the reference below which the case is slower"
    )
    speedup: Speedup | None = Field(
        None, description="judged; after a confirmation the second one, or the hull of both"
    )
    half_width_pct: float | None = Field(None, description="of the interval, in % of the speedup")
    detectable_pct: float | None = Field(
        None, description="slowdown that this check would have called slower 95 times in 100"
    )
    baseline_ms: float | None = Field(None, description="median time of a call")
    candidate_ms: float | None = Field(None, description="likewise")
    baseline_peak_bytes: int | None = Field(
        None, description="peak of the device's memory in one call, inputs included"
    )
    candidate_peak_bytes: int | None = Field(None, description="likewise")
    mode: str | None = Field(None, description="cold, graph, warm, or loop on the CPU")
    calls_per_sample: int | None = Field(None, description="the same on both sides")
    covers: tuple[str, ...] = Field((), description="sources of variation inside the interval")
    evidence: CaseEvidence | None = Field(None, description="what the tier follows from")
    seconds: float = Field(0.0, description="spent on this case")
    explanation: Explanation | None = Field(
        None, description="both sides' calls taken apart after all timing, where they differ"
    )
    screening: Measurement | None = Field(
        None, description="the first measurement, where a confirmation followed"
    )
    blocks: tuple[Block, ...] = Field((), description="all samples, in time order")

    @property
    def least(self) -> float:
        """The speedup below which the case is slower."""
        return self.at_least if self.at_least is not None else 1 / (1 + self.tolerance)


class RevisionInfo(Record):
    """One side of the check."""

    ref: str = Field(description="as asked for, or as found")
    commit: str | None = Field(None, description="null where no repository is involved")
    dirty: bool = Field(default=False, description="with changes that no commit holds")
    changed_files: tuple[str, ...] = Field((), description="uncommitted changes, if dirty")
    fingerprint: EnvironmentFingerprint | None = Field(None, description="of its workers")
    loaded: tuple[str, ...] = Field((), description="files of the code under test seen loaded")


class MachineInfo(Record):
    """One of several machines whose results were merged."""

    name: str
    device: str
    baseline: EnvironmentFingerprint | None = None
    candidate: EnvironmentFingerprint | None = None


class Acceptance(Record):
    """Somebody lets a case pass that would not; found at GitHub, never in a file."""

    case: str = Field(description="id")
    by: str = Field(description="login, or name where GitHub knows none")
    how: Literal["label", "trailer"] = Field(description="by the label, or by a commit's trailer")
    reason: str = Field("", description="as they gave it")


class GateResult(Record):
    """Everything about one check; any renderer can work from it without a GPU."""

    schema_version: Literal[1] = Field(1, description="another number is another format")
    tool_version: str = Field(description="of sns-gate")
    verdict: Outcome = Field(description="of the whole check")
    exit_code: int = Field(description="of the command, before anything is accepted")
    conclusion: Conclusion = Field("failure", description="what a check on GitHub ends as")
    on_refused: Conclusion = Field("failure", description="the policy's word for exit code 3")
    on_inconclusive: Conclusion = Field("neutral", description="the policy's word for exit code 4")
    accepted: tuple[Acceptance, ...] = Field(
        (), description="who let which case pass; empty in every file"
    )
    complete: bool = Field(description="false while cases are still to come")
    tolerance: float = Field(description="as configured, 0.02 for 2%; cases may have their own")
    baseline: RevisionInfo = Field(description="what is compared with")
    candidate: RevisionInfo = Field(description="what is judged")
    further_baselines: tuple[RevisionInfo, ...] = Field(
        (), description="that cases are compared with too"
    )
    machines: tuple[MachineInfo, ...] = Field(
        (), description="whose results were merged, where they differ"
    )
    case_list: str | None = Field(
        None, description="digest of all cases' ids, where a shard of them was measured"
    )
    shard: str | None = Field(
        None, pattern=r"^\d+/\d+$", description="part of the cases that this holds, as I/N"
    )
    device: str = Field(description="cpu or cuda:N")
    seed: int = Field(description="of inputs, placements and orders")
    processes: int = Field(description="worker processes a side, as configured")
    placements: int = Field(description="in one rotation, as configured")
    started_at: str = Field(pattern=TIME, description="ISO 8601, UTC")
    seconds: float = Field(description="in all, start-up and confirmation included")
    disclosures: tuple[Reason, ...] = Field((), description="what a reader should know")
    cases: tuple[CaseResult, ...] = Field(description="in the order of files and parameters")

    @field_validator("started_at")
    @classmethod
    def _is_a_moment(cls, text: str) -> str:
        datetime.fromisoformat(text)
        return text
