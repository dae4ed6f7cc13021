"""A search for the commit that changed a case: what is known of each commit."""

from __future__ import annotations

import math
from typing import Literal

from sns_gate.types.result import Speedup
from sns_gate.types.words import Record

Fate = Literal["like good", "like bad", "skipped"]


class Tried(Record):
    """One commit and what its check said of it."""

    commit: str
    fate: Fate
    speedup: Speedup | None = None
    why: str = ""


class Bisection(Record):
    """A bisection so far, which a later run goes on from.

    Attributes:
        good: the commit that is compared with.
        bad: the commit that is known to differ.
        case: the case's id.
        effect: log of good's time over bad's; below 0 bad is slower.
        tried: commits in the order of their checks.
        asked: digest of the case and the settings that were asked for.
    """

    good: str
    bad: str
    case: str
    effect: float
    tried: tuple[Tried, ...] = ()
    asked: str = ""

    @property
    def threshold(self) -> float:
        """The speedup half-way between both ends: whoever is beyond it is like bad."""
        return math.exp(self.effect / 2)


class Found(Record):
    """What a bisection ended with.

    Attributes:
        state: all that was tried.
        culprits: the first commit like bad, last; before it those that could not be measured.
    """

    state: Bisection
    culprits: tuple[str, ...]
