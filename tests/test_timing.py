"""``measure`` and ``compare`` in one process, on the CPU."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable

import pytest
from pydantic import ValidationError

import sns_gate
from sns_gate import stats
from sns_gate.clocks import UnlockedClockPolicy
from sns_gate.errors import ClockLockError
from sns_gate.timing import DEFAULT_WARMUP, MIN_DURATION_US, MIN_ITERS, WINDOWS
from sns_gate.types import ComparisonResult, MeasurementTier, TimingResult
from tests.contract import contract


def work(n: int = 300) -> int:
    return sum(i * i for i in range(n))


@pytest.fixture(scope="module")
def timed() -> TimingResult:
    return sns_gate.measure(work, device="cpu")


@pytest.fixture(scope="module")
def compared() -> ComparisonResult:
    return sns_gate.compare(lambda: work(900), work, device="cpu")


class Recorder(UnlockedClockPolicy):
    """A policy that remembers what was asked of it."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls: list[str] = []
        self.fails = fails

    def apply(self) -> None:
        self.calls.append("apply")
        if self.fails:
            raise ClockLockError("no")

    def restore(self) -> None:
        self.calls.append("restore")


@contract("measure", "Returns an interval and a quality tier, never a bare number.")
@contract(
    "TimingResult", "samples_ms, median_ms, p10_ms, p90_ms, ci95_lo_ms, ci95_hi_ms, n, tier, …"
)
@contract("Measurement tiers", "Every result carries a tier recording how much it can be trusted.")
def test_a_measurement_is_an_interval_and_a_tier_with_all_its_samples(timed: TimingResult) -> None:
    assert timed.n == len(timed.samples_ms) == MIN_ITERS
    assert timed.ci95_lo_ms <= timed.median_ms <= timed.ci95_hi_ms
    assert timed.p10_ms <= timed.median_ms <= timed.p90_ms
    assert timed.median_ms == stats.percentile(timed.samples_ms, 0.5)
    assert (timed.warmup, timed.windows) == (DEFAULT_WARMUP, WINDOWS)
    assert timed.tier is MeasurementTier.B
    assert timed.is_performance_valid


def test_the_interval_says_what_it_covers(timed: TimingResult, compared: ComparisonResult) -> None:
    assert timed.covers == ("samples", "windows")
    assert compared.covers == ("samples", "pairs", "windows")
    placed = sns_gate.measure(work, setup=lambda: 200, warmup=2, device="cpu")
    assert placed.covers == ("samples", "windows", "placements")
    assert "processes" not in placed.covers


@contract(
    "measure", "Folding between-window variance into Tier B intervals is planned for Phase 1."
)
@contract("MeasurementTier", "B: clocks floating, variance measured and folded into the interval.")
@contract(
    "The problem tiers solve",
    "Measure the variance, classify it, and put the classification next to every number.",
)
def test_the_spread_between_windows_is_inside_the_interval() -> None:
    speeds = iter([1, 1, 2, 2, 3, 3, 3, 3, 3, 3])
    placed = sns_gate.measure(
        lambda n: work(400 * n), setup=lambda: next(speeds), warmup=2, device="cpu"
    )
    assert placed.ci95_hi_ms / placed.ci95_lo_ms > 1.5
    windows = [placed.samples_ms[i : i + 5] for i in range(0, 30, 5)]
    assert statistics.median(windows[0]) * 1.5 < statistics.median(windows[-1])


def test_a_region_is_never_shorter_than_the_timer_can_resolve() -> None:
    short = sns_gate.measure(lambda: None, device="cpu", warmup=10)
    assert short.inner_reps * short.median_ms * 1e3 >= 0.5 * MIN_DURATION_US
    longer = sns_gate.measure(lambda: None, device="cpu", warmup=10, min_duration_us=500)
    assert longer.inner_reps > 3 * short.inner_reps
    assert short.ci95_lo_ms < short.ci95_hi_ms


@contract("measure", "Time a callable honestly.")
def test_a_call_longer_than_the_shortest_region_is_not_repeated() -> None:
    slow = sns_gate.measure(lambda: time.sleep(0.001), device="cpu", warmup=1)
    assert slow.inner_reps == 1
    assert slow.median_ms >= 1


