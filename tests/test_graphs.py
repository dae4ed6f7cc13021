"""Calls that cannot be captured leave torch as it was, so that later cases of the worker work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sns_gate.timers.graphs import capture
from tests.fake_torch import Device, fake_torch


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def torch(device: Device) -> Any:  # noqa: ANN401 (it stands for a module)
    return fake_torch(device)


def raises() -> None:
    raise ValueError("not while capturing")


def test_calls_that_can_be_captured_are(device: Device, torch: Any) -> None:  # noqa: ANN401
    graph = capture(torch, [device.random, device.random])
    graph.replay()
    assert device.launched == ["random", "random", "graph"]
    assert (device.stream, device.open_pools) == ("default", set())


@pytest.mark.parametrize(
    ("call", "error"), [(lambda device: device.wait, RuntimeError), (lambda _: raises, ValueError)]
)
def test_a_failed_capture_leaves_stream_generator_and_cache_as_they_were(
    device: Device,
    torch: Any,  # noqa: ANN401
    call: Callable[[Device], Callable[[], None]],
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        capture(torch, [call(device)])
    assert device.stream == "default"
    device.random()
    device.cached_bytes = 1
    torch.cuda.empty_cache()
    assert device.cached_bytes == 0


def test_a_device_that_is_lost_during_a_capture_is_said_and_not_what_came_of_mending(
    device: Device,
    torch: Any,  # noqa: ANN401
) -> None:
    def lose() -> None:
        device.invalid = True
        torch.empty = raise_again
        raise RuntimeError("an illegal memory access was encountered")

    def raise_again(*_: object, **__: object) -> None:
        raise RuntimeError("again")

    with pytest.raises(RuntimeError, match="previous error during capture"):
        capture(torch, [lose])
