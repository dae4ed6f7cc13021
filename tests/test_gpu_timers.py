"""Timers on a real CUDA device; nothing here runs without one."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest

from sns_gate.protocol import Recipe
from sns_gate.timers.cuda import CudaTimer
from sns_gate.timers.driver import HOLD_LIMIT_NS
from sns_gate.worker.digests import digest_tensor

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def timer() -> CudaTimer:
    torch = pytest.importorskip("torch")
    assert torch.cuda.is_available(), "these tests are asked for by 'make test-gpu' alone"
    return CudaTimer("cuda")


@pytest.fixture
def torch(timer: CudaTimer) -> Any:  # noqa: ANN401 (torch is not imported at module level)
    return timer._torch


def stream(timer: CudaTimer) -> int:
    return int(timer._torch.cuda.current_stream().cuda_stream)


def test_a_hold_ends_by_its_limit_when_nobody_opens_it(timer: CudaTimer) -> None:
    timer._kernels.launch_hold(stream(timer))
    start = time.perf_counter_ns()
    timer.wait()
    assert time.perf_counter_ns() - start < 2 * HOLD_LIMIT_NS
    assert timer._kernels.held_ns() >= HOLD_LIMIT_NS


def test_a_hold_ends_when_it_is_opened(timer: CudaTimer) -> None:
    with timer._kernels.hold(stream(timer)):
        time.sleep(0.005)
    timer.wait()
    assert 4_000_000 < timer._kernels.held_ns() < HOLD_LIMIT_NS / 2


def test_the_device_clock_is_steady_and_plausible(timer: CudaTimer) -> None:
    readings = []
    for _ in range(100):
        timer._kernels.launch_clock(stream(timer))
        timer.wait()
        readings.append(timer._kernels.clock_mhz() or 0.0)
    assert 200 < statistics.fmean(readings) < 4000
    assert statistics.stdev(readings) < 0.02 * statistics.fmean(readings)


def test_holding_keeps_the_hosts_time_out_of_a_short_region(timer: CudaTimer) -> None:
    empty = [timer._pair_ns(None, flush=False) for _ in range(10)]
    assert statistics.median(empty) < 5_000


def test_a_short_call_costs_less_in_a_graph_than_launched(timer: CudaTimer, torch: Any) -> None:  # noqa: ANN401
    x = torch.randn(256, 256, device="cuda")
    timer.begin(1)
    calls = [lambda: x + 1]
    measured = timer.calibrate(calls[0], "auto")
    assert measured.capturable
    timer.arrange(calls, Recipe("graph", calls=200, regions=2, held=True))
    in_graph = statistics.median(timer.sample().call_ns for _ in range(5))
    timer.arrange(calls, Recipe("cold", regions=20, held=True, batch=20))
    launched = statistics.median(timer.sample().call_ns for _ in range(5))
    timer.end()
    assert in_graph < launched


def test_a_call_that_synchronises_is_seen_and_not_held(timer: CudaTimer, torch: Any) -> None:  # noqa: ANN401
    x = torch.randn(1024, 1024, device="cuda")
    timer.begin(1)
    measured = timer.calibrate(lambda: (x @ x).sum().item(), "auto")
    timer.end()
    assert measured.hold_expired
    assert measured.capturable is False
    # A capture that failed leaves torch as it was.
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.randn(1, device="cuda")
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < 1 << 30


def test_a_cold_call_takes_longer_than_a_warm_one_where_inputs_fit_the_cache(
    timer: CudaTimer,
    torch: Any,  # noqa: ANN401
) -> None:
    x = torch.randn(4 << 20, device="cuda")
    timer.begin(1)
    call = lambda: torch.add(x, 1, out=x)  # noqa: E731
    timer.arrange([call], Recipe("cold", regions=20, held=True, batch=20))
    cold = statistics.median(timer.sample().call_ns for _ in range(5))
    timer.arrange([call], Recipe("warm", calls=20, held=True))
    warm = statistics.median(timer.sample().call_ns for _ in range(5))
    timer.end()
    assert cold > 1.2 * warm


def test_a_placement_lands_at_other_addresses_and_leaves_nothing(
    timer: CudaTimer,
    torch: Any,  # noqa: ANN401
) -> None:
    addresses, before = set(), torch.cuda.memory_allocated()
    for seed in range(4):
        timer.begin(seed)
        x = torch.empty(1 << 20, device="cuda")
        addresses.add(x.data_ptr())
        del x
        timer.end()
    assert len(addresses) > 1
    assert torch.cuda.memory_allocated() == before


def test_the_peak_of_a_call_is_its_inputs_and_what_it_makes(timer: CudaTimer, torch: Any) -> None:  # noqa: ANN401
    timer.begin(1)
    x = torch.zeros((5 << 20) // 4, device="cuda")
    x + 1
    timer.reset_peak()
    x + 1
    timer.wait()
    assert timer.peak_bytes() == 10 << 20
    del x
    timer.end()
    assert torch.cuda.memory_reserved() < 1 << 30


def test_an_output_is_digested_on_the_device_whatever_bit_differs(torch: Any) -> None:  # noqa: ANN401
    generator = torch.Generator("cuda").manual_seed(1)
    for count in (3, 1 << 20, (4 << 20) + 5):
        one = torch.randint(0, 256, (count,), dtype=torch.uint8, device="cuda", generator=generator)
        before, state = digest_tensor(one, 7), torch.cuda.get_rng_state()
        assert digest_tensor(one.clone(), 7) == before != digest_tensor(one, 8)
        for at in (0, count // 2, count - 1):
            one[at] ^= 128
            assert digest_tensor(one, 7) != before, at
            one[at] ^= 128
        assert torch.equal(torch.cuda.get_rng_state(), state)
    halves = torch.randn(1000, device="cuda").bfloat16()
    assert digest_tensor(halves, 7) == digest_tensor(halves.clone(), 7)
