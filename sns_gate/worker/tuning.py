"""What other workers of the side chose by tuning, forgotten, so that each one chooses itself."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

#: What ``triton.autotune(cache_results=True)`` writes beside compiled kernels.
_CHOICES = "*/*.autotune.json"


def forget_tuning(environment: Mapping[str, str]) -> None:
    """Remove triton's tuning choices from the side's cache; what it compiled stays.

    Workers of a side are placed in turn, so nobody reads what is removed here.
    """
    cache = environment.get("TRITON_CACHE_DIR")
    for choice in Path(cache).glob(_CHOICES) if cache else ():
        with contextlib.suppress(OSError):
            choice.unlink()
