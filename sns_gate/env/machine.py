"""The half of the fingerprint that the coordinator sees: driver, GPU settings, CPU."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sns_gate.env import toolchain
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


#: Architecture by compute capability, as NVIDIA names them.
_ARCH_BY_CAP = {
    (6, 0): "pascal", (6, 1): "pascal", (6, 2): "pascal", (7, 0): "volta", (7, 2): "volta",
    (7, 5): "turing", (8, 0): "ampere", (8, 6): "ampere", (8, 7): "ampere", (8, 9): "ada",
    (9, 0): "hopper", (10, 0): "blackwell", (10, 3): "blackwell", (11, 0): "blackwell",
    (12, 0): "blackwell", (12, 1): "blackwell",
}  # fmt: skip


def capture_fingerprint(device_index: int = 0) -> EnvironmentFingerprint:
    """The fingerprint of this process's toolchain and of one of its devices.

    Args:
        device_index: torch's index of the GPU; without one, the device is the CPU.

    Raises:
        ImportError: torch is not installed.
    """
    import torch

    from sns_gate.telemetry import open_gpu

    if not torch.cuda.is_available():
        return fingerprint(toolchain.capture("cpu"), None)
    torch.cuda.set_device(device_index)
    uuid = str(torch.cuda.get_device_properties(device_index).uuid)
    return fingerprint(toolchain.capture(f"cuda:{device_index}"), open_gpu(uuid))


def arch_family(compute_cap: str | None) -> str | None:
    """The architecture's name; None without a capability or with one that is no ``major.minor``."""
    if not compute_cap:
        return None
    try:
        major, minor = (int(part) for part in str(compute_cap).split("."))
    except ValueError:
        return None
    return _ARCH_BY_CAP.get((major, minor), f"unknown-sm{major}{minor}")


def fingerprint(
    toolchain_found: Mapping[str, str | int | None], gpu: GpuSettings | None
) -> EnvironmentFingerprint:
    """Join what a worker said of its toolchain with what this machine says of itself."""
    capability = toolchain_found.get("compute_cap")
    machine: dict[str, object] = {
        "cpu_model": cpu_model(),
        "arch_family": arch_family(None if capability is None else str(capability)),
    }
    if gpu is not None:
        machine |= {
            "driver_version": gpu.driver_version,
            "memory_mhz": gpu.memory_mhz(),
            "power_limit_w": gpu.power_limit_w(),
            "ecc": gpu.ecc(),
            "mig": gpu.mig(),
            "persistence": gpu.persistence(),
        }
    return EnvironmentFingerprint.model_validate({**toolchain_found, **machine})


def cpu_model() -> str:
    """The processor's name as the kernel gives it, else its architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
