"""Shares a check's time out between its cases."""

from __future__ import annotations

import time


class Deadlines:
    """Shares the budget out: each case may use what those before it left, evenly divided."""

    def __init__(self, budget_s: float, cases: int) -> None:
        self._end_s = time.monotonic() + budget_s
        self._left = cases

    def next(self) -> float:
        """The monotonic time after which the next case adds no placement."""
        now = time.monotonic()
        share_s = max(0.0, self._end_s - now) / max(self._left, 1)
        self._left -= 1
        return now + share_s
