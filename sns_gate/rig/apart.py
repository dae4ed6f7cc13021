"""Calls of cases taken apart by a profiler, in one worker a side that times nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sns_gate import session
from sns_gate.errors import WorkerError
from sns_gate.rig.functions import FunctionsRig
from sns_gate.rig.mount import Rig
from sns_gate.rig.stations import Start
from sns_gate.session import PlannedCase
from sns_gate.types import Explanation, Reason


def taken_apart(
    rig: Rig | FunctionsRig,
    start: Start,
    cases: Sequence[PlannedCase],
) -> Iterator[tuple[PlannedCase, Explanation | Reason | None]]:
    """Each case with its explanation, or why it has none."""
    with start("first", 1, rig.devices.first) as pool:
        for case in cases:
            pool.revive()
            settings = rig.settings
            try:
                yield (
                    case,
                    session.explain_case(
                        pool.workers, case.spec.id, settings.seed, settings.timeout
                    ),
                )
            except WorkerError as error:
                yield case, unexplained(case.id, error)


def unexplained(what: str, error: Exception) -> Reason:
    """Why something has no explanation."""
    return Reason(code="not-explained", text=f"{what} could not be taken apart: {error}")
