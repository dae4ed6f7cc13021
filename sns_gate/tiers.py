"""From evidence to a tier, never upgraded and never assumed; it reads no device."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sns_gate.stats import cv_percent
from sns_gate.types import SIDES, Block, CaseEvidence, GpuEvidence, MeasurementTier, Reason

TIER_A_RANGE_MHZ = 30.0
TIER_C_CV_PCT = 3.0
#: How far a held clock may be from the pinned one.
LOCK_TOLERANCE_MHZ = 15.0
CLOCK_MEAN_OF = 8
#: On the CPU: the share of a case's time that others may take before no verdict is given.
TIER_C_STEAL_PCT = 25.0
TIER_C_THROTTLED_SHARE = 0.25
#: Involuntary context switches a sample: more, and the longer side is preempted more often.
TIER_C_SWITCHES = 1.0

IDLE, USER_CLOCKS, POWER_CAP, HW_SLOWDOWN = 0x1, 0x2, 0x4, 0x8
SYNC_BOOST, SW_THERMAL, HW_THERMAL, POWER_BRAKE, DISPLAY = 0x10, 0x20, 0x40, 0x80, 0x100
EVENT_REASONS = {
    IDLE: "idle",
    USER_CLOCKS: "application or user clocks",
    POWER_CAP: "software power cap",
    HW_SLOWDOWN: "hardware slowdown",
    SYNC_BOOST: "sync boost",
    SW_THERMAL: "software thermal slowdown",
    HW_THERMAL: "hardware thermal slowdown",
    POWER_BRAKE: "hardware power brake",
    DISPLAY: "display clock setting",
}
DISQUALIFYING = HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE
DISQUALIFYING_COUNTERS = ("hw_thermal", "power_brake", "sw_thermal")


@dataclass
class _Finding:
    """What the evidence adds up to while it is read."""

    against: list[Reason] = field(default_factory=list)
    disclosed: list[Reason] = field(default_factory=list)
    allows_a: bool = True

    def disqualify(self, code: str, text: str) -> None:
        self.against.append(Reason(code=code, text=text))

    def disclose(self, code: str, text: str) -> None:
        self.disclosed.append(Reason(code=code, text=text))


def tier_of(
    blocks: Sequence[Block], *, locked_mhz: float | None, expects_gpu: bool, expects_nvml: bool
) -> tuple[MeasurementTier, tuple[Reason, ...], CaseEvidence]:
    """The tier of a case with every reason for or beside it.

    Args:
        blocks: all blocks of the case.
        locked_mhz: the clock that a policy pinned, None where the clocks float.
        expects_gpu: the case ran on a GPU, so device clocks must be there.
        expects_nvml: NVML answered when the check began, so its silence is lost evidence.
    """
    finding = _Finding()
    clocks = _read_clocks(blocks, finding, expects_gpu=expects_gpu)
    bits = _read_gpu(blocks, finding, expects_gpu=expects_gpu, expects_nvml=expects_nvml)
    steal, throttled = _read_cpu(blocks, finding, expects_gpu=expects_gpu)
    evidence = CaseEvidence(
        clock_source="device" if clocks else "none",
        clock_mean_mhz=clocks.mean_mhz if clocks else None,
        clock_cv_pct=clocks.cv_pct if clocks else None,
        clock_range_mhz=clocks.range_mhz if clocks else None,
        reasons=reason_names(bits),
        counters_ms=_total_counters(blocks),
        steal_pct=steal,
        throttled_ms=throttled,
    )
    if finding.against:
        return MeasurementTier.C, (*finding.against, *finding.disclosed), evidence
    held = clocks is not None and _held(clocks, locked_mhz, finding)
    tier = MeasurementTier.A if held and finding.allows_a else MeasurementTier.B
    return tier, tuple(finding.disclosed), evidence


def _held(clocks: _Clocks, locked_mhz: float | None, finding: _Finding) -> bool:
    """Whether the device's own clock, under load, is the pinned one."""
    if locked_mhz is None:
        return False
    near = abs(clocks.mean_mhz - locked_mhz) <= LOCK_TOLERANCE_MHZ
    if near and clocks.range_mhz <= TIER_A_RANGE_MHZ:
        return True
    finding.disclose(
        "clock-not-held",
        f"{locked_mhz:.0f} MHz was pinned and the device ran at {clocks.mean_mhz:.0f} MHz within "
        f"{clocks.range_mhz:.0f} MHz; tier A allows {LOCK_TOLERANCE_MHZ:.0f} MHz off and a range "
        f"of {TIER_A_RANGE_MHZ:.0f} MHz",
    )
    return False


def assign_tier(
    locked: bool,  # noqa: FBT001 (the specification's signature)
    clock_samples: Sequence[float],
    throttle_fired: bool,  # noqa: FBT001 (likewise)
) -> MeasurementTier:
    """Classify one measurement window, by the specification's rules.

    Throttle flags alone are not enough: a clock can swing by hundreds of MHz while they are
    silent, so the observed variation governs.

    Args:
        locked: whether a policy pinned the clocks and read them back.
        clock_samples: clock readings in MHz; without any, tier A cannot be reached.
        throttle_fired: whether throttling was seen at any time.
    """
    if throttle_fired:
        return MeasurementTier.C
    if clock_samples and cv_percent(clock_samples) > TIER_C_CV_PCT:
        return MeasurementTier.C
    if locked and clock_samples and max(clock_samples) - min(clock_samples) <= TIER_A_RANGE_MHZ:
        return MeasurementTier.A
    return MeasurementTier.B


