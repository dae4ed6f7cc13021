"""What NVML and the kernel say of the machine; it reads, never writes, and never times."""

from sns_gate.telemetry.cpu import CpuObserver
from sns_gate.telemetry.nvml import Gpu, GpuObserver, nvidia_driver_present, open_gpu

__all__ = ["CpuObserver", "Gpu", "GpuObserver", "nvidia_driver_present", "open_gpu"]
