"""The CUDA timer over a torch of a few numbers: what it asks for and gives back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from sns_gate.protocol import Recipe
from sns_gate.timers import cuda
from tests.fake_torch import Device, fake_torch

CLOCK_S = 0.05


class Kernels:
    """The two kernels; the clock's keeps the device busy, and the other holds nothing."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def launch_clock(self, _: object) -> None:
        """Keep it busy."""
        self._device.busy_s = CLOCK_S

    def clock_mhz(self) -> float:
        """As it is."""
        return 1980.0

    def hold(self, _: object) -> AbstractContextManager[None]:
        """Hold nothing."""
        return nullcontext()

    def held_ns(self) -> int:
        """It held nothing."""
        return 0


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def timer(device: Device, monkeypatch: pytest.MonkeyPatch) -> cuda.CudaTimer:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(device))
    monkeypatch.setattr(cuda, "DeviceKernels", lambda: Kernels(device))
    return cuda.CudaTimer("cuda")


def test_a_placement_that_has_ended_keeps_nothing_of_the_device(
    timer: cuda.CudaTimer, device: Device
) -> None:
    timer.begin(1)
    inputs = device.empty(1 << 30)
    timer.arrange([lambda: None], Recipe("cold"))
    del inputs
    timer.end()
    assert (device.allocated_bytes, device.cached_bytes) == (0, 0)


@pytest.mark.parametrize("spare_bytes", [0, 1 << 20])
def test_the_peak_is_what_was_asked_for_whatever_blocks_it_came_to_lie_in(
    timer: cuda.CudaTimer, device: Device, spare_bytes: int
) -> None:
    device.spare_bytes = spare_bytes
    held = device.empty(5 << 20)
    timer.begin(1)
    inputs = device.empty(3 << 20)
    timer.reset_peak()
    output = device.empty(1 << 20)
    del output
    assert timer.peak_bytes() == 4 << 20
    del inputs, held


@pytest.mark.parametrize(
    ("call", "mode", "to_capture", "capturable"),
    [
        (lambda device: device.random, "auto", True, True),
        (lambda device: device.wait, "auto", True, False),
        (lambda device: device.wait, "warm", False, None),
    ],
)
def test_a_call_is_captured_where_that_is_of_use_and_can_be(
    timer: cuda.CudaTimer,
    device: Device,
    call: Callable[[Device], Callable[[], None]],
    mode: str,
    *,
    to_capture: bool,
    capturable: bool | None,
) -> None:
    measured = timer.calibrate(call(device), mode, to_capture=to_capture)
    assert measured.capturable is capturable
    assert ("graph" in device.launched) is (capturable is True)
    device.random()


@pytest.mark.parametrize("busy_s", [0.0, 2 * CLOCK_S])
def test_what_runs_on_behind_a_region_is_late_and_the_clock_is_not(
    timer: cuda.CudaTimer, device: Device, busy_s: float
) -> None:
    def call() -> None:
        device.busy_s = busy_s

    timer.begin(1)
    timer.arrange([call], Recipe("cold", held=False))
    sample = timer.sample()
    timer.end()
    assert sample.device_mhz == 1980.0
    assert sample.late_ns is not None
    assert (sample.late_ns > 1e9 * CLOCK_S) is (busy_s > 0)
    assert sample.wall_ns > 1e9 * CLOCK_S
