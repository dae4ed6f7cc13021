"""The specification sentence by sentence, where no other test holds one already."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sns_gate
from sns_gate import clocks, env, stats, telemetry
from sns_gate.clocks import assign_tier
from sns_gate.types import EnvironmentFingerprint, MeasurementTier
from tests.conftest import clean_environment
from tests.contract import CONTRACT, PAGE, contract, quoted, render
from tests.fake_nvml import FakeNvml, Switch


def work() -> int:
    return sum(range(500))


def test_every_sentence_of_the_contract_has_a_test() -> None:
    missing = [sentence for sentence, tests in quoted().items() if not tests]
    assert not missing
    assert len(set(CONTRACT)) == len(CONTRACT)


def test_the_page_of_the_contract_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run python -m tests.contract"


def defaults(function: object) -> dict[str, object]:
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    return {name: p.default for name, p in parameters.items()}


@contract("measure", "measure(fn, *, warmup, iters, device, flush_l2, policy, min_duration_us)")
def test_measure_has_the_parameters_of_the_contract() -> None:
    found = defaults(sns_gate.measure)
    asked = {"warmup": 200, "iters": 30, "device": 0, "flush_l2": True, "policy": None,
             "min_duration_us": 26.0}  # fmt: skip
    assert {name: found[name] for name in asked} == asked
    kinds = inspect.signature(sns_gate.measure).parameters
    assert kinds["fn"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(kinds[name].kind is inspect.Parameter.KEYWORD_ONLY for name in asked)


@contract("compare", "compare(candidate_fn, baseline_fn, **kwargs)")
def test_compare_takes_the_candidate_first_and_what_measure_takes() -> None:
    ours, theirs = defaults(sns_gate.compare), defaults(sns_gate.measure)
    assert list(ours)[:2] == ["candidate_fn", "baseline_fn"]
    assert {k: v for k, v in ours.items() if not k.endswith("_fn")} == {
        k: v for k, v in theirs.items() if k != "fn"
    }


@contract("compare", "The baseline is never read from cache")
def test_each_comparison_times_its_baseline_anew() -> None:
    calls: list[int] = []
    for _ in range(2):
        before = len(calls)
        sns_gate.compare(work, lambda: calls.append(1), device="cpu", warmup=1)
        assert len(calls) - before >= 30


@contract("compare", "a side measured 0 ms (ValueError)")
def test_a_side_without_time_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    from sns_gate import timing

    monkeypatch.setattr(timing._Side, "median_ms", property(lambda _: 0.0))
    with pytest.raises(ValueError, match="a side measured 0 ms"):
        sns_gate.compare(work, work, device="cpu", warmup=1)


@contract(
    "EnvironmentFingerprint", "Two runs are only comparable when their fingerprints match exactly."
)
@given(st.sampled_from(sorted(EnvironmentFingerprint.model_fields)))
def test_one_field_that_differs_ends_the_match(field: str) -> None:
    one = EnvironmentFingerprint(torch_version="2.13.0")
    kind = str(EnvironmentFingerprint.model_fields[field].annotation).partition(" ")[0]
    value = {"str": "another", "int": 1, "float": 0.5, "bool": True}[kind]
    other = EnvironmentFingerprint.model_validate(one.model_dump() | {field: value})
    assert one.matches(one.model_copy())
    assert not one.matches(other)
    assert one.differences(other) == (field,)


@contract(
    "UnlockedClockPolicy", "Measure without pinning. Honest, and the only option on most machines."
)
def test_the_unlocked_policy_changes_nothing_and_claims_nothing() -> None:
    policy = clocks.UnlockedClockPolicy()
    policy.apply()
    assert policy.locked is False
    policy.restore()


STEADY = [1500.0, 1510.0, 1505.0]


@contract("assign_tier", "Classify a measurement window.")
@pytest.mark.parametrize(
    ("locked", "readings", "throttled", "tier"),
    [
        (True, STEADY, False, "A"),
        (True, [1500.0, 1531.0], False, "B"),
        (True, [1500.0, 1530.0], False, "A"),
        (True, [], False, "B"),
        (False, STEADY, False, "B"),
        (False, [], False, "B"),
        (True, STEADY, True, "C"),
    ],
)
def test_a_window_is_classified_by_lock_range_and_throttling(
    locked: bool, readings: list[float], throttled: bool, tier: str
) -> None:
    assert assign_tier(locked, readings, throttled).value == tier


@contract("assign_tier", "Throttle flags alone are not sufficient")
@contract("assign_tier", "Observed variance is the governing signal.")
def test_a_clock_that_swings_is_tier_c_though_no_flag_is_set() -> None:
    swinging = [1400.0, 1895.0] * 5
    assert stats.cv_percent(swinging) > 3
    for locked in (True, False):
        assert assign_tier(locked, swinging, throttle_fired=False) is MeasurementTier.C


@contract("ratio_ci", "Values above 1.0 mean the candidate is faster.")
def test_a_faster_candidate_has_a_ratio_above_one() -> None:
    low, high = stats.ratio_ci([1.0, 1.1, 1.0, 1.05], [2.0, 2.1, 2.2, 2.0])
    assert 1.5 < low <= high < 2.5


@contract("EnvironmentFingerprint", "Identifies the toolchain and device a run happened on.")
@contract("capture_fingerprint", "capture_fingerprint(device_index=0) -> EnvironmentFingerprint")
def test_the_fingerprint_names_toolchain_and_device() -> None:
    torch = pytest.importorskip("torch")
    found = env.capture_fingerprint()
    assert isinstance(found, EnvironmentFingerprint)
    assert found.torch_version == importlib.metadata.version("torch") == torch.__version__
    assert found.python_version
    assert found.cpu_model
    assert found.matches(env.capture_fingerprint(0)), "something in it is volatile"
    assert defaults(env.capture_fingerprint) == {"device_index": 0}


@contract("arch_family", "arch_family(compute_cap) -> str | None")
@pytest.mark.parametrize(
    ("capability", "family"),
    [("9.0", "hopper"), ("8.9", "ada"), ("7.5", "turing"), ("99.1", "unknown-sm991"),
     ("", None), (None, None), ("nonsense", None)],
)  # fmt: skip
def test_an_architecture_has_a_family_name(capability: str | None, family: str | None) -> None:
    assert env.arch_family(capability) == family


# ---------------------------------------------------- the sampler, on the fake NVML


def sampled(fake: FakeNvml) -> dict[str, Any]:
    """What a sampler says in a process of its own, and how long a thousand readings take."""
    program = """
        import json, time
        from sns_gate.telemetry import ClockSampler
        sampler = ClockSampler(0)
        start = time.perf_counter()
        for _ in range(100):
            mhz = sampler.sample_clock_mhz()
        us = (time.perf_counter() - start) * 1e4
        throttled = sampler.throttled_now()
        available = sampler.available
        sampler.shutdown()
        sampler.shutdown()
        print(json.dumps({"mhz": mhz, "throttled": throttled, "available": available, "us": us,
                          "after": sampler.sample_clock_mhz()}))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=clean_environment(**fake.environment),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contract("ClockSampler", "Samples SM clock and throttle state cheaply, or not at all.")
