"""A result as GitHub-flavoured Markdown: comment, summary and title; no user's text acts in it."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sns_gate.report import causes, words
from sns_gate.report.neutral import block, code, prose, together
from sns_gate.types import CaseResult, EnvironmentFingerprint, GateResult, Reason, Verdict

#: A comment may have 65,536 characters, a check's summary as many bytes; the rest is room for what
#: GitHub makes of them.
MOST_BYTES = 60_000
#: Rows that stand open; more of them bury the conversation.
_MOST_ROWS = 30
_TRACEBACKS, _TRACEBACK_LINES = 3, 15
_SHORT_TEXT = 100
_MARKS = {
    Verdict.SLOWER: "🔴",
    Verdict.WRONG: "🔴",
    Verdict.BROKEN: "🔴",
    Verdict.REMOVED: "🟡",
    Verdict.REFUSED: "🟡",
    Verdict.INCONCLUSIVE: "🟡",
    Verdict.FASTER: "🟢",
    Verdict.NOT_SLOWER: "🟢",
    Verdict.ADDED: "🔵",
    Verdict.UNCHANGED: "⚪",
}
#: Verdicts of a check that may count as success without being one.
_DOUBTFUL = (Verdict.REMOVED, Verdict.BROKEN, Verdict.REFUSED, Verdict.INCONCLUSIVE)
#: Verdicts that a reviewer need not see first.
_QUIET = Verdict.UNCHANGED
_USUAL_LEVEL = 0.95
_RULE = "|---|---|---|--:|--:|--:|:-:|"
#: What a reader must see before believing the rest.
_UP_FRONT = ("policy-success", "policy-from-baseline", "unconfirmed", "dirty")


@dataclass(frozen=True)
class Section:
    """A part of the comment that may be left out where there is too much.

    Attributes:
        name: what a reader is told is missing.
        worth: the higher, the longer it stays.
        text: of it.
    """

    name: str
    worth: int
    text: str


def comment(result: GateResult, *, run_url: str = "", most: int = MOST_BYTES) -> str:
    """The whole comment, without the marker that it is found by.

    Args:
        result: finished or not.
        run_url: of the workflow run, empty where there is none.
        most: bytes it may have; whole sections are dropped and named, slower cases last.
    """
    notable = [case for case in words.ordered(result.cases) if case.verdict is not _QUIET]
    opening = _opening(result, run_url)
    table = _table(result, notable[:_MOST_ROWS])
    said = causes.said(notable)
    following = f"**Next:** {prose(step)}" if (step := words.next_step(result)) else ""
    more = notable[_MOST_ROWS:]
    kept = [
        section
        for section in (
            Section("further cases", 2, _folded_table(result, more, "further case")),
            Section("reasons", 4, _reasons(result)),
            Section("tracebacks", 5, _tracebacks(result)),
            Section("where the time went", 4, _causes(notable)),
            Section("unchanged cases", 1, _unchanged(result)),
            Section("how it was measured", 3, _measured(result)),
        )
        if section.text
    ]
    dropped: list[str] = []
    while True:
        note = f"_Left out for length: {', '.join(dropped)}; see the result file._"
        folds = (section.text for section in kept)
        parts = (opening, table, said, following, *folds, note if dropped else "")
        text = "\n\n".join(filter(None, parts))
        if _bytes(text) <= most:
            return text
        if not kept:
            return _shortened(result, opening, notable, most)
        least = min(kept, key=lambda section: section.worth)
        kept.remove(least)
        dropped.append(least.name)


def _bytes(text: str) -> int:
    return len(text.encode())


def _opening(result: GateResult, run_url: str) -> str:
    lines = [
        f"### {_title_mark(result)} {words.headline(result, code)}",
        _in_short(result, run_url),
    ]
    lines += _acceptances(result)
    lines += [f"> {_sentence(reason)}" for reason in result.disclosures if reason.code in _UP_FRONT]
    return "\n\n".join(filter(None, lines))


def _title_mark(result: GateResult) -> str:
    if result.conclusion == "failure":
        return "🔴"
    doubtful = any(case.verdict in _DOUBTFUL for case in result.cases)
    compared = result.conclusion == "success" and result.cases and result.exit_code == 0
    return "🟢" if compared and not doubtful and not result.accepted else "🟡"


def _in_short(result: GateResult, run_url: str) -> str:
    """Counts, which commit this is about, what slower means, where it ran."""
    found = result.candidate.fingerprint
    tiers = sorted({case.tier.value for case in result.cases if case.tier})
    names = [one.name for one in result.machines]
    gpu = (found.gpu_name or found.cpu_model or result.device) if found else result.device
    parts = (
        words.counts(result.cases),
        f"candidate {code(words.revision(result.candidate))}",
        *(f"also against {code(words.revision(one))}" for one in result.further_baselines),
        f"slower means by more than {words.tolerance(result)}",
        prose(" and ".join(names) or gpu),
        f"tier {' and '.join(tiers)}" if tiers else "",
        f"[run]({run_url})" if run_url else "",
    )
    return " · ".join(filter(None, parts))


def _acceptances(result: GateResult) -> Iterator[str]:
    """Who accepted which cases, how and why; what one person said of several is said once."""
    said: dict[tuple[str, str, str], list[str]] = {}
    for one in result.accepted:
        said.setdefault((one.by, one.how, one.reason), []).append(one.case)
    for (by, how, reason), cases in said.items():
        why = prose(reason) if reason else "no reason was given"
        yield f"> Accepted by {code(by)} ({how}): {_named(cases, len(result.cases))}. {why}"


def title(result: GateResult) -> str:
    """The check's one line: how many cases of which verdict, and what an odd exit code means."""
    counts = words.counts(result.cases) or "nothing was compared"
    if result.accepted:
        counts += f"; {len({one.case for one in result.accepted})} accepted"
    if any(reason.code == "policy-success" for reason in result.disclosures):
        return f"{counts}; counted as success by the policy"
    if result.conclusion == "neutral":
        return f"{counts}; neutral by the policy, no verdict was reached"
    return counts


