"""The sentences and numbers that every renderer shares; it knows no markup."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sns_gate.config import MOST_PROCESSES, Settings
from sns_gate.plain import plain
from sns_gate.types import (
    MORE_MEMORY,
    UNCONFIRMED,
    CaseResult,
    GateResult,
    Outcome,
    RevisionInfo,
    Verdict,
)

#: The order in which a reader needs them.
VERDICT_ORDER = (
    Verdict.SLOWER,
    Verdict.WRONG,
    Verdict.BROKEN,
    Verdict.REMOVED,
    Verdict.REFUSED,
    Verdict.INCONCLUSIVE,
    Verdict.FASTER,
    Verdict.NOT_SLOWER,
    Verdict.ADDED,
    Verdict.UNCHANGED,
)
_COMPARED = (
    Verdict.SLOWER,
    Verdict.FASTER,
    Verdict.UNCHANGED,
    Verdict.NOT_SLOWER,
    Verdict.INCONCLUSIVE,
)
#: What to do where nothing is slower, by the worst verdict.
_NEXT = {
    Verdict.WRONG: "make both sides compute the same, or say on the benchmark what may differ: "
    "rtol=, atol= or check=False",
    Verdict.BROKEN: "mend what the traceback names, or the benchmark, and check again",
    Verdict.REMOVED: "bring the removed cases back, or compare with a baseline that lacks them too",
    Verdict.REFUSED: "see the reasons above: this machine cannot give a verdict on those cases as "
    "it is",
}
_NOTHING_YET = (
    "commit the code under test as it is, change it and check again; two functions that are both "
    "there are compared by 'sns-gate compare'"
)
#: What is suggested to somebody who has to see more: processes a side, and a wider tolerance.
_FINER_PROCESSES = 12
_WIDER = 2.5
NOT_AGAIN = "The candidate had uncommitted changes, so nobody else can measure it again."
_UNITS = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"), (1e-6, "ns"))
_SHORT_COMMIT = 9
#: Beyond this a number says no more than that it is large.
_SHOWN_UP_TO_PCT = 500.0


def duration(ms: float | None) -> str:
    """A time in the unit that suits it, four digits."""
    if ms is None:
        return ""
    factor, unit = next(((f, u) for f, u in _UNITS if ms >= f), _UNITS[-1])
    value = ms / factor
    digits = 3 if value < 10 else 2 if value < 100 else 1  # noqa: PLR2004 (places to four digits)
    return f"{value:.{digits}f} {unit}"


def roughly(seconds: float) -> str:
    """A time that is only expected, without the digits that nobody can expect."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 (two digits)


def size(count: int) -> str:
    """A size in bytes as mebibytes."""
    return f"{count / (1 << 20):,.1f} MiB"


def percent(value: float | None) -> str:
    """A percentage with two digits behind the point."""
    if value is None:
        return ""
    return f"{value:.2f}%" if value < _SHOWN_UP_TO_PCT else f">{_SHOWN_UP_TO_PCT:.0f}%"


def detects(case: CaseResult) -> str:
    """The slowdown, or where a speedup is asked for the speedup, that would have been seen."""
    if case.detectable_pct is None or case.at_least is None:
        return percent(case.detectable_pct)
    return f"below {1 / (1 + case.detectable_pct / 100):.4f}"


def tolerance(result: GateResult) -> str:
    """The check's tolerance, and those that cases have of their own."""
    own = [case.tolerance for case in result.cases if case.tolerance != result.tolerance]
    usual = f"{100 * result.tolerance:g}%"
    if not own:
        return usual
    others = " and ".join(f"{100 * one:g}%" for one in sorted(set(own))[:3])
    return f"{usual} ({others} in {counted(len(own), 'case')})"


def speedup(case: CaseResult) -> str:
    """The estimate with its interval as judged."""
    if case.speedup is None:
        return ""
    return f"{case.speedup.estimate:.4f} [{case.speedup.low:.4f}, {case.speedup.high:.4f}]"


def verdict(case: CaseResult) -> str:
    """The verdict with the words that qualify it."""
    return f"{case.verdict.value}: {plain(case.note)}" if case.note else case.verdict.value