@contract("compare", "speedup: baseline over candidate")
@contract("compare", "Measure a candidate against a freshly measured baseline.")
def test_the_ratio_is_baseline_over_candidate(compared: ComparisonResult) -> None:
    assert compared.speedup_ci_lo <= compared.speedup <= compared.speedup_ci_hi
    assert compared.speedup < 0.7
    back = sns_gate.compare(work, lambda: work(900), device="cpu")
    assert back.speedup > 1.4


@contract("compare", "Interleaving the two sides is planned for Phase 1.")
@contract(
    "compare",
    "Both sides are timed in the same process, under the same clock policy, back to back.",
)
@contract("ComparisonResult", "A candidate measured against a baseline timed in the same session.")
def test_both_sides_are_timed_alternately_and_the_first_changes_place() -> None:
    order: list[str] = []

    def side(name: str) -> Callable[[], None]:
        def call() -> None:
            if not order or order[-1] != name:
                order.append(name)
            time.sleep(0.0012)

        return call

    sns_gate.compare(side("c"), side("b"), device="cpu", warmup=1)
    text = "".join(order)
    assert abs(text.count("b") - text.count("c")) <= 2
    # A B B A: each side runs at most two samples in a row, and so do the changes.
    assert len(order) > MIN_ITERS


def test_identical_callables_give_an_interval_that_holds_one_at_its_rate() -> None:
    rng = random.Random(4)
    hits = 0
    for _ in range(400):
        effects = [rng.gauss(0, 0.01) for _ in range(WINDOWS)]
        low, _, high = stats.mean_interval(effects, 0.0)
        hits += low <= 0 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_setup_gives_each_side_its_own_inputs_from_the_same_seed() -> None:
    seen: dict[str, list[float]] = {"b": [], "c": []}

    def inputs() -> tuple[float, int]:
        return random.random(), 5  # noqa: TID251 (the seed is what is tested)

    def side(name: str) -> Callable[[float, int], None]:
        def call(value: float, five: int) -> None:
            assert five == 5
            if value not in seen[name]:
                seen[name].append(value)

        return call

    sns_gate.compare(side("c"), side("b"), setup=inputs, device="cpu", warmup=1)
    assert seen["b"] == seen["c"]
    assert len(seen["b"]) == WINDOWS


@contract("measure", "iters must be at least MIN_ITERS (ValueError)")
def test_too_few_iterations_are_refused_with_the_number() -> None:
    with pytest.raises(ValueError, match="iters must be at least 30, got 29"):
        sns_gate.measure(work, iters=29, device="cpu")


@contract("measure", "measure() requires a CUDA device (RuntimeError)")
def test_without_a_gpu_the_default_device_is_an_error_that_names_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RuntimeError, match=r"measure\(\) requires a CUDA device.*device='cpu'"):
        sns_gate.measure(work)
    with pytest.raises(RuntimeError, match="requires a CUDA device"):
        sns_gate.compare(work, work)


@contract("measure", "the policy is applied before and restored after, however it ends")
def test_the_policy_is_restored_however_the_measurement_ends() -> None:
    policy = Recorder()
    sns_gate.measure(work, device="cpu", warmup=1, policy=policy)
    assert policy.calls == ["apply", "restore"]

    def fails() -> None:
        raise KeyError("boom")

    policy = Recorder()
    with pytest.raises(KeyError, match="boom"):
        sns_gate.measure(fails, device="cpu", policy=policy)
    assert policy.calls == ["apply", "restore"]
    policy = Recorder(fails=True)
    with pytest.raises(ClockLockError):
        sns_gate.measure(work, device="cpu", policy=policy)
    assert policy.calls == ["apply", "restore"]


@contract("ClockLockError", "Raised when a requested operating point could not be established.")
def test_a_lock_error_is_a_runtime_error() -> None:
    assert issubclass(ClockLockError, RuntimeError)


@contract(
    "TimingResult",
    "a caller must not be able to collapse this into a bare number and lose the interval",
)
def test_no_result_collapses_into_a_number(timed: TimingResult, compared: ComparisonResult) -> None:
    for result in (timed, compared):
        for name in ("__float__", "__int__", "__index__"):
            assert not hasattr(result, name)
        with pytest.raises(TypeError):
            float(result)  # type: ignore[arg-type]


@contract("TimingResult", "a timing result needs at least 2 samples (ValueError)")
def test_a_result_needs_two_samples(timed: TimingResult) -> None:
    with pytest.raises(ValidationError, match="at least 2 samples"):
        TimingResult.model_validate(timed.model_dump() | {"samples_ms": [1.0]})


