"""Timings of the Python API, and the fingerprint of where they were taken."""

from __future__ import annotations

from pydantic import field_validator

from sns_gate.types.words import MeasurementTier, Reason, Record


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