def revision(info: RevisionInfo) -> str:
    """What one side is, for a reader."""
    ref = plain(info.ref)
    if info.commit is None:
        return ref
    commit = plain(info.commit[:_SHORT_COMMIT])
    if info.dirty:
        changes = counted(len(info.changed_files), "uncommitted change")
        return f"{ref} on {commit} with {changes}"
    return commit if commit.startswith(ref) else f"{ref} at {commit}"


def headline(result: GateResult, name: Callable[[str], str] = plain) -> str:
    """The one sentence that a reader needs; it never says pass where nothing was measured.

    Args:
        result: finished or not.
        name: writes a revision's name, which is a user's text.
    """
    said = _whole_headline(result, name)
    if result.shard is None:
        return said
    return f"{said.removesuffix('.')}; this is part {result.shard} of the cases."


def _whole_headline(result: GateResult, name: Callable[[str], str]) -> str:
    compared = sum(case.verdict in _COMPARED for case in result.cases)
    worst = _worst(result.cases)
    against = f"than {name(revision(result.baseline))}"
    if not result.complete:
        return f"The check did not finish: {counted(len(result.cases), 'case')} measured."
    if result.verdict is Outcome.NOTHING_COMPARED or (not compared and not worst):
        return "Nothing was compared, so this is no pass."
    if result.verdict is Outcome.PASS and not result.accepted:
        return f"No case is slower {against}: {counted(compared, 'case')} compared."
    (kind, count), *others = worst
    first = f"{count} of {counted(len(result.cases), 'case')} {_are(count)} {kind.value}"
    than = f" {_than(result, name, against)}" if kind is Verdict.SLOWER else ""
    parts = [first + than]
    if others:
        parts.append(", ".join(f"{count} {kind.value}" for kind, count in others))
    if result.accepted:
        parts.append(f"{len({one.case for one in result.accepted})} accepted")
    return "; ".join(parts) + "."


def _than(result: GateResult, name: Callable[[str], str], against: str) -> str:
    """What the slower cases were compared with."""
    if result.baseline.commit is None:  # the baseline is the reference itself
        return against
    slower = [case for case in result.cases if case.verdict is Verdict.SLOWER]
    further = {case.against for case in slower if case.against}
    own = [case.reference is None for case in slower if not case.against]
    named = ["baseline"] if any(own) else []
    if named and all(own) and not further:
        return against
    named += ["the reference"] if not all(own) else []
    named += [name(info.ref) for info in result.further_baselines if info.ref in further]
    words = [one.removeprefix("the ") for one in named] if len(named) > 1 else named
    return f"than {' or '.join(words)}"


def counts(cases: Sequence[CaseResult]) -> str:
    """How many cases have each verdict, worst first."""
    number = Counter(case.verdict for case in cases)
    return ", ".join(f"{number[kind]} {kind.value}" for kind in VERDICT_ORDER if number[kind])


def tracebacks(cases: Sequence[CaseResult]) -> list[tuple[list[str], str]]:
    """Each traceback once, under the ids of all cases that ended alike on either side."""
    found: dict[tuple[str, int], tuple[list[str], str]] = {}
    for case in ordered(cases):
        for detail in (reason.detail.rstrip() for reason in case.reasons):
            if not detail:
                continue
            lines = detail.splitlines()  # paths differ by side, what it ended with does not
            ids, _ = found.setdefault((lines[-1], len(lines)), ([], detail))
            ids.extend([] if case.id in ids else [case.id])
    return list(found.values())


def next_step(result: GateResult) -> str:
    """What a reader can do now, empty where there is nothing to do."""
    kinds = {case.verdict for case in result.cases}
    if kinds == {Verdict.ADDED}:
        return _NOTHING_YET
    if Verdict.SLOWER in kinds:
        return _closer_look(result)
    if {case.note for case in result.cases if case.verdict is Verdict.WRONG} == {MORE_MEMORY}:
        return "allocate less, or let more pass with --memory-tolerance"
    if (text := next((text for kind, text in _NEXT.items() if kind in kinds), "")) != "":
        return text
    return _narrower(result) if Verdict.INCONCLUSIVE in kinds else ""


