"""The words that all results share: sides, tiers, verdicts and reasons."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Side = Literal["baseline", "candidate"]
#: What a check on GitHub ends as.
Conclusion = Literal["success", "neutral", "failure"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")


class Record(BaseModel):
    """Frozen data that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MeasurementTier(StrEnum):
    """How much the numbers in a result can be trusted.

    A: clocks pinned and seen held on the device. B: clocks floating, their variance measured and
    inside the interval. C: unstable, disturbed or unobserved; no verdict is given on it.
    """

    A = "A"
    B = "B"
    C = "C"


class Verdict(StrEnum):
    """What the gate says of a case."""

    SLOWER = "slower"
    FASTER = "faster"
    UNCHANGED = "unchanged"
    NOT_SLOWER = "not slower"
    INCONCLUSIVE = "inconclusive"
    REFUSED = "refused"
    BROKEN = "broken"
    WRONG = "wrong"
    ADDED = "added"
    REMOVED = "removed"


class Outcome(StrEnum):
    """What the gate says of the whole check."""

    PASS = "pass"  # noqa: S105 (not a password)
    FAIL = "fail"
    REFUSED = "refused"
    INCONCLUSIVE = "inconclusive"
    NOTHING_COMPARED = "nothing compared"


class Reason(Record):
    """Why a verdict is what it is: a stable code for programs, a text for people."""

    code: str = Field(pattern=r"^[a-z0-9-]{1,60}$", description="one of docs/reasons.md")
    text: str = Field(description="for people")
    detail: str = Field("", description="a traceback or log, empty where there is none")
