"""The specification's sampler: one GPU's clock and throttle state through NVML, or nothing."""

from __future__ import annotations

import os

from sns_gate.telemetry.identity import uuid_of
from sns_gate.telemetry.nvml import Gpu, open_gpu, shut_down
from sns_gate.tiers import IDLE


class ClockSampler:
    """Samples clock and throttle state cheaply, or not at all.

    Where NVML does not answer, no evidence is collected rather than bad evidence, so that such a
    host never reaches tier A.

    Args:
        device: torch's index of the GPU; it is found in NVML by its UUID.

    Attributes:
        available: whether NVML answers for this device.
    """

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self._gpu: Gpu | None = None
        uuid = uuid_of(device, os.environ)
        if uuid is not None:
            self._gpu = open_gpu(uuid)
        self.available = self._gpu is not None

    @property
    def gpu(self) -> Gpu | None:
        """The device in NVML, None where it does not answer."""
        return self._gpu

    def sample_clock_mhz(self) -> float | None:
        """NVML's SM clock in MHz, up to 100 ms old; None where it is not given."""
        mhz = self._gpu.sm_mhz() if self._gpu else None
        return None if mhz is None else float(mhz)

    def throttled_now(self) -> bool | None:
        """True if any event reason other than idle is set now; None where it is not given."""
        reasons = self._gpu.reasons() if self._gpu else None
        return None if reasons is None else bool(reasons & ~IDLE)

    def shutdown(self) -> None:
        """Give NVML back; harmless when repeated."""
        if self.available:
            shut_down()
        self.available, self._gpu = False, None
