"""Timing callables in this process: ``measure`` one, ``compare`` two; neither judges.

The replicates are windows and, where ``setup`` builds the inputs anew for each of them,
placements. Worker processes are not among them, so the gate gives no verdict on such an interval.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from sns_gate.clocks import ClockPolicy, Confirming, UnlockedClockPolicy
from sns_gate.protocol import Recipe, Sampled
from sns_gate.stats import block_effect, cv_percent, mean_interval, percentile
from sns_gate.telemetry import ClockSampler, Watch
from sns_gate.tiers import TIER_C_CV_PCT, assign_tier, rolling_means
from sns_gate.timers import Timer, open_timer, seed_everything
from sns_gate.types import ComparisonResult, MeasurementTier, Reason, TimingResult

Call = Callable[..., object]
Setup = Callable[[], object]

#: The specification's: with triton's default of 25 ms a first call is underestimated (triton#2306).
DEFAULT_WARMUP = 200
MIN_ITERS = 30
#: Twenty times the cost of an empty held pair of events on an H200; a shorter region measures it.
MIN_DURATION_US = 26.0
SAMPLE_NS = 1_000_000
WINDOWS = 6
SETTLING_SAMPLES = 4
MAX_INNER_REPS = 100_000


def measure(  # noqa: PLR0913 (the specification's parameters, and the set-up's)
    fn: Call,
    *,
    warmup: int = DEFAULT_WARMUP,
    iters: int = MIN_ITERS,
    device: int | Literal["cpu"] = 0,
    flush_l2: bool = True,
    policy: ClockPolicy | None = None,
    min_duration_us: float = MIN_DURATION_US,
    setup: Setup | None = None,
    seed: int = 0,
) -> TimingResult:
    """Time a callable; the answer is an interval and a tier, never a bare number.

    The samples fall into windows between which the device and, with ``setup``, the placement
    change; the interval rests on the spread between windows.

    Args:
        fn: the work to time. It is called with what ``setup`` returns, without one with nothing.
        warmup: untimed calls before the first sample.
        iters: number of samples, at least ``MIN_ITERS``.
        device: torch's index of the GPU, or ``"cpu"``.
        flush_l2: whether the cache is flushed before each timed region on a GPU.
        policy: applied before and restored after, however the measurement ends.
        min_duration_us: the shortest region to time; shorter calls are repeated inside one.
        setup: builds the inputs, once a window, at fresh random addresses; a tuple is unpacked.
        seed: of the placements and of every random generator before ``setup``.

    Raises:
        ValueError: ``iters`` is below ``MIN_ITERS``.
        RuntimeError: a GPU is asked for and torch has none.
        ClockLockError: the policy could not establish its clocks.
    """
    plan = _Plan(warmup, iters, device, flush_l2, min_duration_us, setup, seed)
    with _bench(plan, policy) as bench:
        side = _Side(fn)
        for window in range(WINDOWS):
            side.windows.append([])
            bench.place([side], window)
            for _ in range(SETTLING_SAMPLES):
                bench.sample(side)
            bench.watch.begin()
            for _ in range(_share(iters, window)):
                side.windows[-1].append(bench.sample(side))
            bench.watch.end()
    return _result(side, bench, _cv([s for w in side.windows for s in w]))


def compare(  # noqa: PLR0913 (likewise)
    candidate_fn: Call,
    baseline_fn: Call,
    *,
    warmup: int = DEFAULT_WARMUP,
    iters: int = MIN_ITERS,
    device: int | Literal["cpu"] = 0,
    flush_l2: bool = True,
    policy: ClockPolicy | None = None,
    min_duration_us: float = MIN_DURATION_US,
    setup: Setup | None = None,
    seed: int = 0,
) -> ComparisonResult:
    """Measure a candidate against a freshly measured baseline, sample by sample in turn.

    Pairs alternate A B B A within a window and begin with the other side in the next, so that
    both sides see the same clock; the speedup is the mean over windows of the median over pairs.

    Args:
        candidate_fn: the candidate's work, called as ``measure`` calls its ``fn``.
        baseline_fn: the baseline's.
        warmup: as for ``measure``.
        iters: samples a side.
        device: as for ``measure``.
        flush_l2: as for ``measure``.
        policy: as for ``measure``.
        min_duration_us: as for ``measure``.
        setup: builds each side's own inputs, once a window, from the same seed.
        seed: as for ``measure``.

    Raises:
        ValueError: ``iters`` is below ``MIN_ITERS``, or a side took no time at all.
        RuntimeError: a GPU is asked for and torch has none.
        ClockLockError: the policy could not establish its clocks.
    """
    plan = _Plan(warmup, iters, device, flush_l2, min_duration_us, setup, seed)
    with _bench(plan, policy) as bench:
        sides = (_Side(baseline_fn), _Side(candidate_fn))
        for window in range(WINDOWS):
            for side in sides:
                side.windows.append([])
            bench.place(sides, window)
            for pair in range(SETTLING_SAMPLES):
                bench.take_pair(sides, window + pair)
            bench.watch.begin()
            for pair in range(_share(iters, window)):
                for side, sample in bench.take_pair(sides, window + pair):
                    side.windows[-1].append(sample)
            bench.watch.end()
    baseline, candidate = sides
    if candidate.median_ms <= 0 or baseline.median_ms <= 0:
        raise ValueError(
            "a side measured 0 ms: its timed region fell below the timer's resolution, so there "
            "is no ratio; check that the callable does real work"
        )
    low, middle, high = mean_interval(_effects(baseline, candidate), bench.floor)
    return ComparisonResult(
        candidate=_result(candidate, bench, _rms_cv(candidate)),
        baseline=_result(baseline, bench, _rms_cv(baseline)),
        speedup=math.exp(middle),
        speedup_ci_lo=math.exp(low),
        speedup_ci_hi=math.exp(high),
        covers=bench.covers("pairs"),
    )


@dataclass(frozen=True)
class _Plan:
    warmup: int
    iters: int
    device: int | Literal["cpu"]
    flush_l2: bool
    min_duration_us: float
    setup: Setup | None
    seed: int


@dataclass
class _Side:
    """One callable and its samples, a list a window."""

    fn: Call
    inputs: tuple[object, ...] = ()
    windows: list[list[Sampled]] = field(default_factory=list)

    def call(self) -> object:
        """The work on the present window's inputs."""
        return self.fn(*self.inputs)

    @property
    def samples_ms(self) -> list[float]:
        """All samples in time order, milliseconds a call."""
        return [sample.call_ns / 1e6 for window in self.windows for sample in window]

    @property
    def median_ms(self) -> float:
        """Median of all samples."""
        return percentile(self.samples_ms, 0.5)


