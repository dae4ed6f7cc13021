"""Shares as people write them: ``2%`` is 0.02."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator


def _share(value: object) -> object:
    """Read ``2%`` as 0.02, and leave every other value to pydantic."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            return float(value.strip()[:-1]) / 100
        except ValueError:
            return value
    return value


def _memory_share(value: object) -> object:
    """As ``_share``, but a bare number above 1 is hardly meant as a hundred times as many %."""
    share = _share(value)
    if not (isinstance(value, str) and "%" in value) and _number(share) > 1:
        raise ValueError(f"write a share, such as 10% or 0.1; {value} would be {value}00%")
    return share


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0.0


Share = Annotated[float, BeforeValidator(_share)]
MemoryShare = Annotated[float, BeforeValidator(_memory_share)]
