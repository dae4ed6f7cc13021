"""The finished result of a check as frozen data; it measures and decides nothing."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Side = Literal["baseline", "candidate"]
#: What a check on GitHub ends as.
Conclusion = Literal["success", "neutral", "failure"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")


class Record(BaseModel):
    """Frozen data that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MeasurementTier(StrEnum):
    """How much the numbers in a result can be trusted.

    A: clocks pinned and seen held on the device. B: clocks floating, their variance measured and
    inside the interval. C: unstable, disturbed or unobserved; no verdict is given on it.
    """

    A = "A"
    B = "B"
    C = "C"


class Verdict(StrEnum):
    """What the gate says of a case."""

    SLOWER = "slower"
    FASTER = "faster"
    UNCHANGED = "unchanged"
    NOT_SLOWER = "not slower"
    INCONCLUSIVE = "inconclusive"
    REFUSED = "refused"
    BROKEN = "broken"
    WRONG = "wrong"
    ADDED = "added"
    REMOVED = "removed"


class Outcome(StrEnum):
    """What the gate says of the whole check."""

    PASS = "pass"  # noqa: S105 (not a password)
    FAIL = "fail"
    REFUSED = "refused"
    INCONCLUSIVE = "inconclusive"
    NOTHING_COMPARED = "nothing compared"


class Reason(Record):
    """Why a verdict is what it is: a stable code for programs, a text for people."""

    code: str
    text: str
    detail: str = Field("", description="a traceback or log, empty where there is none")


class OutputCheck(Record):
    """Whether and how both sides' outputs are compared; None is the type's own tolerance."""

    wanted: bool = True
    rtol: float | None = None
    atol: float | None = None


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


class TimingResult(Record):
    """A timing measurement.

    It defines no ``__float__``, ``__int__`` or ``__index__``, so that no caller can collapse it
    into a bare number and lose the interval.

    Attributes:
        samples_ms: time a call, one a sample, in time order, milliseconds.
        median_ms: of the samples.
        p10_ms: tenth percentile.
        p90_ms: ninetieth percentile.
        ci95_lo_ms: lower end of the 95% interval of the median, between-window variance included.
        ci95_hi_ms: upper end.
        n: number of samples.
        tier: how far the numbers can be trusted.
        warmup: untimed calls before the first sample.
        inner_reps: calls in one timed region.
        throttle_fired: hardware slowdown, thermal slowdown or power brake while measuring.
        clock_cv_pct: variation of the clock, None where it cannot be read.
        clock_range_mhz: range of means of 8 consecutive clock readings, likewise.
        windows: windows that the samples fall into, equally many each.
        covers: sources of variation that the interval covers.
        reasons: why the tier is what it is.
    """

    samples_ms: list[float]
    median_ms: float
    p10_ms: float
    p90_ms: float
    ci95_lo_ms: float
    ci95_hi_ms: float
    n: int
    tier: MeasurementTier
    warmup: int
    inner_reps: int = 1
    throttle_fired: bool = False
    clock_cv_pct: float | None = None
    clock_range_mhz: float | None = None
    windows: int = 1
    covers: tuple[str, ...] = ("samples",)
    reasons: tuple[Reason, ...] = ()

    @field_validator("samples_ms")
    @classmethod
    def _need_two_samples(cls, samples: list[float]) -> list[float]:
        if len(samples) < 2:  # noqa: PLR2004 (an interval needs two)
            raise ValueError("a timing result needs at least 2 samples")
        return samples

    @property
    def is_performance_valid(self) -> bool:
        """Whether a performance verdict may rest on it."""
        return self.tier is not MeasurementTier.C


class ComparisonResult(Record):
    """A candidate measured against a baseline timed in the same session.

    The baseline is never cached: measuring it anew is what tells a regression of the candidate
    from an improvement of everything else, and what makes ratios comparable across machines.

    Attributes:
        candidate: the candidate's half.
        baseline: the baseline's half.
        speedup: baseline / candidate; above 1 the candidate is faster.
        speedup_ci_lo: lower end of the speedup's 95% interval.
        speedup_ci_hi: upper end.
        covers: sources of variation that the interval covers; never processes, so that the gate
            gives no verdict on it.
    """

    candidate: TimingResult
    baseline: TimingResult
    speedup: float
    speedup_ci_lo: float
    speedup_ci_hi: float
    covers: tuple[str, ...] = ("samples",)

    @property
    def tier(self) -> MeasurementTier:
        """A comparison is only as trustworthy as its worse half."""
        return max((self.candidate.tier, self.baseline.tier), key=list(MeasurementTier).index)

    @property
    def is_performance_valid(self) -> bool:
        """Whether a performance verdict may rest on it."""
        return self.tier is not MeasurementTier.C


