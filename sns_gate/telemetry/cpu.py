"""What the kernel counts of CPU time taken from us: steal, quota, pressure, other processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from sns_gate.types import CpuEvidence, GpuEvidence


@dataclass(frozen=True)
class _Reading:
    at_s: float
    steal_s: float
    busy_s: float
    total_s: float
    throttled_s: float
    pressure_s: float | None
    own_s: float


class CpuObserver:
    """Reads the kernel's counters around a block.

    Args:
        pids: the processes that are ours besides this one.
    """

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        self._pids = pids
        self._before: _Reading | None = None

    def before(self) -> None:
        """Take the readings that later ones are compared with."""
        self._before = self._read()

    def after(self) -> tuple[GpuEvidence | None, CpuEvidence | None]:
        """What changed since ``before``."""
        first, last = self._before, self._read()
        if first is None:
            return None, None
        wall_s = max(last.at_s - first.at_s, 1e-9)
        total_s = last.total_s - first.total_s
        others_s = (last.busy_s - first.busy_s) - (last.own_s - first.own_s)
        pressure_ms = None
        if first.pressure_s is not None and last.pressure_s is not None:
            pressure_ms = round(1e3 * (last.pressure_s - first.pressure_s), 3)
        return None, CpuEvidence(
            steal_pct=round(100 * (last.steal_s - first.steal_s) / total_s, 2) if total_s else 0.0,
            throttled_ms=round(1e3 * (last.throttled_s - first.throttled_s), 3),
            pressure_ms=pressure_ms,
            other_load_pct=round(100 * max(0.0, others_s) / wall_s, 1),
            involuntary_switches=0,
        )

    def _read(self) -> _Reading:
        times = psutil.cpu_times()
        steal = getattr(times, "steal", 0.0)
        idle = times.idle + getattr(times, "iowait", 0.0)
        # Guest time is counted in user time already.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return _Reading(
            at_s=time.monotonic(),
            steal_s=steal,
            busy_s=total - idle - steal,
            total_s=total,
            throttled_s=_throttled_s(),
            pressure_s=_pressure_s(),
            own_s=sum(_cpu_s(pid) for pid in (os.getpid(), *self._pids())),
        )


def _cpu_s(pid: int) -> float:
    with contextlib.suppress(psutil.Error):
        used = psutil.Process(pid).cpu_times()
        return float(used.user + used.system)
    return 0.0


def _pressure_s() -> float | None:
    """Total time that some process waited for a CPU, None where the kernel does not count it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        first = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    return None


def _throttled_s() -> float:
    """Time for which this process's cgroup was stopped by its quota (cgroup v2)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        name = Path("/proc/self/cgroup").read_text(encoding="utf-8").rpartition("::")[2].strip()
        counters = Path(f"/sys/fs/cgroup{name}/cpu.stat").read_text(encoding="ascii")
        for line in counters.splitlines():
            key, _, value = line.partition(" ")
            if key == "throttled_usec":
                return int(value) / 1e6
    return 0.0
