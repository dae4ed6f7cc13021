"""A result as GitHub-flavoured Markdown: comment, summary and title; no user's text acts in it."""

from __future__ import annotations

import html
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sns_gate.report import words
from sns_gate.types import CaseResult, EnvironmentFingerprint, GateResult, Reason, Verdict

#: A comment may have 65,536 characters, a check's summary as many bytes; the rest is room for what
#: GitHub makes of them.
MOST_BYTES = 60_000
_LONGEST_TEXT = 300
_LONGEST_NAME = 120
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
#: Verdicts that a reviewer need not see first.
_QUIET = Verdict.UNCHANGED
_HEAD = "| | case | baseline | candidate | speedup, 95% interval | detects | tier | verdict |"
_RULE = "|---|---|--:|--:|---|--:|:-:|---|"


def neutral(text: str, most: int = _LONGEST_TEXT) -> str:
    """A user's text as inline code that neither Markdown, HTML nor GitHub's mentions act on.

    Mentions and references are found in what is left after entities are read, but not in code;
    tables split at pipes before that. So every character that is no letter, digit or space becomes
    an entity, all inside a code element, on one line.
    """
    shown = " ".join(words.plain(text.replace("\n", " ")).split())
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return f"<code>{''.join(_entity(shown, at) for at in range(len(shown)))}</code>"


def _entity(text: str, at: int) -> str:
    """One character; what would begin a name or an address is kept from being put together."""
    character = text[at]
    if character in " …" or character.isalnum():
        return character
    address = text.startswith("://", at) or text[max(0, at - 3) : at + 1].lower() == "www."
    joint = "&#8203;" if character in "@#" or address else ""
    return f"&#{ord(character)};{joint}"


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
    opening = _opening(result)
    accepted = {one.case for one in result.accepted}
    table = _table(notable, accepted)
    kept = [
        section
        for section in (
            Section("reasons", 3, _reasons(result)),
            Section("unchanged cases", 1, _unchanged(result)),
            Section("how it was measured", 2, _measured(result, run_url)),
        )
        if section.text
    ]
    dropped: list[str] = []
    while True:
        note = f"_Left out for length: {', '.join(dropped)}; see the result file._"
        parts = (opening, table, *(s.text for s in kept), note if dropped else "")
        text = "\n\n".join(filter(None, parts))
        if _bytes(text) <= most:
            return text
        if not kept:
            return _shortened(opening, notable, accepted, most)
        least = min(kept, key=lambda section: section.worth)
        kept.remove(least)
        dropped.append(least.name)


def _bytes(text: str) -> int:
    return len(text.encode())


def _opening(result: GateResult) -> str:
    lines = [f"### {_title_mark(result)} {_neutral_headline(result)}", words.counts(result.cases)]
    lines += _acceptances(result)
    lines += [f"> {_sentence(reason)}" for reason in result.disclosures if reason.code in _UP_FRONT]
    return "\n\n".join(filter(None, lines))


def _acceptances(result: GateResult) -> Iterator[str]:
    """Who accepted which cases, how and why; what one person said of several is said once."""
    said: dict[tuple[str, str, str], list[str]] = {}
    for one in result.accepted:
        said.setdefault((one.by, one.how, one.reason), []).append(one.case)
    for (by, how, reason), cases in said.items():
        why = neutral(reason) if reason else "no reason was given"
        yield f"> Accepted by {neutral(by)} ({how}): {_named(cases, len(result.cases))}. {why}"


#: What a reader must see before believing the rest.
_UP_FRONT = ("policy-success", "policy-from-baseline", "unconfirmed", "dirty")


def _title_mark(result: GateResult) -> str:
    if result.conclusion == "success" and result.exit_code == 0:
        return "🟢" if result.cases and not result.accepted else "🟡"
    return "🔴" if result.conclusion == "failure" else "🟡"


def _neutral_headline(result: GateResult) -> str:
    """The headline with the revision, a user's text, neutralised."""
    against = words.revision(result.baseline)
    before, found, after = words.headline(result).partition(against)
    return before + neutral(against, _LONGEST_NAME) + after if found else before


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


def _table(cases: Sequence[CaseResult], accepted: Collection[str] = ()) -> str:
    rows = [_row(case, accepted) for case in cases]
    return "\n".join([_HEAD, _RULE, *rows]) if cases else ""


