"""What checks of a revision against itself say of a runner: its noise and what suits it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from sns_gate.replicates import spread_of
from sns_gate.stats import detectable_slowdown_pct, half_width
from sns_gate.types import Block, CaseResult, GateResult, Record, Verdict

#: Tolerances that are worth recommending.
LADDER = (0.003, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5)
#: An interval this much narrower than the tolerance holds identical code inside it.
_WIDTH_SHARE = 0.5
#: Cases that may ask for more than the common tolerance, by their own.
_EXCEPTED_SHARE = 0.1
MAX_PLACEMENTS = 12


class CaseNoise(Record):
    """What a case's rounds showed.

    Attributes:
        id: of the case.
        rounds: in which it was measured.
        half_width_pct: largest of the 95% intervals', in %.
        missed: intervals that did not hold 1, the truth.
        alarms: rounds that called it slower, confirmation included.
        detectable_pct: largest slowdown that a round needed to see, at the configured tolerance.
        placement_pct: standard deviation between blocks of the same workers, in %.
        process_pct: standard deviation between worker processes, in %.
        tolerance: the smallest that suits it, None where none of the ladder does.
        seconds: longest round, without start-up.
        refused: why rounds gave no interval.
    """

    id: str
    rounds: int
    half_width_pct: float | None = None
    missed: int = 0
    alarms: int = 0
    detectable_pct: float | None = None
    placement_pct: float | None = None
    process_pct: float | None = None
    tolerance: float | None = None
    seconds: float = 0.0
    refused: tuple[str, ...] = ()


class Calibration(Record):
    """A runner's noise and the settings that suit it.

    Attributes:
        rounds: checks of the revision against itself.
        tolerance: recommended for all cases but the excepted, None where no case was measured.
        placements: recommended.
        processes: that were used, and are recommended.
        detectable_pct: largest slowdown to see with them, over the cases within the tolerance.
        cases: in the order of the check.
        excepted: cases that want a tolerance of their own.
    """

    rounds: int
    tolerance: float | None
    placements: int
    processes: int
    detectable_pct: float | None
    cases: tuple[CaseNoise, ...]
    excepted: tuple[str, ...]

    @property
    def alarms(self) -> int:
        """How often identical code was called slower."""
        return sum(case.alarms for case in self.cases)


def calibrate(results: Sequence[GateResult]) -> Calibration:
    """Sum up checks whose sides are the same code.

    Cases against a reference or a further baseline are left out: those are not the same code.

    Args:
        results: at least one, of the same cases and settings.

    Raises:
        ValueError: there is none.
    """
    if not results:
        raise ValueError("a calibration needs at least one check of a revision against itself")
    rounds: dict[str, list[CaseResult]] = {}
    for result in results:
        alike = [case for case in result.cases if not case.reference and not case.against]
        for case in alike:
            rounds.setdefault(case.id, []).append(case)
    cases = tuple(_noise(id_, listed) for id_, listed in rounds.items())
    tolerance = _common([case.tolerance for case in cases if case.half_width_pct is not None])
    within = [case for case in cases if case.tolerance and case.tolerance <= (tolerance or 0)]
    measured = [case for case in cases if case.half_width_pct is not None]
    return Calibration(
        rounds=len(results),
        tolerance=tolerance,
        placements=_placements(rounds, results[0], tolerance, {case.id for case in within}),
        processes=results[0].processes,
        detectable_pct=max((_detects(case, tolerance, results[0]) for case in within), default=None)
        if tolerance
        else None,
        cases=cases,
        excepted=tuple(case.id for case in measured if case not in within),
    )


def _noise(id_: str, listed: Sequence[CaseResult]) -> CaseNoise:
    # What was refused has an interval too, and says nothing of what this machine can do.
    judged = [case for case in listed if case.speedup and case.verdict is not Verdict.REFUSED]
    measured = [case for case in judged if case.half_width_pct]
    refused = tuple(
        dict.fromkeys(case.note or case.verdict for case in listed if case not in judged)
    )
    if not measured:
        return CaseNoise(id=id_, rounds=len(listed), refused=refused)
    widest = max(case.half_width_pct or 0.0 for case in measured)
    components = [_components(case.blocks) for case in measured]
    return CaseNoise(
        id=id_,
        rounds=len(listed),
        half_width_pct=widest,
        missed=sum(not _holds_truth(case) for case in measured),
        alarms=sum(case.verdict is Verdict.SLOWER for case in measured),
        detectable_pct=max(case.detectable_pct or 0.0 for case in measured),
        placement_pct=round(100 * _quadratic([block for block, _ in components]), 3),
        process_pct=round(100 * _quadratic([process for _, process in components]), 3),
        tolerance=next((t for t in LADDER if widest / 100 <= _WIDTH_SHARE * t), None),
        seconds=max(case.seconds for case in listed),
        refused=refused,
    )


def _holds_truth(case: CaseResult) -> bool:
    """Whether its first interval holds 1; a confirmation's would be chosen by what it shows."""
    found = case.screening.speedup if case.screening else case.speedup
    return found is not None and found.low <= 1 <= found.high


def _components(blocks: Sequence[Block]) -> tuple[float, float]:
    """Standard deviations of a block and of a process, on the log scale, by moments."""
    found = spread_of(blocks)
    block = float(found.block[0])
    sides = (
        (float(part[0]) - block) * (freedom + 1)
        for part, freedom in (
            (found.baseline, found.baseline_freedom),
            (found.candidate, found.candidate_freedom),
        )
    )
    process = statistics.fmean(max(0.0, side) for side in sides)
    return math.sqrt(block * found.blocks), math.sqrt(process)


def _quadratic(values: Sequence[float]) -> float:
    return math.sqrt(statistics.fmean(value**2 for value in values))


def _common(wanted: Sequence[float | None]) -> float | None:
    """The smallest tolerance of the ladder that suits all cases but the share excepted."""
    known = sorted(t for t in wanted if t is not None)
    if not known:
        return None
    most = max(1, math.ceil(len(wanted) * (1 - _EXCEPTED_SHARE)))
    return known[min(most, len(known)) - 1]


def _placements(
    rounds: dict[str, list[CaseResult]],
    result: GateResult,
    tolerance: float | None,
    within: set[str],
) -> int:
    """The fewest placements after which the cases within the tolerance are precise enough."""
    if tolerance is None:
        return result.placements
    wanted = result.placements
    for case in (case for id_, listed in rounds.items() if id_ in within for case in listed):
        found = spread_of(case.blocks) if case.blocks and case.speedup else None
        while found is not None and wanted < MAX_PLACEMENTS:
            width = half_width(*found.at(wanted * result.processes).combined())
            if float(width[0]) <= _WIDTH_SHARE * tolerance:
                break
            wanted += 1
    return wanted


def _detects(case: CaseNoise, tolerance: float, result: GateResult) -> float:
    width = math.log1p((case.half_width_pct or 0.0) / 100)
    return detectable_slowdown_pct(
        1 / (1 + tolerance), width, result.processes - 1, len(result.cases)
    )
