"""From an interval to a verdict and from verdicts to an exit code; it measures nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum

from sns_gate.types import Acceptance, CaseResult, Conclusion, GateResult, Outcome, Speedup, Verdict

SHOWN_DIGITS = 4


class ExitCode(IntEnum):
    """What the process answers; a pass needs positive evidence."""

    OK = 0
    FAIL = 1
    USAGE = 2
    REFUSED = 3
    INCONCLUSIVE = 4
    NOTHING_COMPARED = 5
    INTERNAL = 70
    INTERRUPTED = 130
    TERMINATED = 143


#: When each exit code is given, in words; the README's table and ``--help`` print it.
EXIT_MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "at least one case compared; every expected case unchanged, faster or not slower",
    ExitCode.FAIL: "a case is slower, wrong, or broken on the candidate alone",
    ExitCode.USAGE: "usage or configuration",
    ExitCode.REFUSED: "a case was refused, broken on the baseline, or removed without acceptance",
    ExitCode.INCONCLUSIVE: "a case is inconclusive",
    ExitCode.NOTHING_COMPARED: "nothing compared: no cases, only added ones, or no change"
    " since the merge base",
    ExitCode.INTERNAL: "internal error",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}

#: The most severe of several cases wins.
SEVERITY = (
    ExitCode.INTERNAL,
    ExitCode.USAGE,
    ExitCode.NOTHING_COMPARED,
    ExitCode.FAIL,
    ExitCode.REFUSED,
    ExitCode.INCONCLUSIVE,
    ExitCode.OK,
)
_OUTCOMES = {
    ExitCode.OK: Outcome.PASS,
    ExitCode.FAIL: Outcome.FAIL,
    ExitCode.REFUSED: Outcome.REFUSED,
    ExitCode.INCONCLUSIVE: Outcome.INCONCLUSIVE,
    ExitCode.NOTHING_COMPARED: Outcome.NOTHING_COMPARED,
}


@dataclass(frozen=True)
class Judgement:
    """A verdict and the few words that qualify it."""

    verdict: Verdict
    note: str = ""


def shown(estimate: float, bounds: tuple[float, float], level: float = 0.95) -> Speedup:
    """The interval rounded outward to the digits shown, which is what is judged."""
    scale = 10**SHOWN_DIGITS
    low = max(math.floor(bounds[0] * scale), 1) / scale
    high = math.ceil(bounds[1] * scale) / scale
    middle = min(max(round(estimate, SHOWN_DIGITS), low), high)
    return Speedup(estimate=middle, low=low, high=high, level=level)


def judge(speedup: Speedup, tolerance: float, at_least: float | None = None) -> Judgement:
    """The verdict on an interval; the first row of the design's table that fits holds.

    Args:
        speedup: baseline / candidate with its interval as shown.
        tolerance: the largest increase in time worth letting pass, 0.02 for 2%.
        at_least: the speedup that is asked for, in place of 1 / (1 + tolerance).
    """
    lower, upper = 1 / (1 + tolerance) if at_least is None else at_least, 1 + tolerance
    low, high = speedup.low, speedup.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return Judgement(Verdict.REFUSED, "not finite")
    if high < lower:
        return Judgement(
            Verdict.SLOWER, "" if at_least is None else f"than the {at_least:g} times asked"
        )
    if low < lower:
        return Judgement(Verdict.INCONCLUSIVE, "not faster" if high <= upper else "too wide")
    if high <= upper:
        return Judgement(Verdict.UNCHANGED, _creep(low, high))
    return Judgement(Verdict.FASTER if low > upper else Verdict.NOT_SLOWER)


def _creep(low: float, high: float) -> str:
    if high < 1:
        return "slightly slower, within tolerance"
    return "slightly faster, within tolerance" if low > 1 else ""


def words_of_policy(code: ExitCode) -> str:
    """Says that a code which is none of success counts as one."""
    return f"exit code {int(code)} counts as success here, by the policy's setting"


def hull(first: Speedup, second: Speedup) -> Speedup:
    """The smallest interval that holds both, around the second's estimate."""
    return Speedup(
        estimate=second.estimate,
        low=min(first.low, second.low),
        high=max(first.high, second.high),
        level=min(first.level, second.level),
    )


def case_exit(case: CaseResult) -> ExitCode:
    """The exit code that one case asks for."""
    match case.verdict:
        case Verdict.SLOWER | Verdict.WRONG:
            return ExitCode.FAIL
        case Verdict.BROKEN:
            return ExitCode.FAIL if case.broken_sides == ("candidate",) else ExitCode.REFUSED
        case Verdict.REFUSED | Verdict.REMOVED:
            return ExitCode.REFUSED
        case Verdict.INCONCLUSIVE:
            return ExitCode.INCONCLUSIVE
        case Verdict.UNCHANGED | Verdict.FASTER | Verdict.NOT_SLOWER | Verdict.ADDED:
            return ExitCode.OK


def exit_code(cases: Iterable[CaseResult], accepted: Collection[str] = ()) -> ExitCode:
    """The check's exit code: the most severe of its cases', and 5 where nothing was compared.

    Args:
        cases: of the check.
        accepted: ids of cases that somebody lets pass.
    """
    listed = list(cases)
    if all(
        case.verdict is Verdict.ADDED or (case.verdict is Verdict.REMOVED and case.id in accepted)
        for case in listed
    ):
        return ExitCode.NOTHING_COMPARED
    codes = (ExitCode.OK if case.id in accepted else case_exit(case) for case in listed)
    return min(codes, key=SEVERITY.index)


def conclusion(code: ExitCode, result: GateResult) -> Conclusion:
    """What a check on GitHub ends as; the policy has a say where no verdict was reached.

    Args:
        code: that the cases ask for.
        result: with the policy's words for refused and inconclusive cases.
    """
    match code:
        case ExitCode.OK:
            return "success"
        case ExitCode.REFUSED:
            return result.on_refused
        case ExitCode.INCONCLUSIVE:
            return result.on_inconclusive
        case _:
            return "failure"


#: What somebody may let pass; a case that could not be judged is nobody's to accept.
ACCEPTABLE = (Verdict.SLOWER, Verdict.REMOVED)


def accept(result: GateResult, accepted: Iterable[Acceptance]) -> GateResult:
    """The result as it counts where somebody lets cases pass; their verdicts stay what they are.

    Args:
        result: of a complete check; another stays as it is.
        accepted: of whom and why; what names no case that can be accepted is left out.
    """
    open_ = {case.id for case in result.cases if case.verdict in ACCEPTABLE}
    taken = tuple(one for one in accepted if one.case in open_)
    names = {one.case for one in taken}
    if not (taken and result.complete):
        return result
    code = exit_code(result.cases, names)
    ends = conclusion(code, result)
    code = ExitCode.OK if ends == "success" else code
    return result.model_copy(
        update={
            "accepted": taken,
            "exit_code": int(code),
            "verdict": outcome(code),
            "conclusion": ends,
        }
    )


def outcome(code: ExitCode) -> Outcome:
    """The word for a check that ended with this exit code."""
    return _OUTCOMES[code]
