"""One recipe for both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate.protocol import Calibrated, Recipe
from sns_gate.session.recipe import (
    LONGEST_SAMPLE_NS,
    MAX_BATCH,
    SAMPLE_NS,
    choose_recipe,
)

LONG = Calibrated(
    call_ns=200_000, enqueue_ns=80_000, hold_expired=False, capturable=None, empty_ns=1300,
    cache_bytes=60 << 20, input_bytes=32 << 20, warm_ns=190_000,
)  # fmt: skip
SHORT = replace(LONG, call_ns=6_000, warm_ns=4_000, capturable=True, input_bytes=2 << 20)


def recipe(baseline: Calibrated, candidate: Calibrated | None = None, mode: str = "auto") -> Recipe:
    return choose_recipe(baseline, candidate or baseline, mode, "cuda:0")


def test_a_long_call_is_timed_cold_one_call_a_region_behind_a_held_queue() -> None:
    assert recipe(LONG) == Recipe("cold", calls=1, regions=2, held=True, batch=2)


def test_a_short_call_is_captured_over_copies_that_exceed_the_cache() -> None:
    found = recipe(SHORT)
    assert (found.mode, found.copies) == ("graph", 60)
    assert found.calls % found.copies == 0


def test_a_short_call_whose_inputs_cannot_exceed_the_cache_is_timed_warm() -> None:
    assert recipe(replace(SHORT, input_bytes=4096)).mode == "warm-graph"
    assert recipe(replace(SHORT, input_bytes=0)).mode == "warm-graph"


def test_a_call_that_one_side_cannot_capture_is_captured_on_neither() -> None:
    assert recipe(SHORT, replace(SHORT, capturable=False)).mode == "warm"


def test_a_call_that_waits_for_the_device_is_not_held_on_either_side() -> None:
    assert not recipe(LONG, replace(LONG, hold_expired=True)).held


def test_the_shorter_side_decides_the_mode() -> None:
    assert recipe(replace(LONG, capturable=True), SHORT).mode == "graph"
    assert recipe(LONG, SHORT).mode == "cold"  # the long one was never tried for capture
    assert recipe(SHORT, LONG) == recipe(LONG, SHORT)


def test_one_side_s_disturbed_empty_pair_does_not_make_a_long_call_short() -> None:
    disturbed = replace(LONG, empty_ns=50_000, capturable=True)
    assert recipe(LONG, disturbed).mode == recipe(disturbed, LONG).mode == "cold"


@pytest.mark.parametrize("capturable", [True, False])
def test_the_slower_side_of_a_short_call_does_not_take_endless_samples(*, capturable: bool) -> None:
    slow = replace(SHORT, call_ns=400_000, warm_ns=400_000, capturable=capturable)
    found = recipe(slow, replace(SHORT, call_ns=1_300, warm_ns=64))
    assert found.mode == ("graph" if capturable else "warm")
    assert found.calls * found.regions * slow.warm_ns <= 2 * LONGEST_SAMPLE_NS


def test_a_benchmark_may_ask_for_warm_or_cold() -> None:
    assert recipe(replace(LONG, capturable=True), mode="warm").mode == "warm-graph"
    assert recipe(SHORT, mode="cold").mode == "cold"


def test_on_the_cpu_calls_are_repeated_for_two_milliseconds() -> None:
    found = choose_recipe(replace(LONG, call_ns=1000), replace(LONG, call_ns=3000), "auto", "cpu")
    assert found == Recipe("loop", calls=2000)


@pytest.mark.parametrize("mode", ["auto", "cold", "warm"])
@given(
    call_ns=st.floats(500, 1e9),
    enqueue_ns=st.floats(1e3, 1e8),
    expired=st.booleans(),
    capturable=st.sampled_from([True, False, None]),
)
def test_a_sample_totals_a_millisecond_and_a_hold_is_never_overfilled(
    mode: str, *, call_ns: float, enqueue_ns: float, expired: bool, capturable: bool | None
) -> None:
    side = replace(
        LONG, call_ns=call_ns, warm_ns=call_ns, enqueue_ns=enqueue_ns,
        hold_expired=expired, capturable=capturable,
    )  # fmt: skip
    found = recipe(side, mode=mode)
    assert found.calls * found.regions * call_ns >= SAMPLE_NS * 0.999
    assert 1 <= found.batch <= min(found.regions, MAX_BATCH)
    assert found.held is not expired
