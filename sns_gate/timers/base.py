"""What the worker needs of a timer, whatever the device."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from sns_gate.protocol import Calibrated, Recipe, Sampled

Call = Callable[[], object]


def seed_everything(seed: int) -> None:
    """Seed every random generator that is loaded, so that all sides draw the same data."""
    random.seed(seed)
    if "numpy" in sys.modules:
        with contextlib.suppress(AttributeError):
            sys.modules["numpy"].random.seed(seed % 2**32)
    if "torch" in sys.modules:
        with contextlib.suppress(AttributeError):
            sys.modules["torch"].manual_seed(seed)


class Timer(Protocol):
    """Times calls on one device. A placement lies between ``begin`` and ``end``."""

    device: str
    step_ns: float

    def begin(self, padding_seed: int) -> None:
        """Empty the allocator's cache and pad, so that the next allocations land elsewhere."""

    def allocated_bytes(self) -> int:
        """Memory now allocated on the device, 0 where nobody counts."""

    def reset_peak(self) -> None:
        """Count the peak of memory from now on."""

    def peak_bytes(self) -> int | None:
        """Peak of what this placement has taken of the device's memory; None: nobody counts."""

    def wait(self) -> None:
        """Return when the device has nothing left to do."""

    def calibrate(self, call: Call, mode: str, *, to_capture: bool = True) -> Calibrated:
        """Measure one placed call well enough to choose a recipe, which may be to capture it."""

    def arrange(self, calls: Sequence[Call], recipe: Recipe) -> None:
        """Get ready to sample these calls by this recipe."""

    def sample(self) -> Sampled:
        """Take one sample as arranged."""

    def end(self) -> int:
        """Free what the placement took; return its peak in bytes."""
