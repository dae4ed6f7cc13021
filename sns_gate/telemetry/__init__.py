"""What NVML and the kernel say of the machine; it reads, never writes, and never times."""

from sns_gate.telemetry.census import Census, Foreigners, take
from sns_gate.telemetry.cpu import CpuObserver
from sns_gate.telemetry.identity import Listed, list_gpus, uuid_of, visible_uuids
from sns_gate.telemetry.nvml import Gpu, nvidia_driver_present, open_gpu
from sns_gate.telemetry.observer import GpuObserver
from sns_gate.telemetry.sampler import ClockSampler
from sns_gate.telemetry.watch import Watch

__all__ = [
    "Census",
    "ClockSampler",
    "CpuObserver",
    "Foreigners",
    "Gpu",
    "GpuObserver",
    "Listed",
    "Watch",
    "list_gpus",
    "nvidia_driver_present",
    "open_gpu",
    "take",
    "uuid_of",
    "visible_uuids",
]
