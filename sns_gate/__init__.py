"""A performance regression gate for GPU code; importing it loads nothing heavy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sns_gate.discovery import benchmark as benchmark

_LAZY = {"benchmark": "sns_gate.discovery"}

__all__ = ["__version__", "benchmark"]


def __getattr__(name: str) -> object:
    """Resolve a public name on first use (PEP 562)."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what can be reached, loaded or not."""
    return sorted({*globals(), *_LAZY})
