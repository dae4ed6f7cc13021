"""The half of the fingerprint that the coordinator sees: driver, GPU settings, CPU."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sns_gate.types import EnvironmentFingerprint


class GpuSettings(Protocol):
    """What the fingerprint takes from a GPU."""

    driver_version: str

    def memory_mhz(self) -> int | None:
        """Highest memory clock."""

    def power_limit_w(self) -> float | None:
        """Power limit."""

    def ecc(self) -> bool | None:
        """Whether ECC is on."""

    def mig(self) -> bool | None:
        """Whether the device is cut into instances."""

    def persistence(self) -> bool | None:
        """Whether the driver stays loaded."""


def fingerprint(
    toolchain: Mapping[str, str | int | None], gpu: GpuSettings | None
) -> EnvironmentFingerprint:
    """Join what a worker said of its toolchain with what this machine says of itself."""
    machine: dict[str, object] = {"cpu_model": cpu_model()}
    if gpu is not None:
        machine |= {
            "driver_version": gpu.driver_version,
            "memory_mhz": gpu.memory_mhz(),
            "power_limit_w": gpu.power_limit_w(),
            "ecc": gpu.ecc(),
            "mig": gpu.mig(),
            "persistence": gpu.persistence(),
        }
    return EnvironmentFingerprint.model_validate({**toolchain, **machine})


def cpu_model() -> str:
    """The processor's name as the kernel gives it, else its architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
