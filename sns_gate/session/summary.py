"""From a measurement and its tier to a case's result; the verdict itself is judged elsewhere."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sns_gate.session.measuring import BrokenCase, Measured, WrongCase
from sns_gate.session.roster import PlannedCase
from sns_gate.session.tails import slow_samples
from sns_gate.stats import Estimate, confirmation_level, detectable_slowdown_pct
from sns_gate.tiers import tier_of
from sns_gate.types import (
    MORE_MEMORY,
    SIDES,
    UNCONFIRMED,
    Block,
    CaseResult,
    Measurement,
    MeasurementTier,
    Reason,
    Side,
    Speedup,
    Verdict,
)
from sns_gate.verdict import Judgement, hull, judge, shown

MIB = 1 << 20
#: Allocators round, so that a difference below this is none.
SAME_MEMORY_SHARE = 0.01
COVERS = ("samples", "pairs", "placements", "processes")


@dataclass(frozen=True)
class Expected:
    """What a complete measurement on this machine has.

    Attributes:
        on_gpu: device clocks are to be expected.
        nvml: NVML answered when the check began, so its silence is lost evidence.
        locked_mhz: the clock that a policy pinned, None where the clocks float.
        blocks: of a first rotation; below half of them nothing is judged.
        cases: in the check.
    """

    on_gpu: bool
    nvml: bool
    locked_mhz: float | None
    blocks: int
    cases: int = 1

    def tier_of(self, blocks: Sequence[Block]) -> MeasurementTier:
        """The tier that these blocks reach here."""
        tier, _, _ = tier_of(
            blocks,
            locked_mhz=self.locked_mhz,
            expects_gpu=self.on_gpu,
            expects_nvml=self.nvml,
        )
        return tier


@dataclass(frozen=True)
class CaseOutcome:
    """A case's result with the estimate behind it, None where it has none."""

    result: CaseResult
    estimate: Estimate | None = None


def summarise(
    case: PlannedCase,
    measured: Measured | BrokenCase | WrongCase,
    expected: Expected,
    seconds: float,
) -> CaseOutcome:
    """What one measurement of a case says, before any confirmation.

    Args:
        case: the case and its tolerance.
        measured: its blocks, or why there are none.
        expected: evidence and blocks that there should be.
        seconds: that the measurement took.
    """
    base = _unmeasured(case, seconds)
    if isinstance(measured, Measured):
        return _of_blocks(case, base, measured, expected)
    reasons = (*case.notes, *measured.reasons)
    if isinstance(measured, WrongCase):
        return CaseOutcome(_with(base, verdict=Verdict.WRONG, reasons=reasons))
    raised = all(reason.code == "raised" for reason in measured.reasons)
    if not case.known and raised and measured.sides == ("baseline",):
        # A benchmark of something new; the baseline says so in its own words.
        return CaseOutcome(_with(base, verdict=Verdict.ADDED, reasons=reasons))
    return CaseOutcome(
        _with(base, verdict=Verdict.BROKEN, broken_sides=measured.sides, reasons=reasons)
    )


def without_place(case: PlannedCase, why: Reason, seconds: float) -> CaseOutcome:
    """A case that was to be measured where nobody is any more, which is neither side's doing.

    Args:
        case: that was begun there.
        why: the place is lost.
        seconds: that it had taken until then.
    """
    return CaseOutcome(
        _with(
            _unmeasured(case, seconds),
            verdict=Verdict.BROKEN,
            broken_sides=SIDES,
            reasons=(*case.notes, why),
        )
    )


def _unmeasured(case: PlannedCase, seconds: float) -> CaseResult:
    return CaseResult(
        id=case.id,
        file=case.spec.file,
        line=case.spec.line,
        verdict=Verdict.REFUSED,
        tolerance=case.tolerance,
        reference=case.spec.reference or None,
        against=case.against or None,
        at_least=case.at_least,
        reasons=case.notes,
        seconds=round(seconds, 3),
    )


