"""The sentences of the specification, in its order, and the marker by which tests quote them.

``docs/contract.md`` is written from this list and the marked tests by
``python -m tests.contract``; a test holds that every sentence has a test and the page is current.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "contract.md"

#: Heading and sentence; a signature or a raised error stands in the place of a sentence.
CONTRACT: tuple[tuple[str, str], ...] = (
    ("measure", "measure(fn, *, warmup, iters, device, flush_l2, policy, min_duration_us)"),
    ("measure", "Time a callable honestly."),
    ("measure", "Returns an interval and a quality tier, never a bare number."),
    ("measure", "Folding between-window variance into Tier B intervals is planned for Phase 1."),
    ("measure", "iters must be at least MIN_ITERS (ValueError)"),
    ("measure", "measure() requires a CUDA device (RuntimeError)"),
    ("measure", "the policy is applied before and restored after, however it ends"),
    ("compare", "compare(candidate_fn, baseline_fn, **kwargs)"),
    ("compare", "Measure a candidate against a freshly measured baseline."),
    (
        "compare",
        "Both sides are timed in the same process, under the same clock policy, back to back.",
    ),
    ("compare", "The baseline is never read from cache"),
    ("compare", "Interleaving the two sides is planned for Phase 1."),
    ("compare", "speedup: baseline over candidate"),
    ("compare", "a side measured 0 ms (ValueError)"),
    ("TimingResult", "samples_ms, median_ms, p10_ms, p90_ms, ci95_lo_ms, ci95_hi_ms, n, tier, …"),
    (
        "TimingResult",
        "a caller must not be able to collapse this into a bare number and lose the interval",
    ),
    ("TimingResult", "a timing result needs at least 2 samples (ValueError)"),
    ("TimingResult", "is_performance_valid: the tier is not C"),
    (
        "ComparisonResult",
        "A candidate measured against a baseline timed in the same session.",
    ),
    ("ComparisonResult", "tier: A comparison is only as trustworthy as its worse half."),
    ("MeasurementTier", "A: clocks locked and verified stable."),
    ("MeasurementTier", "B: clocks floating, variance measured and folded into the interval."),
    ("MeasurementTier", "C: unstable or throttled. No performance verdict is valid."),
    (
        "EnvironmentFingerprint",
        "Identifies the toolchain and device a run happened on.",
    ),
    (
        "EnvironmentFingerprint",
        "Two runs are only comparable when their fingerprints match exactly.",
    ),
    (
        "UnlockedClockPolicy",
        "Measure without pinning. Honest, and the only option on most machines.",
    ),
    (
        "LockedClockPolicy",
        "Pin the SM clock, and optionally the power cap, verifying by readback.",
    ),
    (
        "LockedClockPolicy",
        "Leaving it applied after a loud failure silently pins the GPU for everything after.",
    ),
    (
        "ClockLockError",
        "Raised when a requested operating point could not be established.",
    ),
    ("assign_tier", "Classify a measurement window."),
    ("assign_tier", "Throttle flags alone are not sufficient"),
    ("assign_tier", "Observed variance is the governing signal."),
    ("bootstrap_ci", "Percentile bootstrap CI of the median."),
    ("bootstrap_ci", "Seeded so a given sample set always yields the same interval"),
    ("bootstrap_ci", "bootstrap CI needs at least 2 samples (ValueError)"),
    ("ratio_ci", "CI of speedup = median(baseline) / median(candidate)."),
    ("ratio_ci", "Values above 1.0 mean the candidate is faster."),
    ("ratio_ci", "Resampling both sides independently propagates uncertainty from each"),
    ("ratio_ci", "at least 2 samples on each side; candidate median of zero (ValueError)"),
    ("percentile", "Linear-interpolated percentile. p is in [0, 1]."),
    ("cv_percent", "Coefficient of variation as a percentage. 0.0 for a zero mean."),
    ("capture_fingerprint", "capture_fingerprint(device_index=0) -> EnvironmentFingerprint"),
    ("arch_family", "arch_family(compute_cap) -> str | None"),
    ("ClockSampler", "Samples SM clock and throttle state cheaply, or not at all."),
    (
        "ClockSampler",
        "If NVML is unavailable we collect NO clock evidence rather than collecting bad evidence.",
    ),
    (
        "ClockSampler",
        "Tier A requires clock evidence, so a host without NVML can never reach it.",
    ),
    (
        "ClockSampler.throttled_now",
        "True if any throttle reason other than 'GpuIdle' is currently set.",
    ),
    (
        "Measurement tiers",
        "Every result carries a tier recording how much it can be trusted.",
    ),
    (
        "Measurement tiers",
        "Tiers are assigned from observed telemetry, never assumed, and never silently upgraded.",
    ),
    ("Measurement tiers", "A: Clocks pinned, verified held under load, range ≤ 30 MHz"),
    ("Measurement tiers", "B: Clocks floating; variance measured and disclosed"),
    ("Measurement tiers", "C: Clock CV > 3%, or throttling detected"),
    (
        "The problem tiers solve",
        "Measure the variance, classify it, and put the classification next to every number.",
    ),
    ("Why throttle flags alone aren't enough", "They miss variance that isn't throttling."),
    ("Why throttle flags alone aren't enough", "They miss throttling that never stops."),
    (
        "Reaching Tier A",
        "Tier A requires a LockedClockPolicy that successfully pinned the clocks",
    ),
    ("Reaching Tier A", "The exit code proves nothing; only the readback does."),
    (
        "Reaching Tier A",
        "apply() restores the device and raises ClockLockError rather than proceeding.",
    ),
    (
        "No telemetry, no Tier A",
        "When NVML is unavailable, no clock samples are collected at all",
    ),
    (
        "Power headroom matters",
        "draw enough power and the card throttles regardless of what you asked for",
    ),
    (
        "Current status",
        "The first Tier A host should re-verify both paths end to end",
    ),
)


class Departure(NamedTuple):
    """Where the gate does otherwise than the specification, and why."""

    heading: str
    says: str
    does: str
    why: str


DEPARTURES: tuple[Departure, ...] = (
    Departure(
        "measure",
        "one window of `iters` samples, its interval a bootstrap over them",
        "six windows; the interval is a t interval over window medians, one timer step at least",
        "between-window spread is what the specification planned to add: it exceeds the "
        "spread inside a window many times over",
    ),
    Departure(
        "measure",
        "one region a sample, however short",
        "regions add up to 1 ms a sample, held until all of them are enqueued",
        "a shorter region, or one that the GPU reaches before the host has enqueued it, times the "
        "host",
    ),
    Departure(
        "compare",
        "the candidate first, then the baseline; independent bootstrap",
        "alternating pairs in balanced order; a t interval over windows of the median log ratio",
        "the sequential form called identical code different in a quarter to all of its runs",
    ),
    Departure(
        "TimingResult",
        "`clock_range_mhz` is the range of single NVML readings",
        "the range of means of 8 consecutive readings of the device's own clock",
        "NVML's reading is 100 ms old; a single device reading has 1 to 5 MHz of noise and a raw "
        "range grows with their number",
    ),
    Departure(
        "TimingResult",
        "`throttle_fired` for any active reason",
        "not for the software power cap, nor a software thermal flag whose counter stands still",
        "the cap is the normal state of a heavy kernel (disclosed, tier B at best) and stuck flags "
        "exist",
    ),
    Departure(
        "EnvironmentFingerprint",
        "eight fields, `torch_version` required",
        "further fields (cuBLAS, cuDNN, memory clock, power limit, ECC, MIG, persistence, CPU, "
        "Python); `torch_version` may be absent",
        "they change speed too; a worker may have no torch",
    ),
    Departure(
        "LockedClockPolicy",
        "`nvidia-smi` without a device, verified by an idle reading, power limit left changed",
        "NVML on one UUID, journalled, verified under load on the device, power limit set back, "
        "given back by a supervisor after any death",
        "without a device it changes every GPU; an idle device may read low; a lock outlives the "
        "process that made it",
    ),
    Departure(
        "ClockSampler",
        "`device` is an NVML index",
        "`device` is torch's index, found in NVML by its UUID",
        "the two orders differ under CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER",
    ),
    Departure(
        "Measurement tiers",
        "clock CV over all samples of a window",
        "for a comparison, the root mean square of the CVs inside windows or blocks",
        "the ratio is formed inside them, so only that variation can touch it",
    ),
)


def contract(heading: str, sentence: str) -> pytest.MarkDecorator:
    """Mark a test as the one that holds a sentence of the specification."""
    assert (heading, sentence) in CONTRACT, f"the contract has no '{sentence}' under '{heading}'"
    return pytest.mark.contract(heading, sentence)


def quoted() -> dict[tuple[str, str], list[str]]:
    """The tests that quote each sentence, as ``file::test``, read from the sources."""
    found: dict[tuple[str, str], list[str]] = {sentence: [] for sentence in CONTRACT}
    for path in sorted(TESTS.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for quote in map(_quote, node.decorator_list):
                    if quote is not None:
                        found[quote].append(f"{path.name}::{node.name}")
    return found


def _quote(decorator: ast.expr) -> tuple[str, str] | None:
    if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)):
        return None
    if decorator.func.id != "contract":
        return None
    heading, sentence = map(ast.literal_eval, decorator.args)
    return heading, sentence


def render() -> str:
    """The page."""
    lines = [
        "# The contract and its tests",
        "",
        "sns-gate grew out of a specification: an API reference and a page on measurement tiers.",
        "Each sentence of it stands here beside the tests that hold it, and below is every point",
        "where the gate does otherwise, with the reason. This page is written by",
        "`python -m tests.contract`.",
        "",
        "| heading | sentence | test |",
        "|---|---|---|",
    ]
    for (heading, sentence), tests in quoted().items():
        names = "<br>".join(f"[`{t.partition('::')[2]}`](../tests/{t.partition('::')[0]})"
                            for t in tests)  # fmt: skip
        lines.append(f"| {heading} | {sentence.replace('|', chr(92) + '|')} | {names} |")
    lines += ["", "## Departures", "", "| heading | the specification | sns-gate | why |"]
    lines.append("|---|---|---|---|")
    lines += [f"| {d.heading} | {d.says} | {d.does} | {d.why} |" for d in DEPARTURES]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
