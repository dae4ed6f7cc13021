"""Who uses a GPU: counts before and after our workers start tell ours from others, without PIDs.

In a container the list may be empty, hold numbers of another namespace, or hold only ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from sns_gate.telemetry.nvml import Gpu

#: Utilisation before our workers start that cannot be a passing reading of an idle device.
BUSY_PCT = 10


@dataclass(frozen=True)
class Census:
    """The users of a GPU at one time.

    Attributes:
        listed: processes that NVML lists, None where it does not.
        used_bytes: device memory in use, None where it is not said.
        utilisation_pct: share of the last moment in which some kernel ran, likewise.
    """

    listed: int | None
    used_bytes: int | None
    utilisation_pct: int | None


def take(gpu: Gpu | None) -> Census:
    """Count now; everything is unknown without NVML."""
    if gpu is None:
        return Census(None, None, None)
    return Census(gpu.processes(), gpu.used_bytes(), gpu.utilisation_pct())


@dataclass(frozen=True)
class Foreigners:
    """Tells other processes from ours.

    Attributes:
        before: the count before our workers started.
        own_listed: how many of ours the list shows, None where it does not show them all, so
            that it may not show others either.
    """

    before: Census
    own_listed: int | None

    @classmethod
    def between(cls, before: Census, after: Census, started: int) -> Foreigners:
        """What two counts say, with so many workers started between them."""
        if before.listed is None or after.listed is None:
            return cls(before, None)
        return cls(before, started if after.listed - before.listed >= started else None)

    def now(self, gpu: Gpu) -> int | None:
        """Other processes on the GPU now, None where they cannot be known.

        A GPU that was busy before we came is shared, even if nobody is listed.
        """
        busy = (self.before.utilisation_pct or 0) >= BUSY_PCT and not self.before.listed
        listed = gpu.processes()
        if self.own_listed is None or listed is None:
            return 1 if busy else None
        return max(0, listed - self.own_listed)