def _table(result: GateResult, cases: Sequence[CaseResult]) -> str:
    accepted = {one.case for one in result.accepted}
    rows = [_row(case, accepted) for case in cases]
    return "\n".join([_head(result), _RULE, *rows]) if cases else ""


def _head(result: GateResult) -> str:
    usual = all(case.speedup.level == _USUAL_LEVEL for case in result.cases if case.speedup)
    interval = "95%&nbsp;interval" if usual else "interval"
    return f"| verdict | case | speedup, {interval} | detects | baseline | candidate | tier |"


def _row(case: CaseResult, accepted: Collection[str]) -> str:
    verdict = together(f"{_MARKS[case.verdict]} {case.verdict.value}")
    note = f": {prose(case.note, _SHORT_TEXT)}" if case.note else ""
    speedup = f"**{case.speedup.estimate:.4f}** " if case.speedup else ""
    interval = words.speedup(case).partition(" ")[2]
    why = prose(case.reasons[0].text, _SHORT_TEXT) if _needs_a_reason(case) else ""
    cells = (
        verdict + note + (", accepted" if case.id in accepted else ""),
        code(case.id),
        together(speedup + interval) or why,
        together(words.detects(case)),
        together(words.duration(case.baseline_ms)),
        together(words.duration(case.candidate_ms)),
        case.tier.value if case.tier else "",
    )
    return f"| {' | '.join(cells)} |"


def _needs_a_reason(case: CaseResult) -> bool:
    """Whether the row would say nothing beside its verdict; added and removed are all there is."""
    told = case.verdict in (Verdict.ADDED, Verdict.REMOVED)
    return case.speedup is None and bool(case.reasons) and not told


def _shortened(result: GateResult, opening: str, cases: Sequence[CaseResult], most: int) -> str:
    """Where even the table is too long: its first rows, which are the worst, and how many more."""
    accepted = {one.case for one in result.accepted}
    head = _head(result)
    rows, room = [], most - _bytes(opening + head + _RULE) - 200
    for case in cases:
        row = _row(case, accepted)
        room -= _bytes(row) + 1
        if room < 0:
            break
        rows.append(row)
    more = len(cases) - len(rows)
    note = f"_Left out for length: {more} further cases and all details; see the result file._"
    return "\n\n".join([opening, "\n".join([head, _RULE, *rows]), note])


