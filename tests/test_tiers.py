"""Evidence and tiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate import tiers
from sns_gate.tiers import reason_names, tier_of
from sns_gate.types import Block, CpuEvidence, GpuEvidence, MeasurementTier
from tests.contract import contract

A, B, C = MeasurementTier.A, MeasurementTier.B, MeasurementTier.C
ORDER = [A, B, C]
BITS = [1 << n for n in range(12)]


def gpu(**changes: object) -> GpuEvidence:
    base = GpuEvidence(
        nvml_mhz=(1980, 1980), reasons=0, counters_ms={"sw_thermal": 0.0}, other_processes=0
    )
    return base.model_copy(update=changes)


def block(
    clocks: list[float | None], evidence: GpuEvidence | None = None, cpu: CpuEvidence | None = None
) -> Block:
    count = len(clocks)
    return Block(
        placement=0, baseline_worker=0, candidate_worker=0, settling=0,
        sides=("bccb" * count)[:count], ms=(1.0,) * count, device_mhz=tuple(clocks),
        held_us=(None,) * count, log_speedup=0.0, gpu=evidence, cpu=cpu,
    )  # fmt: skip


def tier(*blocks: Block, locked_mhz: float | None = None) -> tuple[MeasurementTier, list[str]]:
    found, reasons, _ = tier_of(blocks, locked_mhz=locked_mhz, expects_gpu=True, expects_nvml=True)
    return found, [reason.code for reason in reasons]


STEADY: list[float | None] = [1500.0, 1501.0, 1499.0, 1500.0] * 6


@contract("Measurement tiers", "B: Clocks floating; variance measured and disclosed")
def test_floating_clocks_with_their_variance_measured_are_tier_b() -> None:
    assert tier(block(STEADY, gpu())) == (B, [])


@contract("MeasurementTier", "A: clocks locked and verified stable.")
@contract("Measurement tiers", "A: Clocks pinned, verified held under load, range ≤ 30 MHz")
def test_pinned_clocks_seen_held_are_tier_a() -> None:
    assert tier(block(STEADY, gpu()), locked_mhz=1500) == (A, [])


def test_a_pinned_clock_that_moves_is_not_tier_a() -> None:
    moved = [*STEADY, *[1540.0] * 24]
    assert tier(block(moved, gpu()), locked_mhz=1500) == (B, ["clock-not-held"])


def test_a_clock_pinned_elsewhere_than_it_runs_is_not_tier_a() -> None:
    assert tier(block(STEADY, gpu()), locked_mhz=1530) == (B, ["clock-not-held"])


def test_noise_of_single_readings_does_not_cost_tier_a() -> None:
    noisy: list[float | None] = [1500.0 + 20 * (-1) ** i for i in range(24)]
    assert tier(block(noisy, gpu()), locked_mhz=1500)[0] is A


@pytest.mark.parametrize("bit", [tiers.HW_SLOWDOWN, tiers.HW_THERMAL, tiers.POWER_BRAKE, 0x400])
@contract("MeasurementTier", "C: unstable or throttled. No performance verdict is valid.")
@contract("Measurement tiers", "C: Clock CV > 3%, or throttling detected")
@contract("Why throttle flags alone aren't enough", "They miss throttling that never stops.")
def test_hardware_throttling_and_unknown_bits_are_tier_c(bit: int) -> None:
    assert tier(block(STEADY, gpu(reasons=bit))) == (C, ["throttled"])


@pytest.mark.parametrize("name", ["hw_thermal", "power_brake", "sw_thermal"])
def test_a_counter_that_advanced_between_the_readings_is_tier_c(name: str) -> None:
    assert tier(block(STEADY, gpu(counters_ms={name: 0.5}))) == (C, ["throttled"])


def test_a_stuck_software_thermal_bit_alone_is_no_throttling() -> None:
    assert tier(block(STEADY, gpu(reasons=tiers.SW_THERMAL))) == (B, [])


def test_the_power_cap_is_disclosed_and_excludes_tier_a() -> None:
    capped = block(STEADY, gpu(reasons=tiers.POWER_CAP))
    assert tier(capped) == (B, ["power-capped"])
    assert tier(capped, locked_mhz=1500) == (B, ["power-capped"])


@contract("Why throttle flags alone aren't enough", "They miss variance that isn't throttling.")
def test_an_unstable_clock_is_tier_c() -> None:
    wild: list[float | None] = [1500.0, 1500.0, 1700.0, 1700.0] * 6
    assert tier(block(wild, gpu())) == (C, ["clock-unstable"])


def test_a_clock_that_drifts_between_blocks_alone_is_tier_b() -> None:
    slow: list[float | None] = [1300.0] * 24
    assert tier(block(STEADY, gpu()), block(slow, gpu())) == (B, [])


def test_another_process_on_the_gpu_is_tier_c() -> None:
    assert tier(block(STEADY, gpu(other_processes=1))) == (C, ["gpu-shared"])


def test_without_counters_tier_a_is_out_of_reach() -> None:
    assert tier(block(STEADY, gpu(counters_ms={})), locked_mhz=1500)[0] is B


def test_nvml_that_never_answered_is_disclosed() -> None:
    found, reasons, _ = tier_of(
        [block(STEADY)], locked_mhz=1500, expects_gpu=True, expects_nvml=False
    )
    assert (found, [reason.code for reason in reasons]) == (B, ["nvml-unseen"])


def test_a_block_with_some_readings_missing_is_lost_evidence() -> None:
    assert tier(block([*STEADY[:-1], None], gpu())) == (C, ["clock-evidence-lost"])


def test_processes_that_cannot_be_listed_are_disclosed() -> None:
    assert tier(block(STEADY, gpu(other_processes=None))) == (B, ["contention-unseen"])


def test_lost_evidence_is_tier_c() -> None:
    assert tier(block(STEADY, gpu()), block(STEADY, None)) == (C, ["nvml-lost"])
    assert tier(block([None] * 24, gpu())) == (C, ["clock-evidence-lost"])


@given(
    bits=st.lists(st.sampled_from(BITS), max_size=3),
    locked=st.booleans(),
    lost=st.sampled_from(["gpu", "clock", "processes"]),
)
@contract(
    "Measurement tiers",
    "Tiers are assigned from observed telemetry, never assumed, and never silently upgraded.",
)
def test_losing_evidence_never_strengthens_a_tier(
    bits: list[int], *, locked: bool, lost: str
) -> None:
    full = block(STEADY, gpu(reasons=sum(set(bits))))
    weaker = {
        "gpu": full.model_copy(update={"gpu": None}),
        "clock": full.model_copy(update={"device_mhz": (None,) * 24}),
        "processes": full.model_copy(
            update={"gpu": gpu(reasons=sum(set(bits)), other_processes=None)}
        ),
    }[lost]
    mhz = 1500.0 if locked else None
    before, after = tier(full, locked_mhz=mhz)[0], tier(weaker, locked_mhz=mhz)[0]
    assert ORDER.index(after) >= ORDER.index(before)


def test_on_the_cpu_tier_b_is_the_best_and_says_so() -> None:
    quiet = CpuEvidence(steal_pct=0, throttled_ms=0, involuntary_switches=0)
    found, reasons, evidence = tier_of(
        [block([None] * 24, cpu=quiet)], locked_mhz=None, expects_gpu=False, expects_nvml=False
    )
    assert found is B
    assert [reason.code for reason in reasons] == ["no-clock-evidence"]
    assert evidence.clock_source == "none"


@pytest.mark.parametrize(
    ("steal", "throttled", "switches", "code"),
    [(60, 0, 0, "cpu-stolen"), (0, 900, 0, "cpu-throttled"), (0, 0, 50, "cpu-contended")],
)
def test_a_cpu_taken_away_is_tier_c(
    steal: float, throttled: float, switches: int, code: str
) -> None:
    taken = CpuEvidence(steal_pct=steal, throttled_ms=throttled, involuntary_switches=switches)
    found, reasons, _ = tier_of(
        [block([None] * 24, cpu=taken)], locked_mhz=None, expects_gpu=False, expects_nvml=False
    )
    assert found is C
    assert code in [reason.code for reason in reasons]


def test_event_reasons_have_names_and_unknown_ones_numbers() -> None:
    assert reason_names(0x1) == ()
    assert reason_names(0x4 | 0x8) == ("software power cap", "hardware slowdown")
    assert reason_names(0x400) == ("unknown 0x400",)