@pytest.mark.parametrize(
    ("candidate", "baseline", "worse"),
    [("A", "A", "A"), ("A", "B", "B"), ("C", "A", "C"), ("B", "C", "C")],
)
@contract("ComparisonResult", "tier: A comparison is only as trustworthy as its worse half.")
@contract("TimingResult", "is_performance_valid: the tier is not C")
def test_a_comparison_is_only_as_trustworthy_as_its_worse_half(
    timed: TimingResult, candidate: str, baseline: str, worse: str
) -> None:
    halves = [timed.model_copy(update={"tier": MeasurementTier(t)}) for t in (candidate, baseline)]
    found = ComparisonResult(
        candidate=halves[0], baseline=halves[1], speedup=1, speedup_ci_lo=0.9, speedup_ci_hi=1.1
    )
    assert found.tier.value == worse
    assert found.is_performance_valid is (worse != "C")


# ------------------------------------------------------------------------- the bootstrap


def plain_bootstrap(
    samples: list[float], confidence: float, n: int, seed: int
) -> tuple[float, float]:
    """The specification's definition: percentile bootstrap of the median, drawn by ``choices``."""
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(samples, k=len(samples))) for _ in range(n))
    alpha = 1.0 - confidence
    return medians[int((alpha / 2) * n)], medians[min(n - 1, int((1 - alpha / 2) * n))]


def plain_ratio(
    c: list[float], b: list[float], confidence: float, n: int, seed: int
) -> tuple[float, float]:
    rng, ratios = random.Random(seed), []
    for _ in range(n):
        bottom = statistics.median(rng.choices(c, k=len(c)))
        ratios.append(statistics.median(rng.choices(b, k=len(b))) / bottom)
    ratios.sort()
    alpha = 1.0 - confidence
    return ratios[int((alpha / 2) * n)], ratios[min(n - 1, int((1 - alpha / 2) * n))]


@pytest.mark.parametrize("size", [2, 3, 30, 31])
@pytest.mark.parametrize("seed", [0xC0FFEE, 0, 7])
@contract("bootstrap_ci", "Percentile bootstrap CI of the median.")
@contract("bootstrap_ci", "Seeded so a given sample set always yields the same interval")
@contract("ratio_ci", "CI of speedup = median(baseline) / median(candidate).")
@contract("ratio_ci", "Resampling both sides independently propagates uncertainty from each")
def test_the_bootstrap_is_the_specifications_bit_for_bit(size: int, seed: int) -> None:
    rng = random.Random(size)
    c, b = ([rng.lognormvariate(0, 0.1) for _ in range(size + extra)] for extra in (0, 1))
    for confidence, n in ((0.95, 2000), (0.9, 333)):
        assert stats.bootstrap_ci(c, confidence, n, seed) == plain_bootstrap(c, confidence, n, seed)
        assert stats.ratio_ci(c, b, confidence, n, seed) == plain_ratio(c, b, confidence, n, seed)


def test_the_bootstrap_is_five_times_faster_than_the_plain_loop() -> None:
    rng = random.Random(1)
    c, b = ([rng.random() + 1 for _ in range(30)] for _ in range(2))

    def best(call: Callable[[], object]) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times)

    args = (0.95, 2000, 1)
    assert best(lambda: plain_bootstrap(c, *args)) > 5 * best(lambda: stats.bootstrap_ci(c, *args))
    assert best(lambda: plain_ratio(c, b, *args)) > 5 * best(lambda: stats.ratio_ci(c, b, *args))


@contract("bootstrap_ci", "bootstrap CI needs at least 2 samples (ValueError)")
@contract("ratio_ci", "at least 2 samples on each side; candidate median of zero (ValueError)")
def test_the_bootstrap_refuses_what_it_cannot_resample() -> None:
    with pytest.raises(ValueError, match="at least 2 samples"):
        stats.bootstrap_ci([1.0])
    with pytest.raises(ValueError, match="at least 2 samples on each side"):
        stats.ratio_ci([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="candidate median resampled to zero"):
        stats.ratio_ci([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="two replicates"):
        stats.mean_interval([1.0], 0.0)
    assert stats.bootstrap_ci([1.0, 1.0]) == (1.0, 1.0)
    assert all(map(math.isfinite, stats.ratio_ci([1, 2], [3, 4])))
