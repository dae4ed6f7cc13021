"""What was found of a machine, one point a line, each with its mend."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum

from sns_gate.types import MeasurementTier, Record


class Health(StrEnum):
    """How a point stands."""

    OK = "ok"
    LIMITS = "limits"  # costs a tier or precision
    STOPS = "stops"  # no verdict is possible with it


class Point(Record):
    """One thing that was looked at.

    Attributes:
        name: of the thing.
        health: how it stands.
        text: what was found and what follows.
        mend: a command or step that mends it, empty where nothing need be done.
    """

    name: str
    health: Health
    text: str
    mend: str = ""


class Diagnosis(Record):
    """Everything that was looked at, and the tier that can be reached."""

    device: str
    reachable: MeasurementTier
    points: tuple[Point, ...]

    @property
    def gives_verdicts(self) -> bool:
        """Whether tier B can be reached, so that a check can judge."""
        return self.reachable is not MeasurementTier.C


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis for programs."""
    return json.dumps(diagnosis.model_dump(mode="json"), indent=2)


def say(diagnosis: Diagnosis, write: Callable[[str], object]) -> None:
    """Tell a person, one point a line, the mend below it."""
    marks = {Health.OK: "ok    ", Health.LIMITS: "limits", Health.STOPS: "STOPS "}
    for point in diagnosis.points:
        write(f"{marks[point.health]}  {point.name}: {point.text}\n")
        if point.mend:
            write(f"        mend: {point.mend}\n")
    best = {
        MeasurementTier.A: "Tier A can be reached here with --clocks MHZ, tier B without.",
        MeasurementTier.B: "Tier B can be reached here: verdicts are possible.",
        MeasurementTier.C: "No verdict is possible here until what stops it is mended.",
    }
    write(f"\n{best[diagnosis.reachable]}\n")