def test_a_sampler_reads_the_clock_in_well_under_a_millisecond(library: Path) -> None:
    found = sampled(FakeNvml(library, gpus=1))
    assert found["available"]
    assert 300 <= found["mhz"] <= 2000
    assert found["us"] < 1000
    assert found["after"] is None


@contract(
    "ClockSampler",
    "If NVML is unavailable we collect NO clock evidence rather than collecting bad evidence.",
)
@contract(
    "No telemetry, no Tier A", "When NVML is unavailable, no clock samples are collected at all"
)
def test_without_nvml_a_sampler_says_nothing() -> None:
    sampler = telemetry.ClockSampler(0)
    assert sampler.available is False
    assert sampler.sample_clock_mhz() is None
    assert sampler.throttled_now() is None
    sampler.shutdown()


@contract(
    "ClockSampler", "Tier A requires clock evidence, so a host without NVML can never reach it."
)
@given(st.booleans())
def test_without_readings_no_lock_reaches_tier_a(locked: bool) -> None:
    assert assign_tier(locked, [], throttle_fired=False) is not MeasurementTier.A


@contract(
    "ClockSampler.throttled_now",
    "True if any throttle reason other than 'GpuIdle' is currently set.",
)
@pytest.mark.parametrize(("flags", "throttled"), [(0, False), (Switch.HW_SLOWDOWN, True)])
def test_any_reason_but_idle_is_throttling_now(library: Path, flags: int, throttled: bool) -> None:
    fake = FakeNvml(library, gpus=1)
    fake.gpu(0).flags = Switch(flags)
    assert sampled(fake)["throttled"] is throttled