def _row(case: CaseResult, accepted: Collection[str]) -> str:
    cells = (
        _MARKS[case.verdict],
        neutral(case.id, _LONGEST_NAME),
        words.duration(case.baseline_ms),
        words.duration(case.candidate_ms),
        words.speedup(case).replace("[", "&#91;").replace("]", "&#93;"),
        words.detects(case),
        case.tier.value if case.tier else "",
        case.verdict.value
        + (f": {neutral(case.note, _LONGEST_NAME)}" if case.note else "")
        + (", accepted" if case.id in accepted else ""),
    )
    return f"| {' | '.join(cells)} |"


def _shortened(
    opening: str, cases: Sequence[CaseResult], accepted: Collection[str], most: int
) -> str:
    """Where even the table is too long: its first rows, which are the worst, and how many more."""
    rows, room = [], most - _bytes(opening + _HEAD + _RULE) - 200
    for case in cases:
        row = _row(case, accepted)
        room -= _bytes(row) + 1
        if room < 0:
            break
        rows.append(row)
    more = len(cases) - len(rows)
    note = f"_Left out for length: {more} further cases and all details; see the result file._"
    return "\n\n".join([opening, "\n".join([_HEAD, _RULE, *rows]), note])


def _unchanged(result: GateResult) -> str:
    cases = [case for case in result.cases if case.verdict is _QUIET]
    if not cases:
        return ""
    return _folded(f"{words.counted(len(cases), 'unchanged case')}", _table(cases))


def _reasons(result: GateResult) -> str:
    texts: dict[tuple[str, str], list[str]] = {}
    for case in words.ordered(result.cases):
        for reason in case.reasons:
            texts.setdefault((reason.code, reason.text), []).append(case.id)
    lines = [
        f"- {neutral(text)} ({code}): {_named(ids, len(result.cases))}"
        for (code, text), ids in texts.items()
    ]
    lines += [f"- {_sentence(r)}" for r in result.disclosures if r.code not in _UP_FRONT]
    return _folded("Reasons", "\n".join(lines)) if lines else ""


def _named(ids: Sequence[str], count: int) -> str:
    if len(ids) == count > 1:
        return "all cases"
    few = 5
    names = ", ".join(neutral(id_, _LONGEST_NAME) for id_ in ids[:few])
    return names + (f" and {len(ids) - few} more" if len(ids) > few else "")


def _sentence(reason: Reason) -> str:
    return f"{neutral(reason.text)} ({html.escape(reason.code)})"


def _measured(result: GateResult, run_url: str) -> str:
    command = " ".join(map(shlex.quote, _command(result)))
    lines = [
        *_fingerprints(result),
        "",
        f"{result.processes} processes a side, {result.placements} placements a rotation, "
        f"{result.seconds:.0f} s, seed {result.seed}, tolerance {100 * result.tolerance:g}%, "
        f"sns-gate {neutral(result.tool_version, _LONGEST_NAME)}."
        + (f" [Workflow run]({run_url})." if run_url else ""),
        "",
        f"Again, on such a machine: {neutral(command)}",
    ]
    return _folded("How it was measured", "\n".join(lines))


def _command(result: GateResult) -> Iterator[str]:
    yield from ("sns-gate", "check", "--baseline", result.baseline.commit or result.baseline.ref)
    if result.candidate.commit and not result.candidate.dirty:
        yield from ("--candidate", result.candidate.commit)
    yield from ("--processes", str(result.processes), "--seed", str(result.seed))


def _fingerprints(result: GateResult) -> Iterator[str]:
    baseline, candidate = result.baseline.fingerprint, result.candidate.fingerprint
    if baseline is None or candidate is None:
        return
    differing = baseline.differences(candidate)
    yield "| | " + ("baseline | candidate |" if differing else "both sides |")
    yield "|---|---|" + ("---|" if differing else "")
    for name in EnvironmentFingerprint.model_fields:
        if getattr(candidate, name) is None and name not in differing:
            continue
        mark = "**" if name in differing else ""
        values = " | ".join(
            neutral(str(getattr(side, name)), _LONGEST_NAME)
            for side in ((baseline, candidate) if differing else (candidate,))
        )
        yield f"| {mark}{name.replace('_', ' ')}{mark} | {values} |"


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