def reason_names(bits: int) -> tuple[str, ...]:
    """Clock event reasons by name, in bit order; unknown bits by number. Idle is left out."""
    names = [name for bit, name in EVENT_REASONS.items() if bits & bit and bit != IDLE]
    unknown = bits & ~sum(EVENT_REASONS)
    return (*names, f"unknown 0x{unknown:x}") if unknown else tuple(names)


@dataclass(frozen=True)
class _Clocks:
    mean_mhz: float
    cv_pct: float
    range_mhz: float


def _read_clocks(
    blocks: Sequence[Block], finding: _Finding, *, expects_gpu: bool
) -> _Clocks | None:
    sides = {side: [block.clocks(side) for block in blocks] for side in SIDES}
    readings = [value for columns in sides.values() for column in columns for value in column]
    complete = all(
        len(block.clocks(side)) == len(block.counted(side)) for block in blocks for side in SIDES
    )
    if not expects_gpu:
        return None
    if not readings or not complete:
        finding.disqualify(
            "clock-evidence-lost", "the device clock could not be read in every block"
        )
        return None
    # The ratio is formed inside blocks, so only the variation inside blocks can touch it.
    worst = max(_rms([cv_percent(c) for c in columns]) for columns in sides.values())
    smooth = [
        mean for columns in sides.values() for column in columns for mean in rolling_means(column)
    ]
    clocks = _Clocks(statistics.fmean(readings), worst, max(smooth) - min(smooth))
    if worst > TIER_C_CV_PCT:
        finding.disqualify(
            "clock-unstable",
            f"the device clock varied by {worst:.1f}% inside blocks, "
            f"the limit is {TIER_C_CV_PCT:.0f}%",
        )
    return clocks


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(statistics.fmean(value**2 for value in values))


def rolling_means(readings: Sequence[float]) -> list[float]:
    """Means of consecutive readings: a single one has 1 to 5 MHz of noise."""
    if len(readings) <= CLOCK_MEAN_OF:
        return [statistics.fmean(readings)]
    starts = range(len(readings) - CLOCK_MEAN_OF + 1)
    return [statistics.fmean(readings[i : i + CLOCK_MEAN_OF]) for i in starts]


def _read_gpu(
    blocks: Sequence[Block], finding: _Finding, *, expects_gpu: bool, expects_nvml: bool
) -> int:
    seen = [block.gpu for block in blocks if block.gpu is not None]
    if expects_nvml and len(seen) < len(blocks):
        finding.disqualify("nvml-lost", "NVML stopped answering during the measurement")
    if len(seen) < len(blocks) or not all(gpu.counters_ms for gpu in seen):
        finding.allows_a = False
    if expects_gpu and not seen and not expects_nvml:
        text = "NVML does not answer here, so throttling and other processes cannot be seen"
        finding.disclose("nvml-unseen", text)
    bits = 0
    for gpu in seen:
        bits |= gpu.reasons
    _read_events(bits, _total_counters(blocks), finding)
    _read_users(seen, finding)
    return bits


def _read_events(bits: int, counters: Mapping[str, float], finding: _Finding) -> None:
    unknown = bits & ~sum(EVENT_REASONS)
    fired = reason_names(bits & DISQUALIFYING | unknown)
    advanced = [name for name in DISQUALIFYING_COUNTERS if counters.get(name, 0) > 0]
    if fired:
        finding.disqualify("throttled", f"the GPU reported {', '.join(fired)}")
    elif advanced:
        finding.disqualify("throttled", f"event counters advanced: {', '.join(advanced)}")
    if bits & POWER_CAP or counters.get("sw_power_cap", 0) > 0:
        finding.allows_a = False
        text = "the power limit held the clock down, as heavy kernels do"
        finding.disclose("power-capped", text)


def _read_users(seen: Sequence[GpuEvidence], finding: _Finding) -> None:
    if any(gpu.other_processes for gpu in seen):
        text = "another process used this GPU during the measurement"
        finding.disqualify("gpu-shared", text)
    elif any(gpu.other_processes is None for gpu in seen):
        text = "other processes on this GPU could not be listed"
        finding.disclose("contention-unseen", text)


def _total_counters(blocks: Sequence[Block]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for block in blocks:
        for name, value in (block.gpu.counters_ms if block.gpu else {}).items():
            totals[name] = totals.get(name, 0.0) + value
    return totals


def _read_cpu(
    blocks: Sequence[Block], finding: _Finding, *, expects_gpu: bool
) -> tuple[float | None, float | None]:
    seen = [block.cpu for block in blocks if block.cpu is not None]
    if not seen:
        return None, None
    steal = statistics.fmean(cpu.steal_pct for cpu in seen)
    throttled = sum(cpu.throttled_ms for cpu in seen)
    if expects_gpu:
        return steal, throttled
    finding.disclose("no-clock-evidence", "no clock can be read on this device, so tier B at best")
    if steal > TIER_C_STEAL_PCT:
        finding.disqualify("cpu-stolen", f"the hypervisor took {steal:.0f}% of the CPU time")
    samples = sum(len(block.ms) - block.settling for block in blocks)
    switches = sum(cpu.involuntary_switches for cpu in seen) / max(samples, 1)
    if switches > TIER_C_SWITCHES:
        text = (
            f"other work took the CPU {switches:.1f} times a sample, so the longer side lost more"
        )
        finding.disqualify("cpu-contended", text)
    busy = sum(sum(block.ms) for block in blocks)
    if throttled > TIER_C_THROTTLED_SHARE * busy:
        finding.disqualify(
            "cpu-throttled", f"the CPU quota stopped the workers for {throttled:.0f} ms"
        )
    return steal, throttled
