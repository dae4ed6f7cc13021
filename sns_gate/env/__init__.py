"""The fingerprint: what identifies toolchain and device, and nothing volatile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sns_gate.env.machine import arch_family as arch_family
    from sns_gate.env.machine import capture_fingerprint as capture_fingerprint

__all__ = ["arch_family", "capture_fingerprint"]


def __getattr__(name: str) -> object:
    """Load the coordinator's half on first use; the worker's interpreter cannot."""
    if name in __all__:
        from sns_gate.env import machine

        return getattr(machine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
