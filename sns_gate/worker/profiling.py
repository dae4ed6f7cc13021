"""Takes a call apart by a profiler: kernels on a GPU, operators and functions on the CPU."""

from __future__ import annotations

import cProfile
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sns_gate.protocol import PartSeen, Profiled, ProfileSeen
from sns_gate.timers import Timer

_ENOUGH_NS, _MOST_CALLS = 20_000_000, 32
_FEWEST_ON_GPU = 12
_MOST_PARTS = 60
_CALL = "sns_gate.call"
_NO_KERNELS = ("Memcpy", "Memset")
#: Host and device times of a profile may be apart by this; calls lie further apart than twice that.
_SKEW_US, _APART_S = 300.0, 0.001

Call = Callable[[], object]
#: Name, calls and microseconds of what ran in all profiled calls together.
Row = tuple[str, int, float]


def profile(call: Call, timer: Timer) -> Profiled:
    """Profile a warm call in every way that this device and what is loaded allow."""
    start = time.perf_counter_ns()
    call()
    timer.wait()
    took_ns = max(1, time.perf_counter_ns() - start)
    calls = max(1, min(_MOST_CALLS, _ENOUGH_NS // took_ns))
    torch = sys.modules.get("torch")
    found: list[ProfileSeen] = []
    if torch is not None and timer.device != "cpu":
        found.append(_kernels(torch, call, timer, max(calls, _FEWEST_ON_GPU)))
    elif torch is not None:
        found.append(_operators(torch, call, calls))
    if timer.device == "cpu":
        found.append(_functions(call, calls))
    return Profiled(tuple(found))


def _kernels(torch: Any, call: Call, timer: Timer, calls: int) -> ProfileSeen:  # noqa: ANN401
    """Kernels and copies by their own time on the device, and the gaps between them."""
    activity = torch.profiler.ProfilerActivity

    def marked() -> None:
        for _ in range(calls):
            time.sleep(_APART_S)
            with torch.profiler.record_function(_CALL):
                call()
                timer.wait()
        # What lies outside of the profile by the device's clock is dropped.
        time.sleep(_APART_S)

    taken, _ = _taken(torch, (activity.CPU, activity.CUDA), marked)
    on_device = torch.autograd.DeviceType.CUDA
    events = list(taken.events())
    spans = sorted(_span(e) for e in events if e.name == _CALL and e.device_type != on_device)
    around = [(begin - _SKEW_US, end + _SKEW_US) for begin, end in spans]
    ran = [
        (e.name, *_span(e))
        for e in events
        if e.device_type == on_device and not getattr(e, "is_user_annotation", False)
        and e.name != _CALL
    ]  # fmt: skip
    return seen_kernels(ran, around)


def _taken(
    torch: Any,  # noqa: ANN401
    activities: Sequence[Any],
    work: Callable[[], None],
) -> tuple[Any, float]:
    """A second profile of some work, which the first has warmed up, and microseconds it took."""
    with warnings.catch_warnings():
        # Where code under test makes errors of warnings, torch's of how it keeps events is one.
        warnings.simplefilter("ignore")
        with torch.profiler.profile(activities=list(activities)):
            work()
        with torch.profiler.profile(activities=list(activities)) as taken:
            start = time.perf_counter_ns()
            work()
            took_us = (time.perf_counter_ns() - start) / 1e3
    return taken, took_us


def _span(event: Any) -> tuple[float, float]:  # noqa: ANN401
    return event.time_range.start, event.time_range.end


def seen_kernels(
    ran: Sequence[tuple[str, float, float]], spans: Sequence[tuple[float, float]]
) -> ProfileSeen:
    """What ran on a device, by call.

    Args:
        ran: name, start and end in microseconds of everything on the device.
        spans: start and end of each call on the host, which waited for the device.
    """
    gaps_us = 0.0
    launches = []
    inside: list[tuple[str, float, float]] = []
    for begin, end in spans:
        own = sorted((row for row in ran if begin <= row[1] <= end), key=lambda row: row[1])
        inside += own
        launches.append(sum(not name.startswith(_NO_KERNELS) for name, _, _ in own))
        gaps_us += _idle_us([(start, stop) for _, start, stop in own])
    rows = [(name, 1, stop - start) for name, start, stop in inside]
    count = max(1, len(spans))
    return ProfileSeen("kernels", _parts(rows, count), gaps_us / count, tuple(launches), choices())


def _idle_us(spans: Sequence[tuple[float, float]]) -> float:
    """Time between the first span's start and the last one's end in which none ran."""
    idle = 0.0
    until = spans[0][1] if spans else 0.0
    for start, stop in spans:
        idle += max(0.0, start - until)
        until = max(until, stop)
    return idle


def _operators(torch: Any, call: Call, calls: int) -> ProfileSeen:  # noqa: ANN401
    """Torch's operators by their own time on the CPU."""

    def work() -> None:
        for _ in range(calls):
            call()

    taken, took_us = _taken(torch, (torch.profiler.ProfilerActivity.CPU,), work)
    rows = [
        (event.key, event.count, event.self_cpu_time_total)
        for event in taken.key_averages()
        if "::" in event.key  # what is none is the profiler's own, or a wait
    ]
    outside_us = max(0.0, took_us - sum(us for _, _, us in rows)) / calls
    return ProfileSeen("operators", _parts(rows, calls), outside_us, (), choices())


def _functions(call: Call, calls: int) -> ProfileSeen:
    """Python functions by their own time."""
    taken = cProfile.Profile()
    taken.enable()
    for _ in range(calls):
        call()
    taken.disable()
    rows: list[Row] = []
    for entry in taken.getstats():
        name = _function_name(entry.code)
        if "_lsprof.Profiler" not in name:
            rows.append((name, entry.callcount, 1e6 * entry.inlinetime))
    return ProfileSeen("functions", _parts(rows, calls), 0.0, (), ())


def _function_name(code: Any) -> str:  # noqa: ANN401 (a code object, or a builtin's text)
    if isinstance(code, str):
        return code.strip("<>")
    inside = [
        os.path.relpath(code.co_filename, folder)
        for folder in sys.path
        if folder and code.co_filename.startswith(os.path.join(folder, ""))  # noqa: PTH118
    ]
    file = min(inside, key=len, default=code.co_filename)
    return f"{file}:{getattr(code, 'co_qualname', code.co_name)}"


def _parts(rows: Iterable[Row], calls: int) -> tuple[PartSeen, ...]:
    """Rows of one name as one part, by call, the longest first and the many short ones as one."""
    counts: dict[str, int] = {}
    times: dict[str, float] = {}
    for name, count, us in rows:
        counts[name] = counts.get(name, 0) + count
        times[name] = times.get(name, 0.0) + us
    parts = sorted(
        (PartSeen(name, counts[name] / calls, times[name] / calls) for name in counts),
        key=lambda part: -part.us,
    )
    return tuple(parts[:_MOST_PARTS])


def choices() -> tuple[str, ...]:
    """What Triton's autotuners in the loaded modules have settled on."""
    return tuple(sorted(set(_choices())))


def _choices() -> Iterator[str]:
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if type(value).__name__ != "Autotuner":
                continue
            chosen = getattr(value, "best_config", None)
            if chosen is not None:
                kernel = getattr(getattr(value, "base_fn", value), "__name__", "a kernel")
                yield f"{kernel}: {chosen}"[:300]
