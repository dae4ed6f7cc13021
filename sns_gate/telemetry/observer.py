"""Evidence around a block on a GPU: what changed between two readings of NVML and the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from sns_gate.telemetry.census import Foreigners
from sns_gate.telemetry.cpu import CpuObserver
from sns_gate.telemetry.nvml import Gpu
from sns_gate.types import CpuEvidence, GpuEvidence


@dataclass(frozen=True)
class _Reading:
    mhz: int | None
    reasons: int | None
    counters_ns: dict[str, int]


class GpuObserver:
    """Reads NVML and the kernel's counters around a block.

    Args:
        gpu: the device, None where NVML does not answer.
        cpu: the observer of the CPU.
        foreigners: tells other processes on the device from ours.
    """

    def __init__(self, gpu: Gpu | None, cpu: CpuObserver, foreigners: Foreigners) -> None:
        self._gpu, self._cpu, self._foreigners = gpu, cpu, foreigners
        self._before: _Reading | None = None

    def before(self) -> None:
        """Take the readings that later ones are compared with."""
        self._cpu.before()
        self._before = self._read()

    def after(self) -> tuple[GpuEvidence | None, CpuEvidence | None]:
        """What changed since ``before``; no GPU evidence where clock or reasons are silent."""
        last, (_, cpu) = self._read(), self._cpu.after()
        first, gpu = self._before, self._gpu
        if gpu is None or first is None or last is None:
            return None, cpu
        if first.mhz is None or last.mhz is None or first.reasons is None or last.reasons is None:
            return None, cpu
        advanced = {
            name: round((value - first.counters_ns[name]) / 1e6, 3)
            for name, value in last.counters_ns.items()
            if name in first.counters_ns
        }
        return GpuEvidence(
            nvml_mhz=(first.mhz, last.mhz),
            reasons=first.reasons | last.reasons,
            counters_ms=advanced,
            power_w=gpu.power_w(),
            temperature_c=gpu.temperature_c(),
            other_processes=self._foreigners.now(gpu),
        ), cpu

    def _read(self) -> _Reading | None:
        if self._gpu is None:
            return None
        return _Reading(self._gpu.sm_mhz(), self._gpu.reasons(), self._gpu.counters_ns())
