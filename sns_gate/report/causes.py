"""Where the time of changed cases went, as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sns_gate.report import inside
from sns_gate.report.neutral import code, prose, together
from sns_gate.types import CaseResult, Explanation

_SAID, _TABLES, _ROWS = 3, 10, 8


def said(cases: Sequence[CaseResult]) -> str:
    """One sentence for each of the first few cases that have been taken apart."""
    lines = [
        f"- {code(case.id)}: {prose(inside.sentence(case.explanation, case.verdict))}"
        for case in cases
        if case.explanation is not None
    ]
    return "\n".join(lines[:_SAID])


def tables(cases: Sequence[CaseResult]) -> str:
    """The parts of both calls beside each other, for the first cases."""
    found = [(case.id, case.explanation) for case in cases if case.explanation is not None]
    return "\n\n".join("\n".join(_table(id_, one)) for id_, one in found[:_TABLES])


def _table(id_: str, found: Explanation) -> Iterator[str]:
    launches = inside.launches(found)
    yield code(id_) + (f", {launches}" if launches else "")
    yield ""
    yield f"| {inside.noun(found)} | baseline | candidate | difference | |"
    yield "|---|--:|--:|--:|---|"
    for row in inside.telling(inside.changes(found), _ROWS):
        *times, how = inside.cells(row)
        cells = (code(inside.short(row.name)), *map(together, times), prose(how))
        yield f"| {' | '.join(cells)} |"
    for side in ("baseline", "candidate"):
        for choice in getattr(found, side).choices:
            yield f"\n{side} tuned {prose(choice)}"
