"""A performance regression gate for GPU code; importing it loads nothing heavy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sns_gate import clocks as clocks
    from sns_gate import env as env
    from sns_gate import stats as stats
    from sns_gate import telemetry as telemetry
    from sns_gate.benchmarks import benchmark as benchmark
    from sns_gate.timing import compare as compare
    from sns_gate.timing import measure as measure
    from sns_gate.types import ComparisonResult as ComparisonResult
    from sns_gate.types import EnvironmentFingerprint as EnvironmentFingerprint
    from sns_gate.types import MeasurementTier as MeasurementTier
    from sns_gate.types import TimingResult as TimingResult

_LAZY = {
    "ComparisonResult": "sns_gate.types",
    "EnvironmentFingerprint": "sns_gate.types",
    "MeasurementTier": "sns_gate.types",
    "TimingResult": "sns_gate.types",
    "benchmark": "sns_gate.benchmarks",
    "compare": "sns_gate.timing",
    "measure": "sns_gate.timing",
}
_MODULES = ("clocks", "env", "stats", "telemetry")

__all__ = ["__version__", *_LAZY, *_MODULES]  # noqa: PLE0604 (resolved lazily below)


def __getattr__(name: str) -> object:
    """Resolve a public name on first use (PEP 562)."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"sns_gate.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what can be reached, loaded or not."""
    return sorted({*globals(), *_LAZY, *_MODULES})