class _Bench:
    """A timer with everything that was watched while it was used."""

    def __init__(self, plan: _Plan, timer: Timer, policy: ClockPolicy, watch: Watch) -> None:
        self.plan, self.timer, self.policy, self.watch = plan, timer, policy, watch
        self.was_locked = False
        self._recipe: Recipe | None = None
        self._warm = 0

    def place(self, sides: Sequence[_Side], window: int) -> None:
        """Fresh inputs for each side at fresh addresses, warmed up; one recipe for all."""
        if window:
            self.timer.end()
        self.timer.begin(random.Random(f"{self.plan.seed}|{window}").getrandbits(62))
        # Whoever is placed first gets other addresses, so neither side always is.
        for side in sides if window % 2 == 0 else list(reversed(sides)):
            if self.plan.setup is not None:
                seed_everything(self.plan.seed + window)
                made = self.plan.setup()
                side.inputs = made if isinstance(made, tuple) else (made,)
            for _ in range(self.plan.warmup if not window else SETTLING_SAMPLES):
                side.call()
        self.timer.wait()
        if self._recipe is None:
            self._recipe = self._choose(sides)
            if isinstance(self.policy, Confirming):
                self.policy.confirm(lambda: self.sample(sides[0]).device_mhz)

    def sample(self, side: _Side) -> Sampled:
        """One sample of one side."""
        assert self._recipe is not None  # noqa: S101 (set by place)
        self.timer.arrange([side.call], self._recipe)
        return self.timer.sample()

    def take_pair(self, sides: Sequence[_Side], parity: int) -> list[tuple[_Side, Sampled]]:
        """Two adjacent samples, one a side; the side that begins alternates."""
        order = sides if parity % 2 == 0 else list(reversed(sides))
        return [(side, self.sample(side)) for side in order]

    @property
    def inner_reps(self) -> int:
        """Calls in one region."""
        return self._recipe.calls if self._recipe else 1

    @property
    def floor(self) -> float:
        """The smallest half-width on the log scale: one timer step over a sample's time."""
        return self.timer.step_ns / max(SAMPLE_NS, self.timer.step_ns)

    def covers(self, *further: str) -> tuple[str, ...]:
        """Sources of variation that an interval over these windows covers."""
        placements = ("placements",) if self.plan.setup is not None else ()
        return ("samples", *further, "windows", *placements)

    def _choose(self, sides: Sequence[_Side]) -> Recipe:
        # What a capture does to the caller's process is not worth a recipe that has no graph.
        measured = [self.timer.calibrate(s.call, "warm", to_capture=False) for s in sides]
        call_ns = max(1.0, min(m.warm_ns for m in measured))
        calls = min(MAX_INNER_REPS, max(1, math.ceil(1e3 * self.plan.min_duration_us / call_ns)))
        regions = max(1, math.ceil(SAMPLE_NS / (calls * call_ns)))
        if self.plan.device == "cpu":
            return Recipe("loop", calls=calls, regions=regions)
        held = not any(m.hold_expired for m in measured)
        mode = "cold" if self.plan.flush_l2 else "warm"
        return Recipe(mode, calls=calls, regions=regions, held=held, batch=min(regions, 8))


