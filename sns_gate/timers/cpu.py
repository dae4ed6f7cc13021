"""Regions on the CPU by the monotonic clock, the garbage collector off."""

from __future__ import annotations

import gc
import itertools
import random
import resource
from collections.abc import Sequence

# Bound before the code under test is imported, which may put another in its place.
from time import perf_counter_ns, process_time_ns, thread_time_ns

from sns_gate.protocol import Calibrated, Recipe, Sampled
from sns_gate.timers.base import Call

_PADDING_BYTES = 1 << 20
_CALIBRATION_NS = 20_000_000
_CALIBRATION_CALLS = 1_000_000
#: Share of a sample from which on other threads of the process count as its call's.
_OWN_THREADS = 0.01


class CpuTimer:
    """Times repeated calls on the CPU; there is no cache to flush and no clock to read."""

    device = "cpu"

    def __init__(self) -> None:
        self.step_ns = _clock_step_ns()
        self._padding: list[bytearray] = []
        self._calls: Sequence[Call] = ()
        self._recipe = Recipe("loop")

    def begin(self, padding_seed: int) -> None:
        """Collect garbage and shift the heap by random padding."""
        gc.collect()
        rng = random.Random(padding_seed)
        self._padding = [bytearray(rng.randrange(64, _PADDING_BYTES)) for _ in range(8)]
        del self._padding[:: rng.choice((2, 3))]

    def allocated_bytes(self) -> int:
        """Nobody counts on the CPU."""
        return 0

    def reset_peak(self) -> None:
        """Nobody counts on the CPU."""

    def peak_bytes(self) -> None:
        """Nobody counts on the CPU."""

    def wait(self) -> None:
        """Calls on the CPU are over when they return."""

    def calibrate(self, call: Call, mode: str, *, to_capture: bool = True) -> Calibrated:
        """Repeat the call for some 20 ms and take the fastest of three mean times."""
        del mode, to_capture
        once = self._loop(call, 1)
        repeats = max(1, min(_CALIBRATION_CALLS, _CALIBRATION_NS // 4 // max(once, 1)))
        call_ns = min(self._loop(call, repeats) / repeats for _ in range(3))
        return Calibrated(
            call_ns=call_ns,
            enqueue_ns=0.0,
            hold_expired=False,
            capturable=None,
            empty_ns=self._loop(_nothing, 1000) / 1000,
            cache_bytes=0,
            input_bytes=0,
            warm_ns=call_ns,
        )

    def arrange(self, calls: Sequence[Call], recipe: Recipe) -> None:
        """Remember what to repeat."""
        self._calls, self._recipe = calls, recipe

    def sample(self) -> Sampled:
        """Time the regions one after the other and return the mean time a call."""
        call, recipe = self._calls[0], self._recipe
        switches, threads_ns = _involuntary_switches(), _other_threads_ns()
        start = perf_counter_ns()
        total = sum(self._loop(call, recipe.calls) for _ in range(recipe.regions))
        wall_ns = perf_counter_ns() - start
        # Threads of the call's own take turns on the worker's cores, which is nobody else's work.
        turns = _other_threads_ns() - threads_ns > _OWN_THREADS * wall_ns
        return Sampled(
            call_ns=max(total, 1) / (recipe.calls * recipe.regions),
            device_mhz=None,
            held_ns=None,
            wall_ns=wall_ns,
            involuntary=0 if turns else _involuntary_switches() - switches,
        )

    def end(self) -> int:
        """Drop the calls and the padding."""
        self._calls, self._padding = (), []
        return 0

    @staticmethod
    def _loop(call: Call, repeats: int) -> int:
        collecting = gc.isenabled()
        gc.disable()
        try:
            start = perf_counter_ns()
            for _ in itertools.repeat(None, repeats):
                call()
            return perf_counter_ns() - start
        finally:
            if collecting:
                gc.enable()


def _nothing() -> None:
    pass


def _involuntary_switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _other_threads_ns() -> int:
    """CPU time of this process's other threads, those that have ended included."""
    return process_time_ns() - thread_time_ns()


def _clock_step_ns() -> float:
    """The smallest advance of the monotonic clock that can be seen."""
    steps = []
    for _ in range(50):
        start = perf_counter_ns()
        while (now := perf_counter_ns()) == start:
            pass
        steps.append(now - start)
    return float(min(steps))
