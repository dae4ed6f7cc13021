"""One row a case, with the places of its interval on the axis that all cases share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sns_gate.report import inside, scale, words
from sns_gate.types import CaseResult, Explanation, GateResult, Reason, Verdict

#: Of the drawing of an interval, in its own units.
WIDTH = 220
_PADDING = 8
_MARKS = {
    Verdict.SLOWER: "▼",
    Verdict.WRONG: "✕",
    Verdict.BROKEN: "✕",
    Verdict.REMOVED: "•",
    Verdict.REFUSED: "⊘",
    Verdict.INCONCLUSIVE: "≈",
    Verdict.FASTER: "▲",
    Verdict.NOT_SLOWER: "△",
    Verdict.ADDED: "+",
    Verdict.UNCHANGED: "=",
}
#: Lines of a traceback or log that a page shows; the rest is in the result file.
MOST_LINES = 200
_MOST_CHARACTERS = 20_000
MOST_PARTS, _LONGEST_NAME = 30, 300


@dataclass(frozen=True)
class Interval:
    """Where an interval and its tolerance are drawn, from left to right, and both in words."""

    low: float
    estimate: float
    high: float
    band_from: float
    band_to: float
    words: str


@dataclass(frozen=True)
class Detailed:
    """A reason with the end of its traceback or log, and how many lines of it are left out."""

    code: str
    text: str
    detail: str
    omitted: int


@dataclass(frozen=True)
class Inside:
    """Both sides' calls beside each other, part by part.

    Attributes:
        sentence: where the difference is.
        noun: what the parts are.
        rows: a part's whole name, its time on both sides, the difference, and what happened.
        notes: launches and autotuners' choices.
    """

    sentence: str
    noun: str
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """What a page shows of a case.

    Attributes:
        case: the case itself.
        rank: of its verdict, worst first.
        mark: a sign of its verdict that needs no colour.
        interval: None where there is none.
        why: the reason that stands in an interval's place, empty where there is none.
        reasons: all of them.
        facts: name and text of whatever else is known of how it was measured.
        inside: where the time inside both sides' calls went, None where nobody looked.
    """

    case: CaseResult
    rank: int
    mark: str
    interval: Interval | None
    why: str
    reasons: tuple[Detailed, ...]
    facts: tuple[tuple[str, str], ...]
    inside: Inside | None


@dataclass(frozen=True)
class Scale:
    """The axis of all cases, as its head shows it."""

    width: int
    middle: float
    band_from: float
    band_to: float


def rows_of(result: GateResult, ordered: Sequence[CaseResult]) -> list[Row]:
    """One row a case, in the order given."""
    reach = scale.reach(result.cases)
    return [
        Row(
            case=case,
            rank=words.VERDICT_ORDER.index(case.verdict),
            mark=_MARKS[case.verdict],
            interval=_interval(case, reach),
            why=case.reasons[0].text if case.speedup is None and case.reasons else "",
            reasons=tuple(_detailed(reason) for reason in case.reasons),
            facts=_facts(case),
            inside=_inside(case.explanation, case.verdict) if case.explanation else None,
        )
        for case in ordered
    ]


def scale_of(result: GateResult) -> Scale:
    """The axis's head: the tolerance band of cases without an ``at_least`` of their own."""
    reach = scale.reach(result.cases)
    edges = (1 / (1 + result.tolerance), 1 + result.tolerance)
    places = [_x(edge, result.tolerance, reach) for edge in edges]
    return Scale(WIDTH, WIDTH / 2, places[0], places[1])


def _interval(case: CaseResult, reach: float) -> Interval | None:
    found = case.speedup
    if found is None:
        return None
    most = 1 + case.tolerance
    bounded = case.least < most  # else whatever is faster than the least will do
    ends = (found.low, found.estimate, found.high, case.least, most)
    low, estimate, high, near, far = (_x(end, case.tolerance, reach) for end in ends)
    tolerance = f"{case.least:.4f} to {most:.4f}" if bounded else f"{case.least:.4f} and more"
    return Interval(
        low=low,
        estimate=estimate,
        high=high,
        band_from=near,
        band_to=far if bounded else max(near, WIDTH),
        words=f"interval {found.low:.4f} to {found.high:.4f}, tolerance {tolerance}",
    )


def _x(speedup: float, tolerance: float, reach: float) -> float:
    half = WIDTH / 2 - _PADDING
    return round(WIDTH / 2 + half * scale.place(speedup, tolerance, reach), 1)


def _detailed(reason: Reason) -> Detailed:
    lines = reason.detail.strip("\n").splitlines()
    shown = "\n".join(lines[-MOST_LINES:])[-_MOST_CHARACTERS:]
    return Detailed(reason.code, reason.text, shown, max(0, len(lines) - MOST_LINES))


def _inside(found: Explanation, verdict: Verdict) -> Inside:
    launches = inside.launches(found)
    choices = [
        f"{side} tuned {choice}"
        for side, profile in (("baseline", found.baseline), ("candidate", found.candidate))
        for choice in profile.choices
    ]
    rows = inside.telling(inside.changes(found), MOST_PARTS)
    return Inside(
        sentence=inside.sentence(found, verdict),
        noun=inside.noun(found),
        rows=tuple((row.name[:_LONGEST_NAME], *inside.cells(row)) for row in rows),
        notes=(*([f"launches {launches}"] if launches else []), *choices),
    )


def _facts(case: CaseResult) -> tuple[tuple[str, str], ...]:
    slower = (
        f"below a speedup of {case.at_least:g}"
        if case.at_least is not None
        else f"by more than {100 * case.tolerance:g}%"
    )
    width = words.percent(case.half_width_pct)
    if case.speedup:
        width += f", level {100 * case.speedup.level:g}%"
    found = (
        ("defined in", f"{case.file}:{case.line}" if case.file else ""),
        ("compared with", case.reference or case.against or ""),
        ("slower means", slower),
        ("half-width", width if case.half_width_pct is not None else ""),
        ("detects", words.detects(case)),
        ("calls a sample", f"{case.calls_per_sample}" if case.calls_per_sample else ""),
        ("interval covers", ", ".join(case.covers)),
        ("broken on", " and ".join(case.broken_sides)),
        ("measured on", case.device or ""),
        ("peak memory of a call", _memory(case)),
        *_clocks(case),
        ("took", f"{case.seconds:.1f} s" if case.seconds else ""),
    )
    return tuple((name, text) for name, text in found if text)


def _memory(case: CaseResult) -> str:
    baseline, candidate = case.baseline_peak_bytes, case.candidate_peak_bytes
    if baseline is None or candidate is None:
        return ""
    return f"{words.size(candidate)}, the baseline's {words.size(baseline)}"


def _clocks(case: CaseResult) -> tuple[tuple[str, str], ...]:
    seen = case.evidence
    if seen is None:
        return ()
    clock = "" if seen.clock_mean_mhz is None else f"{seen.clock_mean_mhz:.0f} MHz"
    if clock and seen.clock_cv_pct is not None:
        clock += f", varies by {seen.clock_cv_pct:.2f}%"
    if clock and seen.clock_range_mhz is not None:
        clock += f", range {seen.clock_range_mhz:.0f} MHz"
    stolen = "" if seen.steal_pct is None else f"{seen.steal_pct:.1f}%"
    throttled = "" if seen.throttled_ms is None else f"{seen.throttled_ms:.0f} ms"
    return (
        ("device clock", clock),
        ("clock events", ", ".join(seen.reasons)),
        ("CPU time stolen", stolen),
        ("throttled by quota", throttled),
    )