def _unchanged(result: GateResult) -> str:
    cases = [case for case in result.cases if case.verdict is _QUIET]
    seen = sorted(case.detectable_pct for case in cases if case.detectable_pct is not None)
    saw = ""
    if seen:
        low, high = f"{seen[0]:.1f}", f"{seen[-1]:.1f}"
        saw = f"; a slowdown of {low}{'' if low == high else f' to {high}'}% would have been seen"
    return _folded_table(result, cases, "unchanged case", saw)


def _folded_table(
    result: GateResult, cases: Sequence[CaseResult], name: str, addition: str = ""
) -> str:
    table = _table(result, cases)
    return _folded(words.counted(len(cases), name) + addition, table) if cases else ""


def _reasons(result: GateResult) -> str:
    texts: dict[tuple[str, str], list[str]] = {}
    for case in words.ordered(result.cases):
        for reason in case.reasons:
            cases = texts.setdefault((reason.code, reason.text), [])
            cases.extend([] if case.id in cases else [case.id])
    lines = [
        f"- {_named(ids, len(result.cases))}: {prose(text)} ({html.escape(reason)})"
        for (reason, text), ids in texts.items()
    ]
    lines += [f"- {_sentence(r)}" for r in result.disclosures if r.code not in _UP_FRONT]
    return _folded("Reasons", "\n".join(lines)) if lines else ""


def _named(ids: Sequence[str], count: int) -> str:
    if len(ids) == count > 1:
        return "all cases"
    few = 5
    names = ", ".join(code(id_) for id_ in ids[:few])
    return names + (f" and {len(ids) - few} more" if len(ids) > few else "")


def _sentence(reason: Reason) -> str:
    return f"{prose(reason.text)} ({html.escape(reason.code)})"


def _causes(cases: Sequence[CaseResult]) -> str:
    tables = causes.tables(cases)
    return _folded("Where the time went, by a profiler", tables) if tables else ""


def _tracebacks(result: GateResult) -> str:
    """The ends of the first few; the rest are in the result file."""
    found = [
        f"{_named(ids, len(result.cases))}\n\n{block(detail, _TRACEBACK_LINES)}"
        for ids, detail in words.tracebacks(result.cases)
    ]
    return _folded("Tracebacks", "\n\n".join(found[:_TRACEBACKS])) if found else ""


def _measured(result: GateResult) -> str:
    levels = sorted({100 * case.speedup.level for case in result.cases if case.speedup})
    level = " and ".join(f"{level:g}%" for level in levels)
    lines = [
        *(_on_machines(result) if result.machines else _fingerprints(result)),
        "",
        f"{result.processes} processes a side, {result.placements} placements a rotation, "
        f"{result.seconds:.0f} s, seed {result.seed}, sns-gate {prose(result.tool_version)}."
        + (f" Intervals at {level}." if level else ""),
        "",
        *_again(result),
    ]
    return _folded("How it was measured", "\n".join(lines))


def _again(result: GateResult) -> Iterator[str]:
    if result.candidate.dirty:
        yield words.NOT_AGAIN
        return
    yield "Again, on such a machine and with this repository's settings:\n"
    yield block(words.command(result), 1)


def _on_machines(result: GateResult) -> Iterator[str]:
    for machine in result.machines:
        yield f"**On {prose(machine.name)}**\n"
        yield from _both(machine.baseline, machine.candidate)
        yield ""


def _fingerprints(result: GateResult) -> Iterator[str]:
    yield from _both(result.baseline.fingerprint, result.candidate.fingerprint)


def _both(
    baseline: EnvironmentFingerprint | None, candidate: EnvironmentFingerprint | None
) -> Iterator[str]:
    """What both sides share in one line; what differs as a table."""
    if baseline is None or candidate is None:
        return
    differing = baseline.differences(candidate)
    if differing:
        yield "| differs | baseline | candidate |\n|---|---|---|"
        for name in differing:
            values = (code(str(getattr(side, name))) for side in (baseline, candidate))
            yield f"| **{name.replace('_', ' ')}** | {' | '.join(values)} |"
        yield ""
    same = [
        f"{name.replace('_', ' ')} {prose(str(value))}"
        for name in EnvironmentFingerprint.model_fields
        if (value := getattr(candidate, name)) is not None and name not in differing
    ]
    yield f"Both sides: {', '.join(same)}."


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
