"""A torch whose CUDA device is a few numbers, as far as the timer goes; failed captures as in 2.11.

What is modelled of these was read in CUDAGraph.cpp, CUDAGeneratorImpl.cpp, the caching allocator's
``release_cached_blocks`` and ``torch.cuda.graph.__exit__``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self


class Stream(str):
    """A stream by its name."""

    __slots__ = ()
    cuda_stream = 0


@dataclass
class Device:
    """What lies on the device, and in which state torch is.

    Attributes:
        stream: the current one.
        capturing: the graph under capture, None without one.
        invalid: something that no graph can hold was asked for during it.
        generator_captures: random numbers are a graph's.
        open_pools: the allocator keeps these for graphs; while there is one, no cache is emptied.
        cached_bytes: freed by tensors and kept.
        allocated_bytes: of tensors that live.
        peak_bytes: the most of them at once since the peak was reset.
        spare_bytes: that each tensor is given beyond its size, as a block that is not split has.
        launched: kernels, in their order.
        busy_s: until what was launched is done.
    """

    stream: Stream = field(default_factory=lambda: Stream("default"))
    capturing: object = None
    invalid: bool = False
    generator_captures: bool = False
    open_pools: set[object] = field(default_factory=set)
    cached_bytes: int = 0
    allocated_bytes: int = 0
    peak_bytes: int = 0
    spare_bytes: int = 0
    tensors: int = 0
    pools: int = 0
    launched: list[str] = field(default_factory=list)
    busy_s: float = 0.0

    def wait(self) -> None:
        """Wait for the device, as ``item`` and ``synchronize`` do."""
        if self.capturing is not None:
            self.invalid = True
            raise RuntimeError("operation not permitted when stream is capturing")
        time.sleep(self.busy_s)
        self.busy_s = 0.0

    def random(self) -> None:
        """Draw on the device."""
        if self.generator_captures and self.capturing is None:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
        self.launched.append("random")

    def empty(self, size: int, **_: object) -> Tensor:
        """A tensor of so many bytes, from what is cached as far as that goes."""
        self.cached_bytes = max(0, self.cached_bytes - size)
        self.allocated_bytes += size
        self.tensors += 1
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return Tensor(self, size)

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak_bytes = self.allocated_bytes

    def stats(self) -> dict[str, int]:
        """As ``torch.cuda.memory_stats`` has them."""
        spare = self.tensors * self.spare_bytes
        kinds = {"current": self.allocated_bytes, "peak": self.peak_bytes}
        return {f"requested_bytes.all.{kind}": size for kind, size in kinds.items()} | {
            f"allocated_bytes.all.{kind}": size + spare for kind, size in kinds.items()
        }

    def empty_cache(self) -> None:
        """Give back what is cached."""
        if not self.open_pools:
            self.cached_bytes = 0

    def close_pool(self, _: int, pool: object) -> None:
        """The allocator's ``endAllocateToPool``."""
        if pool not in self.open_pools:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.open_pools.remove(pool)

    def new_pool(self) -> tuple[int, int]:
        """A pool that no graph has yet."""
        self.pools += 1
        return 0, self.pools


class Tensor:
    """Bytes on the device, which go to the cache with their last owner."""

    def __init__(self, device: Device, size: int) -> None:
        self._device, self._size = device, size

    def __del__(self) -> None:
        self._device.allocated_bytes -= self._size
        self._device.tensors -= 1
        self._device.cached_bytes += self._size

    def numel(self) -> int:
        """Its elements of one byte."""
        return self._size

    def zero_(self) -> None:
        """Fill it."""
        self._device.launched.append("fill")


class Event:
    """A point in a stream's work; here all work takes no time."""

    def __init__(self, *, enable_timing: bool) -> None:
        del enable_timing

    def record(self) -> None:
        """Nothing to remember."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, _: object) -> float:
        """Milliseconds."""
        return 0.01


class _Stream:
    def __init__(self, device: Device, stream: Stream) -> None:
        self._device, self._stream, self._before = device, stream, stream

    def __enter__(self) -> None:
        self._before, self._device.stream = self._device.stream, self._stream

    def __exit__(self, *_: object) -> None:
        self._device.stream = self._before


class _Graph:
    def __init__(self, device: Device, graph: object, pool: object) -> None:
        self._device, self._graph, self._pool = device, graph, pool
        self._stream = _Stream(device, Stream("capture"))

    def __enter__(self) -> Self:
        self._device.wait()
        self._device.empty_cache()
        self._stream.__enter__()
        self._device.open_pools.add(self._pool)
        self._device.capturing, self._device.generator_captures = self._graph, True
        return self

    def __exit__(self, *error: object) -> None:
        device = self._device
        device.capturing = None
        if device.invalid:
            device.invalid = False
            raise RuntimeError("operation failed due to a previous error during capture")
        device.close_pool(0, self._pool)
        device.generator_captures = False
        self._stream.__exit__(*error)


def fake_torch(device: Device) -> Any:  # noqa: ANN401 (it stands for a module)
    """The module over this device."""
    properties = SimpleNamespace(uuid="0", L2_cache_size=60 << 20)
    cuda = SimpleNamespace(
        CUDAGraph=lambda: SimpleNamespace(replay=lambda: device.launched.append("graph")),
        Event=Event,
        graph_pool_handle=device.new_pool,
        is_available=lambda: True,
        set_device=lambda _: None,
        get_device_properties=lambda _: properties,
        current_stream=lambda: device.stream,
        stream=lambda stream: _Stream(device, stream),
        graph=lambda graph, pool: _Graph(device, graph, pool),
        current_device=lambda: 0,
        synchronize=device.wait,
        empty_cache=device.empty_cache,
        memory_allocated=lambda: device.allocated_bytes,
        memory_stats=device.stats,
        reset_peak_memory_stats=device.reset_peak,
    )
    library = SimpleNamespace(
        _cuda_endAllocateToPool=device.close_pool, _cuda_releasePool=lambda *_: None
    )
    return SimpleNamespace(
        cuda=cuda, _C=library, empty=device.empty, device=lambda name: name, uint8="uint8"
    )