def _of_blocks(
    case: PlannedCase, base: CaseResult, measured: Measured, expected: Expected
) -> CaseOutcome:
    """What a case's blocks say, where they can be believed."""
    filled = _filled(base, measured, expected)
    estimate = measured.estimate
    more = _memory(filled, case.memory_tolerance)
    filled = _with(filled, reasons=(*filled.reasons, *more))
    if _takes_more(filled, case.memory_tolerance):
        return CaseOutcome(_with(filled, verdict=Verdict.WRONG, note=MORE_MEMORY), estimate)
    if estimate is None or len(measured.blocks) * 2 < expected.blocks:
        text = "fewer than three workers a side, or than half of the planned blocks, are left"
        return CaseOutcome(_refuse(filled, Reason(code="too-few-blocks", text=text)))
    speedup, half_width = shown_speedup(estimate), estimate.half_width()
    detectable_pct = detectable_slowdown_pct(
        base.least, half_width, estimate.worker_freedom, expected.cases
    )
    filled = _with(
        filled,
        speedup=speedup,
        half_width_pct=round(100 * half_width, 4),
        detectable_pct=round(detectable_pct, 4),
    )
    judged = judge(speedup, case.tolerance, case.at_least)
    # Who hides a part of a slowdown that is seen anyway has hidden nothing.
    if measured.doubt is not None and judged.verdict is not Verdict.SLOWER:
        return CaseOutcome(_refuse(filled, measured.doubt), estimate)
    if filled.tier is MeasurementTier.C:
        return CaseOutcome(_with(filled, note="tier C"), estimate)
    uneven = slow_samples(measured.blocks, case.tolerance)
    if uneven is not None and judged.verdict is not Verdict.SLOWER:
        reasons = (*filled.reasons, uneven)
        changes = {"verdict": Verdict.INCONCLUSIVE, "note": "uneven", "reasons": reasons}
        return CaseOutcome(_with(filled, **changes), estimate)
    return CaseOutcome(_judged(filled, judged), estimate)


def _filled(base: CaseResult, measured: Measured, expected: Expected) -> CaseResult:
    """The case with its blocks, its tier and the reasons for it, but no interval yet."""
    tier, reasons, evidence = tier_of(
        measured.blocks,
        locked_mhz=expected.locked_mhz,
        expects_gpu=expected.on_gpu,
        expects_nvml=expected.nvml,
    )
    return _with(
        base,
        tier=tier,
        reasons=(*base.reasons, *measured.reasons, *reasons),
        evidence=evidence,
        covers=COVERS,
        mode=measured.recipe.mode,
        calls_per_sample=measured.recipe.calls * measured.recipe.regions,
        baseline_ms=_median(measured.blocks, "baseline"),
        candidate_ms=_median(measured.blocks, "candidate"),
        baseline_peak_bytes=measured.peak_bytes[0],
        candidate_peak_bytes=measured.peak_bytes[1],
        blocks=measured.blocks,
    )


def _memory(case: CaseResult, tolerance: float | None) -> Iterator[Reason]:
    """Says how the peak memory of one call has changed, or that nobody measured it."""
    before, after = case.baseline_peak_bytes, case.candidate_peak_bytes
    if tolerance is not None and before is None:
        text = "memory is not measured on this device, so its tolerance held nothing to anything"
        yield Reason(code="memory-unseen", text=text)
    if not before or after is None or abs(after / before - 1) < SAME_MEMORY_SHARE:
        return
    more = "more" if after > before else "less"
    yield Reason(
        code="memory-changed",
        text=f"one call takes {after / MIB:,.1f} MiB of the device's memory at its peak, the "
        f"baseline's {before / MIB:,.1f} MiB, {100 * abs(after / before - 1):.1f}% {more}",
    )


def _takes_more(case: CaseResult, tolerance: float | None) -> bool:
    before, after = case.baseline_peak_bytes, case.candidate_peak_bytes
    if tolerance is None or before is None or after is None:
        return False
    return after > before * (1 + tolerance)


