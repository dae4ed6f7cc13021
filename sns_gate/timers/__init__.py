"""Regions, held queues, graphs and the device's own clock; it judges nothing."""

from __future__ import annotations

from sns_gate.timers.base import Timer, seed_everything


def open_timer(device: str) -> Timer:
    """The timer of a device: ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        RuntimeError: torch is missing or cannot use the device.
    """
    if device == "cpu":
        from sns_gate.timers.cpu import CpuTimer

        return CpuTimer()
    from sns_gate.timers.cuda import CudaTimer

    return CudaTimer(device)


__all__ = ["Timer", "open_timer", "seed_everything"]
