"""To tier A and back, live: one kernel against itself under pinned clocks, then all given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sns_gate.clocks import ClockLockError, journals
from sns_gate.doctor.points import Diagnosis, Health, Point
from sns_gate.telemetry import open_gpu
from sns_gate.types import CaseResult, GateResult, MeasurementTier

#: Set-up of the work that the clocks are tried under, as a worker can import it.
LOAD = "sns_gate.worker.load:multiply"
_SAME_POWER_W = 1.0


def try_clocks(
    found: Diagnosis, uuid: str, state_dir: Path, run: Callable[[], GateResult]
) -> Diagnosis:
    """Pin the clocks for one comparison of a kernel with itself and see that they come back.

    Args:
        found: what is known of the machine.
        uuid: of the GPU whose clocks are pinned.
        state_dir: folder of journals.
        run: makes that comparison with pinned clocks.
    """
    limit_w = _power_limit_w(uuid)
    try:
        points = [*_pinned(run().cases[0])]
    except ClockLockError as error:
        text = f"could not be pinned: {error}"
        points = [Point(name="clocks under load", health=Health.STOPS, text=text)]
    points.append(_given_back(uuid, limit_w, state_dir))
    held = all(point.health is Health.OK for point in points)
    stopped = any(point.health is Health.STOPS for point in points)
    tier = MeasurementTier.A if held else MeasurementTier.C if stopped else MeasurementTier.B
    return found.model_copy(update={"reachable": tier, "points": (*found.points, *points)})


def _pinned(case: CaseResult) -> Iterator[Point]:
    name, evidence = "clocks under load", case.evidence
    if evidence is None or evidence.clock_mean_mhz is None or evidence.clock_range_mhz is None:
        why = "; ".join(reason.text for reason in case.reasons) or case.verdict.value
        yield Point(name=name, health=Health.STOPS, text=f"nothing could be measured: {why}")
        return
    seen = (
        f"the device ran at {evidence.clock_mean_mhz:.0f} MHz within "
        f"{evidence.clock_range_mhz:.0f} MHz"
    )
    if case.tier is MeasurementTier.A:
        yield Point(name=name, health=Health.OK, text=f"{seen}: tier A")
    else:
        health = Health.STOPS if case.tier is MeasurementTier.C else Health.LIMITS
        why = "; ".join(reason.text for reason in case.reasons)
        yield Point(
            name=name,
            health=health,
            text=f"{seen}: tier {case.tier}, because {why}",
            mend="ask for a lower clock, which needs less power, and leave the GPU to the check",
        )
    drawn = [block.gpu.power_w for block in case.blocks if block.gpu and block.gpu.power_w]
    if drawn:
        text = f"a heavy matrix product drew up to {max(drawn):.0f} W at this clock"
        yield Point(name="power under load", health=Health.OK, text=text)


def _given_back(uuid: str, limit_w: float | None, state_dir: Path) -> Point:
    name, now_w = "clocks given back", _power_limit_w(uuid)
    left = [path for path, journal in journals(state_dir) if journal.uuid == uuid]
    same = limit_w is None or (now_w is not None and abs(now_w - limit_w) <= _SAME_POWER_W)
    if same and not left:
        limit = "" if now_w is None else f", the power limit is {now_w:.0f} W as before"
        return Point(name=name, health=Health.OK, text=f"no journal is left{limit}")
    return Point(
        name=name,
        health=Health.STOPS,
        text=f"the power limit is {now_w} W and was {limit_w} W; journals left: {len(left)}",
        mend="sns-gate restore",
    )


def _power_limit_w(uuid: str) -> float | None:
    gpu = open_gpu(uuid)
    return gpu.power_limit_w() if gpu else None
