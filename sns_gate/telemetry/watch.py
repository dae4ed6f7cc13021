"""Event reasons and counters around the windows of one measurement in this process."""

from __future__ import annotations

from sns_gate.telemetry.sampler import ClockSampler
from sns_gate.tiers import DISQUALIFYING, DISQUALIFYING_COUNTERS, POWER_CAP


class Watch:
    """What NVML said before and after each window.

    Args:
        sampler: of the device, None where there is none.

    Attributes:
        bits: event reasons seen at any time.
        answered: NVML gave reasons at every reading.
        advanced_ns: how far each cumulative counter moved inside windows.
    """

    def __init__(self, sampler: ClockSampler | None) -> None:
        self._sampler = sampler
        self.bits = 0
        self.answered = sampler is not None and sampler.available
        self.advanced_ns: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        """Read reasons and counters before a window."""
        self._before = self._read()

    def end(self) -> None:
        """Read them after it."""
        for name, value in self._read().items():
            if name in self._before:
                moved = value - self._before[name]
                self.advanced_ns[name] = self.advanced_ns.get(name, 0) + moved

    @property
    def throttled(self) -> tuple[str, ...]:
        """What fired: bits that disqualify, or counters that advanced."""
        bits = (f"0x{self.bits & DISQUALIFYING:x}",) if self.bits & DISQUALIFYING else ()
        return (*bits, *(n for n in DISQUALIFYING_COUNTERS if self.advanced_ns.get(n, 0) > 0))

    @property
    def power_capped(self) -> bool:
        """Whether the power limit held the clock down."""
        return bool(self.bits & POWER_CAP) or self.advanced_ns.get("sw_power_cap", 0) > 0

    def _read(self) -> dict[str, int]:
        gpu = self._sampler.gpu if self._sampler else None
        reasons = gpu.reasons() if gpu else None
        if gpu is None or reasons is None:
            self.answered = False
            return {}
        self.bits |= reasons
        return gpu.counters_ns()
