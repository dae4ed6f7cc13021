"""Regions on a CUDA device by events, the queue held or the calls captured in a graph."""

from __future__ import annotations

import contextlib
import gc
import math
import random
import resource
import statistics
from collections.abc import Sequence

# Bound before the code under test is imported, which may put another in its place.
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from sns_gate.protocol import SHORT_CALL_PAIRS, Calibrated, Recipe, Sampled
from sns_gate.timers.base import Call
from sns_gate.timers.driver import HOLD_LIMIT_NS, DeviceKernels
from sns_gate.timers.graphs import capture

if TYPE_CHECKING:
    import torch

#: CUDA events tick every 32 ns on Hopper.
EVENT_STEP_NS = 32.0
_FLUSH_CACHES = 4
_MIN_FLUSH_BYTES = 64 << 20
_PADDING_PIECES = 4
_MAX_PADDING_BYTES = 32 << 20
_PADDING_STEP = 512
_CALIBRATION_REGIONS = 5
_WARM_CALLS = 20
_EMPTY_PAIRS = 20
_CAPTURE_WITHIN = 10


class CudaTimer:
    """Times calls on one CUDA device with torch's events on its current stream."""

    def __init__(self, device: str) -> None:
        import torch

        self._torch = torch
        if not torch.cuda.is_available():
            raise RuntimeError(
                "torch cannot use a CUDA device here, so nothing can be timed on one; install a "
                "torch built for this driver, or use --device cpu"
            )
        self.device = device if ":" in device else "cuda:0"
        torch.cuda.set_device(torch.device(self.device))
        torch.empty(1, device=self.device)
        self.step_ns = EVENT_STEP_NS
        properties = torch.cuda.get_device_properties(self.device)
        self.uuid = str(properties.uuid)
        self.cache_bytes = int(properties.L2_cache_size)
        self._kernels = DeviceKernels()
        # Likewise: an event's class is the code under test's to patch.
        self._event = torch.cuda.Event
        self._record, self._elapsed_ms = self._event.record, self._event.elapsed_time
        self._wait_for = self._event.synchronize
        self._synchronize = torch.cuda.synchronize
        self._current_stream = torch.cuda.current_stream
        self._flush_bytes = max(_FLUSH_CACHES * self.cache_bytes, _MIN_FLUSH_BYTES)
        self._padding: list[torch.Tensor] = []
        self._flush: torch.Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._calls: Sequence[Call] = ()
        self._recipe = Recipe("cold")
        self._events: list[tuple[Any, Any]] = []
        self._before_bytes = 0

    def begin(self, padding_seed: int) -> None:
        """Empty the allocator's cache and pad, so that the next allocations land elsewhere."""
        torch = self._torch
        gc.collect()
        self._synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self._before_bytes = self._bytes("current")
        rng = random.Random(padding_seed)
        sizes = [
            _PADDING_STEP * rng.randrange(1, _MAX_PADDING_BYTES // _PADDING_STEP)
            for _ in range(_PADDING_PIECES)
        ]
        self._padding = [torch.empty(size, dtype=torch.uint8, device=self.device) for size in sizes]

    def allocated_bytes(self) -> int:
        """Memory that torch has allocated on the device."""
        return int(self._torch.cuda.memory_allocated())

    def reset_peak(self) -> None:
        """Count the peak of what torch has allocated from now on."""
        self._torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self) -> int:
        """Peak of what was asked of torch since then for this placement, padding left out."""
        flush = 0 if self._flush is None else self._flush.numel()
        own = sum(piece.numel() for piece in self._padding) + flush
        return max(0, self._bytes("peak") - self._before_bytes - int(own))

    def _bytes(self, kind: str) -> int:
        """What tensors asked for; what they were given depends on which blocks lay free."""
        stats = self._torch.cuda.memory_stats()
        asked = stats.get(f"requested_bytes.all.{kind}")  # 0 where an allocator does not count it
        return int(asked or stats.get(f"allocated_bytes.all.{kind}", 0))

    def wait(self) -> None:
        """Wait for all streams of the device."""
        self._synchronize()

    def calibrate(self, call: Call, mode: str, *, to_capture: bool = True) -> Calibrated:
        """Time one cold and several warm calls, their enqueuing, and try to capture the call."""
        self._make_flush()
        # The host's interruptions add to a pair and never take away.
        empty_ns = min(self._pair_ns(None, flush=False) for _ in range(_EMPTY_PAIRS))
        cold = [self._pair_ns(call, flush=True) for _ in range(_CALIBRATION_REGIONS)]
        expired = self._kernels.held_ns() >= HOLD_LIMIT_NS
        enqueue_ns = self._enqueue_ns(call)
        warm_ns = self._warm_ns(call, held=not expired)
        call_ns = warm_ns if mode == "warm" else statistics.median(cold)
        # The other side's call may be the short one, and both must be captured then.
        short = call_ns < _CAPTURE_WITHIN * SHORT_CALL_PAIRS * empty_ns
        tried = to_capture and (short or mode == "warm")
        return Calibrated(
            call_ns=call_ns,
            enqueue_ns=enqueue_ns,
            hold_expired=expired,
            capturable=self._can_capture(call) if tried else None,
            empty_ns=empty_ns,
            cache_bytes=self.cache_bytes,
            input_bytes=0,
            warm_ns=warm_ns,
        )

    def arrange(self, calls: Sequence[Call], recipe: Recipe) -> None:
        """Allocate events and the flush buffer, or capture the graph, before any sample."""
        self._calls, self._recipe, self._graph = calls, recipe, None
        self._events = [
            (self._event(enable_timing=True), self._event(enable_timing=True))
            for _ in range(recipe.regions)
        ]
        if recipe.mode == "cold":
            self._make_flush()
        if recipe.mode in ("graph", "warm-graph"):
            turns = [calls[i % len(calls)] for i in range(recipe.calls)]
            self._graph = capture(self._torch, turns)
            self._graph.replay()
        self._synchronize()

    def sample(self) -> Sampled:
        """Time the regions in batches, each enqueued whole behind a held queue."""
        recipe = self._recipe
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        stream = self._current_stream().cuda_stream
        held: list[int] = []
        late_ns = 0
        collecting = gc.isenabled()
        gc.disable()
        start = perf_counter_ns()
        try:
            for first in range(0, recipe.regions, recipe.batch):
                last = min(first + recipe.batch, recipe.regions)
                hold = self._kernels.hold(stream) if recipe.held else contextlib.nullcontext()
                with hold:
                    for region in range(first, last):
                        self._enqueue_region(region)
                self._wait_for(self._events[last - 1][1])
                ended = perf_counter_ns()
                self._synchronize()
                late_ns = perf_counter_ns() - ended
                held.append(self._kernels.held_ns() if recipe.held else 0)
            # Not sooner: how much of it is late would depend on when the host looks.
            self._kernels.launch_clock(stream)
            self._synchronize()
        finally:
            if collecting:
                gc.enable()
        wall_ns = perf_counter_ns() - start
        total_ns = 1e6 * math.fsum(self._elapsed_ms(begin, end) for begin, end in self._events)
        return Sampled(
            call_ns=total_ns / (recipe.regions * recipe.calls),
            device_mhz=self._kernels.clock_mhz(),
            held_ns=float(sum(held)) if recipe.held else None,
            wall_ns=wall_ns,
            involuntary=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
            hold_expired=any(ns >= HOLD_LIMIT_NS for ns in held),
            late_ns=late_ns,
        )

    def end(self) -> int:
        """Drop graph, events, buffers and padding; return the placement's peak in bytes."""
        self._synchronize()
        peak_bytes = self.peak_bytes()
        self._graph, self._flush = None, None
        self._calls, self._events, self._padding = (), [], []
        # Whoever waits for its next turn keeps nothing from the other workers of the device.
        self._torch.cuda.empty_cache()
        return peak_bytes

    def _enqueue_region(self, region: int) -> None:
        begin, end = self._events[region]
        if self._graph is not None:
            self._record(begin)
            self._graph.replay()
            self._record(end)
            return
        if self._recipe.mode == "cold" and self._flush is not None:
            self._flush.zero_()
        call = self._calls[region % len(self._calls)]
        self._record(begin)
        for _ in range(self._recipe.calls):
            call()
        self._record(end)

    def _make_flush(self) -> None:
        if self._flush is None:
            self._flush = self._torch.empty(
                self._flush_bytes, dtype=self._torch.uint8, device=self.device
            )

    def _pair_ns(self, call: Call | None, *, flush: bool) -> float:
        """Device time between two events around one call, held; around nothing without one."""
        begin, end = (self._event(enable_timing=True) for _ in range(2))
        with self._kernels.hold(self._current_stream().cuda_stream):
            if flush and self._flush is not None:
                self._flush.zero_()
            self._record(begin)
            if call is not None:
                call()
            self._record(end)
        self._synchronize()
        return float(self._elapsed_ms(begin, end)) * 1e6

    def _enqueue_ns(self, call: Call) -> float:
        begin = self._event(enable_timing=True)
        times = []
        for _ in range(_CALIBRATION_REGIONS):
            start = perf_counter_ns()
            if self._flush is not None:
                self._flush.zero_()
            self._record(begin)
            call()
            self._record(begin)
            times.append(perf_counter_ns() - start)
            self._synchronize()
        return float(statistics.median(times))

    def _warm_ns(self, call: Call, *, held: bool) -> float:
        begin, end = (self._event(enable_timing=True) for _ in range(2))
        stream = self._current_stream().cuda_stream
        with self._kernels.hold(stream) if held else contextlib.nullcontext():
            self._record(begin)
            for _ in range(_WARM_CALLS):
                call()
            self._record(end)
        self._synchronize()
        return float(self._elapsed_ms(begin, end)) * 1e6 / _WARM_CALLS

    def _can_capture(self, call: Call) -> bool:
        try:
            capture(self._torch, [call]).replay()
            self._synchronize()
        except Exception:  # noqa: BLE001 (code under test may raise anything where it is captured)
            # The error that a failed capture leaves behind would be the next call's.
            with contextlib.suppress(RuntimeError):
                self._synchronize()
            return False
        return True