class EnvironmentFingerprint(Record):
    """Identifies the toolchain and device a run happened on.

    Two runs are only comparable when their fingerprints match exactly.
    """

    torch_version: str | None = None
    triton_version: str | None = None
    cuda_version: str | None = None
    cublas_version: str | None = None
    cudnn_version: str | None = None
    driver_version: str | None = None
    gpu_name: str | None = None
    compute_cap: str | None = None
    arch_family: str | None = None
    sm_count: int | None = None
    power_limit_w: float | None = None
    memory_mhz: int | None = None
    ecc: bool | None = None
    mig: bool | None = None
    persistence: bool | None = None
    cpu_model: str | None = None
    python_version: str | None = None

    def matches(self, other: EnvironmentFingerprint) -> bool:
        """Whether results of the two environments may be compared."""
        return self.model_dump() == other.model_dump()

    def differences(self, other: EnvironmentFingerprint) -> tuple[str, ...]:
        """The names of the fields that differ, in their order of definition."""
        mine, theirs = self.model_dump(), other.model_dump()
        return tuple(name for name in mine if mine[name] != theirs[name])


class GpuEvidence(Record):
    """What NVML said around one block."""

    nvml_mhz: tuple[int, int] = Field(description="SM clock before and after, up to 100 ms old")
    reasons: int = Field(description="clock event reason bits seen before or after")
    counters_ms: dict[str, float] = Field(description="advance of each cumulative event counter")
    power_w: float | None = None
    temperature_c: int | None = None
    other_processes: int | None = Field(None, description="null: could not be listed")


class CpuEvidence(Record):
    """What the kernel said around one block."""

    steal_pct: float = Field(description="share of CPU time that the hypervisor took")
    throttled_ms: float = Field(description="time the cgroup's quota stopped us")
    pressure_ms: float | None = Field(None, description="time somebody waited for a CPU")
    other_load_pct: float | None = Field(None, description="CPU use of others, of one core")
    involuntary_switches: int = Field(description="workers' involuntary context switches")


class Block(Record):
    """One baseline worker against one candidate worker at one placement, in time order.

    ``sides``, ``ms``, ``device_mhz`` and ``held_us`` have one entry a sample; the first
    ``settling`` samples are recorded but do not count.
    """

    placement: int
    baseline_worker: int
    candidate_worker: int
    settling: int
    sides: str = Field(description="one letter a sample, b for baseline, c for candidate")
    ms: tuple[float, ...] = Field(description="time a call, milliseconds")
    device_mhz: tuple[float | None, ...] = Field(description="the device's own clock behind it")
    held_us: tuple[float | None, ...] = Field(description="how long the queue was held")
    wall_us: tuple[float, ...] = Field(
        (), description="how long the worker's answer took to come, by the gate's own clock"
    )
    log_speedup: float = Field(description="median over pairs of log(baseline / candidate)")
    placing_s: float = Field(0.0, description="seconds to set up, warm up and free both sides")
    settling_s: float = Field(0.0, description="seconds until the counted samples began")
    sampling_s: float = Field(0.0, description="seconds of the counted samples")
    gpu: GpuEvidence | None = None
    cpu: CpuEvidence | None = None

    def counted(self, side: Side) -> tuple[float, ...]:
        """The times of one side's samples that count, in time order, milliseconds."""
        return tuple(self.ms[i] for i in self._counted(side))

    def pair_logs(self) -> tuple[float, ...]:
        """log(baseline / candidate) of each counted pair, in time order."""
        pairs = zip(self.counted("baseline"), self.counted("candidate"), strict=True)
        return tuple(math.log(b / c) for b, c in pairs)

    def clocks(self, side: Side) -> tuple[float, ...]:
        """The device clocks read behind one side's counted samples, MHz, in time order."""
        values = (self.device_mhz[i] for i in self._counted(side))
        return tuple(value for value in values if value is not None)

    def _counted(self, side: Side) -> list[int]:
        return [i for i in range(self.settling, len(self.sides)) if self.sides[i] == side[0]]

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        columns = (self.ms, self.device_mhz, self.held_us, self.wall_us or self.sides)
        if any(len(column) != len(self.sides) for column in columns):
            raise ValueError("a block's columns must have one entry a sample")
        return self


class CaseEvidence(Record):
    """A case's evidence over all its blocks."""

    clock_source: Literal["device", "none"]
    clock_mean_mhz: float | None = None
    clock_cv_pct: float | None = Field(
        None, description="worse side's root mean square of the variation inside blocks"
    )
    clock_range_mhz: float | None = Field(None, description="of means of 8 consecutive readings")
    reasons: tuple[str, ...] = Field((), description="clock event reasons seen, by name")
    counters_ms: dict[str, float] = Field(default_factory=dict)
    steal_pct: float | None = None
    throttled_ms: float | None = None


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
    mode: str | None = Field(None, description="cold, graph, warm, or loop on the CPU")
    calls_per_sample: int | None = None
    covers: tuple[str, ...] = Field((), description="sources of variation inside the interval")
    evidence: CaseEvidence | None = None
    seconds: float = 0.0
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
    device: str
    seed: int
    processes: int
    placements: int
    started_at: str
    seconds: float
    disclosures: tuple[Reason, ...] = Field((), description="what a reader should know")
    cases: tuple[CaseResult, ...]