def _narrower(result: GateResult) -> str:
    """What may decide an inconclusive case; one that waits for its second measurement needs it."""
    notes = {case.note for case in result.cases if case.verdict is Verdict.INCONCLUSIVE}
    if notes == {UNCONFIRMED}:
        return "check again, since what looked slower has to be measured a second time"
    narrower = f"narrow the intervals (--processes {_finer(result)})"
    wider = _WIDER * result.tolerance
    if wider >= 1:
        return narrower
    return f"{narrower}, or raise the tolerance (--tolerance {100 * wider:g}%)"


def _finer(result: GateResult) -> int:
    """Worker processes a side that make narrower intervals than the check's own."""
    return min(MOST_PROCESSES, max(_FINER_PROCESSES, 2 * result.processes))


def _closer_look(result: GateResult) -> str:
    if result.baseline.commit is None:
        return f"measure more finely: add --processes {_finer(result)}"
    case = next(case for case in result.cases if case.verdict is Verdict.SLOWER)
    words = ["sns-gate", "check", *_revisions(result)]
    if case.against is not None:
        words += ["--also-against", case.against]
    plain_id = case.id.removesuffix(f" on {case.machine}").removesuffix(f" against {case.against}")
    words += ["--filter", plain_id, *_conditions(result, case)]
    words += ["--processes", str(_finer(result))]
    # Results may be anybody's, and a launcher is run: nobody is handed one of a result's own.
    same = ", with the same --launcher" if _where(result, case)[0] else ""
    return f"measure it alone and more finely{same}: {' '.join(map(shlex.quote, words))}"


def _conditions(result: GateResult, case: CaseResult) -> list[str]:
    """Options without which it would be judged by another tolerance, or measured elsewhere."""
    options = []
    if result.tolerance != Settings().tolerance:
        options += ["--tolerance", f"{100 * result.tolerance:g}%"]
    if _where(result, case)[1] == "cpu":
        options += ["--device", "cpu"]
    return options


def _where(result: GateResult, case: CaseResult) -> tuple[str, str]:
    """The launcher that led there, empty where none did, and the device."""
    launcher, _, device = (case.device or result.device).rpartition(": ")
    return launcher, device


def _revisions(result: GateResult) -> list[str]:
    """Options that name both revisions again, where they were named."""
    options = []
    if not result.baseline.ref.startswith("merge base"):
        options += ["--baseline", result.baseline.ref]
    if result.candidate.ref != "working tree":
        options += ["--candidate", result.candidate.ref]
    return options


def command(result: GateResult) -> str:
    """What measures the same again, on such a machine and with the repository's settings."""
    return " ".join(map(shlex.quote, _command(result)))


def _command(result: GateResult) -> Iterator[str]:
    if result.baseline.commit is None:
        yield from ("sns-gate", "compare", result.candidate.ref, result.baseline.ref)
        asked = next((case.at_least for case in result.cases if case.at_least is not None), None)
        if asked is not None:
            yield from ("--at-least", f"{asked:g}")
    else:
        yield from ("sns-gate", "check", "--baseline", result.baseline.commit)
    if result.candidate.commit:
        yield from ("--candidate", result.candidate.commit)
    yield from ("--tolerance", f"{100 * result.tolerance:g}%")
    yield from ("--processes", str(result.processes), "--placements", str(result.placements))
    yield from ("--seed", str(result.seed))


def ordered(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Worst verdicts first, otherwise in the order of the check."""
    return sorted(cases, key=lambda case: VERDICT_ORDER.index(case.verdict))


def needs_a_look(case: CaseResult) -> bool:
    """Whether a case is anything but judged and fine."""
    return VERDICT_ORDER.index(case.verdict) < VERDICT_ORDER.index(Verdict.FASTER)


def _worst(cases: Sequence[CaseResult]) -> list[tuple[Verdict, int]]:
    number = Counter(case.verdict for case in cases)
    bad = VERDICT_ORDER[: VERDICT_ORDER.index(Verdict.FASTER)]
    return [(kind, number[kind]) for kind in bad if number[kind]]


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