def refuse_unlike(outcome: CaseOutcome, differing: Sequence[str]) -> CaseOutcome:
    """Refuse a case whose sides ran with unlike toolchains or devices.

    Args:
        outcome: as measured.
        differing: the fields of the fingerprint that differ.
    """
    if not differing:
        return outcome
    text = (
        f"the sides' fingerprints differ in {', '.join(differing)}, so a difference would not be "
        f"the code's alone; give both the same interpreter and device"
    )
    return CaseOutcome(_refuse(outcome.result, Reason(code="fingerprints-differ", text=text)))


def refuse_code(outcome: CaseOutcome, silent: Sequence[Side]) -> CaseOutcome:
    """Refuse a case for which a side has not shown that it loaded its own code.

    Args:
        outcome: as measured.
        silent: sides of whose own code no file was seen loaded.
    """
    if not silent:
        return outcome
    text = (
        f"no file of the {' nor of the '.join(silent)} was seen loaded, so this may have timed "
        f"installed code twice; import the code under test in the benchmark and see 'pythonpath'"
    )
    return CaseOutcome(_refuse(outcome.result, Reason(code="code-not-proven", text=text)))


def confirmed(first: CaseOutcome, second: CaseOutcome, cases: int) -> CaseResult:
    """Judge a case that was about to be called slower by its second, independent measurement.

    What the candidate does wrong there counts as it would have the first time, or a slowdown could
    be hidden by failing once it has been seen.

    Args:
        first: the measurement that called it slower.
        second: the one in newly started processes.
        cases: number of cases in the check.
    """
    screening, again = _measurement(first), second.result
    own = again.verdict is Verdict.BROKEN and again.broken_sides == ("candidate",)
    doubted = again.verdict is Verdict.REFUSED and again.tier is not MeasurementTier.C
    if own or again.verdict is Verdict.WRONG or (doubted and second.estimate is not None):
        return _with(again, screening=screening)
    if second.estimate is None or again.tier is MeasurementTier.C or screening is None:
        return unconfirmed(first, again.reasons)
    speedup = shown_speedup(second.estimate, confirmation_level(cases))
    judged = judge(speedup, again.tolerance, again.at_least)
    if judged.verdict is Verdict.SLOWER:
        return _judged(_with(again, speedup=speedup, screening=screening), judged)
    reason = Reason(
        code="not-reproduced",
        text="the first measurement called it slower and a second one in new processes did not; "
        "the interval shown holds both",
    )
    return _with(
        again,
        speedup=hull(screening.speedup, speedup),
        screening=screening,
        verdict=Verdict.INCONCLUSIVE,
        note="not reproduced",
        reasons=(*again.reasons, reason),
    )


def unconfirmed(first: CaseOutcome, why: Sequence[Reason] = ()) -> CaseResult:
    """A case that looked slower and has no second measurement, or none that counts."""
    text = "it looked slower and has not been measured a second time in new processes"
    return _with(
        first.result,
        verdict=Verdict.INCONCLUSIVE,
        note=UNCONFIRMED,
        screening=_measurement(first),
        reasons=(*first.result.reasons, Reason(code="unconfirmed", text=text), *why),
    )


def shown_speedup(estimate: Estimate, level: float = 0.95) -> Speedup:
    """The estimate's speedup with its interval rounded outward to the digits shown."""
    return shown(math.exp(estimate.log_speedup), estimate.bounds(level), level)


def _measurement(outcome: CaseOutcome) -> Measurement | None:
    result, found = outcome.result, outcome.estimate
    if found is None or result.speedup is None:
        return None
    return Measurement(
        speedup=result.speedup,
        half_width_pct=result.half_width_pct or 0.0,
        degrees_of_freedom=found.degrees_of_freedom if found.variance else None,
        blocks=result.blocks,
    )


def _median(blocks: Sequence[Block], side: Side) -> float:
    return statistics.median(ms for block in blocks for ms in block.counted(side))


def _judged(result: CaseResult, judged: Judgement) -> CaseResult:
    return _with(result, verdict=judged.verdict, note=judged.note)


def _refuse(result: CaseResult, reason: Reason) -> CaseResult:
    return _with(
        result, verdict=Verdict.REFUSED, note=reason.code, reasons=(*result.reasons, reason)
    )


def _with(result: CaseResult, **changes: object) -> CaseResult:
    return result.model_copy(update=changes)
