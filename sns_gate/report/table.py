"""The table of cases at a terminal: what does not fit its width is left out, least needed first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sns_gate.plain import plain
from sns_gate.report import scale, words
from sns_gate.types import CaseResult, Verdict

STYLES = {
    Verdict.SLOWER: "bold red",
    Verdict.WRONG: "bold red",
    Verdict.BROKEN: "bold red",
    Verdict.REMOVED: "yellow",
    Verdict.REFUSED: "yellow",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.FASTER: "bold green",
    Verdict.NOT_SLOWER: "green",
    Verdict.ADDED: "cyan",
    Verdict.UNCHANGED: "green",
}
PLOT_WIDTH = 23
UNICODE_MARKS = {"edge": "┊", "one": "│", "line": "─", "point": "●", "left": "◂", "right": "▸"}
ASCII_MARKS = {"edge": ":", "one": "|", "line": "-", "point": "o", "left": "<", "right": ">"}
_LEAST_CASE_WIDTH, _MOST_CASE_WIDTH, _LEAST_VERDICT_WIDTH = 14, 40, 13


@dataclass(frozen=True)
class _Column:
    """A column, and the width of the console from which it is shown."""

    title: str
    cell: Callable[[CaseResult], str | Text]
    needs: int = 0
    right: bool = False
    fold: bool = False
    least: int | None = None


def table(cases: Sequence[CaseResult], console: Console) -> RenderableType:
    """A row a case, worst verdicts first.

    Args:
        cases: to show.
        console: whose width and encoding decide what is drawn.
    """
    marks = ASCII_MARKS if ascii_only(console) else UNICODE_MARKS
    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    longest = max((len(case.id) for case in cases), default=0)
    # A name is worth more than what may be left out, up to a length.
    named = max(_LEAST_CASE_WIDTH, min(longest, _MOST_CASE_WIDTH, console.width // 3))
    wide = named - _LEAST_CASE_WIDTH
    columns = [
        one for one in _columns(cases, marks) if not one.needs or console.width >= one.needs + wide
    ]
    for one in columns:
        made.add_column(
            one.title,
            justify="right" if one.right else "left",
            overflow="fold" if one.fold else "ellipsis",
            no_wrap=not one.fold,
            min_width=named if one.title == "case" else one.least,
        )
    for case in words.ordered(cases):
        made.add_row(*(one.cell(case) for one in columns))
    return made


def _columns(cases: Sequence[CaseResult], marks: dict[str, str]) -> list[_Column]:
    reach = scale.reach(cases)
    axis = f"slower {marks['left']}{'':^7}{marks['right']} faster"
    return [
        _Column("case", lambda case: Text(plain(case.id)), fold=True, least=_LEAST_CASE_WIDTH),
        _Column("baseline", lambda case: words.duration(case.baseline_ms), 80, right=True),
        _Column("candidate", lambda case: words.duration(case.candidate_ms), 80, right=True),
        _Column("speedup [95% interval]", words.speedup, 55, least=len("1.0000 [1.0000, 1.0000]")),
        _Column(axis, lambda case: plot(case, reach, marks), 120, least=PLOT_WIDTH),
        _Column("detects", words.detects, 100, right=True),
        _Column("mode", lambda case: Text(plain(case.mode or "")), 104),
        _Column("tier", lambda case: case.tier.value if case.tier else "", 92),
        _Column(
            "verdict",
            lambda case: Text(words.verdict(case), style=STYLES[case.verdict]),
            fold=True,
            least=_LEAST_VERDICT_WIDTH,
        ),
    ]


def plot(case: CaseResult, reach: float, marks: dict[str, str]) -> Text:
    """The interval as a line around its estimate, between marks for the tolerance.

    Args:
        case: with or without an interval.
        reach: what the plot's edge stands for, in tolerances on the asinh scale.
        marks: the characters to draw with.
    """
    if case.speedup is None:
        return Text("")
    cells = [" "] * PLOT_WIDTH

    def cell(speedup: float) -> int:
        place = scale.place(speedup, case.tolerance, reach)
        return round((1 + place) * (PLOT_WIDTH - 1) / 2)

    cells[cell(1)] = marks["one"]
    for edge in (1 + case.tolerance, case.least):
        cells[cell(edge)] = marks["edge"]
    for index in range(cell(case.speedup.low), cell(case.speedup.high) + 1):
        cells[index] = marks["line"]
    cells[cell(case.speedup.estimate)] = marks["point"]
    return Text("".join(cells), style=STYLES[case.verdict])


def ascii_only(console: Console) -> bool:
    """Whether the console takes nothing but ASCII."""
    return not (console.encoding or "").lower().startswith("utf")