@contextmanager
def _bench(plan: _Plan, policy: ClockPolicy | None) -> Iterator[_Bench]:
    """A timer under a clock policy, which is restored however the measurement ends."""
    if plan.iters < MIN_ITERS:
        raise ValueError(f"iters must be at least {MIN_ITERS}, got {plan.iters}")
    timer, sampler = _open(plan.device), None
    policy = policy or UnlockedClockPolicy()
    if plan.device != "cpu":
        sampler = ClockSampler(plan.device)
    try:
        policy.apply()
        bench = _Bench(plan, timer, policy, Watch(sampler))
        yield bench
        # ``restore`` clears it, and the tier is assigned after that.
        bench.was_locked = policy.locked
    finally:
        timer.end()
        policy.restore()
        if sampler is not None:
            sampler.shutdown()


def _open(device: int | Literal["cpu"]) -> Timer:
    if device == "cpu":
        return open_timer("cpu")
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError(
            "measure() requires a CUDA device, and torch has none here; pass device='cpu' to time "
            "on the CPU"
        )
    return open_timer(f"cuda:{device}")


def _share(iters: int, window: int) -> int:
    """Samples of one window: all windows together take ``iters``."""
    return iters // WINDOWS + (window < iters % WINDOWS)


def _effects(baseline: _Side, candidate: _Side) -> list[float]:
    return [
        block_effect([s.call_ns for s in b], [s.call_ns for s in c])
        for b, c in zip(baseline.windows, candidate.windows, strict=True)
    ]


def _clocks(samples: Sequence[Sampled]) -> list[float]:
    return [sample.device_mhz for sample in samples if sample.device_mhz is not None]


def _cv(samples: Sequence[Sampled]) -> float | None:
    clocks = _clocks(samples)
    return cv_percent(clocks) if clocks else None


def _rms_cv(side: _Side) -> float | None:
    """The ratio is formed inside windows, so only the variation inside them can touch it."""
    found = [cv for window in side.windows if (cv := _cv(window)) is not None]
    return math.sqrt(statistics.fmean(cv**2 for cv in found)) if found else None


def _result(side: _Side, bench: _Bench, cv_pct: float | None) -> TimingResult:
    watch, samples = bench.watch, side.samples_ms
    clocks = [mhz for window in side.windows for mhz in _clocks(window)]
    means = [
        m for window in side.windows if _clocks(window) for m in rolling_means(_clocks(window))
    ]
    medians = [math.log(statistics.median(s.call_ns for s in w) / 1e6) for w in side.windows]
    low, _, high = mean_interval(medians, bench.floor)
    tier, reasons = _tier(bench, clocks, means, cv_pct)
    median_ms = side.median_ms
    return TimingResult(
        samples_ms=samples,
        median_ms=median_ms,
        p10_ms=percentile(samples, 0.10),
        p90_ms=percentile(samples, 0.90),
        ci95_lo_ms=min(math.exp(low), median_ms),
        ci95_hi_ms=max(math.exp(high), median_ms),
        n=len(samples),
        tier=tier,
        warmup=bench.plan.warmup,
        inner_reps=bench.inner_reps,
        throttle_fired=bool(watch.throttled),
        clock_cv_pct=cv_pct,
        clock_range_mhz=max(means) - min(means) if means else None,
        windows=len(side.windows),
        covers=bench.covers(),
        reasons=reasons,
    )


def _tier(
    bench: _Bench, clocks: Sequence[float], means: Sequence[float], cv_pct: float | None
) -> tuple[MeasurementTier, tuple[Reason, ...]]:
    """The specification's tier, fed with better evidence, and why."""
    watch, reasons = bench.watch, []
    if watch.throttled:
        reasons.append(Reason(code="throttled", text=f"seen: {', '.join(watch.throttled)}"))
    if watch.power_capped:
        reasons.append(Reason(code="power-capped", text="the power limit held the clock down"))
    if not clocks:
        reasons.append(Reason(code="no-clock-evidence", text="no clock can be read on this device"))
    elif not watch.answered:
        reasons.append(Reason(code="nvml-silent", text="NVML gave no event reasons, so no tier A"))
    if cv_pct is not None and cv_pct > TIER_C_CV_PCT:
        text = f"the device clock varied by {cv_pct:.1f}%, the limit is {TIER_C_CV_PCT:.0f}%"
        reasons.append(Reason(code="clock-unstable", text=text))
        return MeasurementTier.C, tuple(reasons)
    locked = bench.was_locked and watch.answered and not watch.power_capped
    return assign_tier(locked, means, bool(watch.throttled)), tuple(reasons)
