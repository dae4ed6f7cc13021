"""Shares a check's time out between its cases."""

from __future__ import annotations

import threading
import time


class Deadlines:
    """Shares the budget out: each case may use what those before it left, evenly divided.

    Args:
        budget_s: for all cases.
        cases: that there are.
        at_once: cases that are measured at the same time.
    """

    def __init__(self, budget_s: float, cases: int, at_once: int = 1) -> None:
        self._end_s = time.monotonic() + budget_s
        self._left = cases
        self._at_once = at_once
        self._lock = threading.Lock()

    def next(self) -> float:
        """The monotonic time after which the next case adds no placement."""
        with self._lock:
            now = time.monotonic()
            share_s = max(0.0, self._end_s - now) * self._at_once / max(self._left, 1)
            self._left -= 1
        return min(now + share_s, max(now, self._end_s))
