"""A result and a running check for people at a terminal, or in a log."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from sns_gate.report import scale, words
from sns_gate.report.inside import sentence
from sns_gate.types import CaseResult, GateResult, Outcome, Reason, Verdict

_STYLES = {
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
_OUTCOME_STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red"}
PLOT_WIDTH = 23
_PLOT_MIN_CONSOLE = 120
_LOG_WIDTH = 140
_UNICODE_MARKS = {"edge": "┊", "one": "│", "line": "─", "point": "●", "left": "◂", "right": "▸"}
_ASCII_MARKS = {"edge": ":", "one": "|", "line": "-", "point": "o", "left": "<", "right": ">"}
_TRACEBACK_LINES = 12


def console_for(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Console:
    """A console that honours NO_COLOR, the terminal's width and its encoding.

    A runner's log is no terminal, even where it poses as one: it has lines and no width.
    """
    plain = not stream.isatty() or bool(environment.keys() & {"CI", "GITHUB_ACTIONS"})
    return _Console(
        file=stream,
        highlight=False,
        soft_wrap=plain,
        width=_LOG_WIDTH if plain else None,
        force_interactive=False if plain else None,
    )


class _Console(Console):
    """Falls silent where its reader has left; what is under way goes on, and its result counts."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on, and leave the exit code to whoever knows it."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def render(result: GateResult, console: Console) -> None:
    """Print everything about a finished check that fits a terminal."""
    console.print()
    console.print(_table(result, console))
    for line in _remarks(result):
        console.print(line)
    style = _OUTCOME_STYLES.get(result.verdict, "bold yellow")
    console.print()
    console.print(Text(words.headline(result), style=style))
    console.print(_facts(result))
    step = words.next_step(result)
    if step:
        console.print(Text(f"Next: {step}"))


def _table(result: GateResult, console: Console) -> RenderableType:
    marks = _ASCII_MARKS if _ascii_only(console) else _UNICODE_MARKS
    plotted = console.width >= _PLOT_MIN_CONSOLE
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("case", overflow="fold")
    table.add_column("baseline", justify="right", no_wrap=True)
    table.add_column("candidate", justify="right", no_wrap=True)
    table.add_column("speedup [95% interval]", no_wrap=True)
    if plotted:
        title = f"slower {marks['left']}{'':^7}{marks['right']} faster"
        table.add_column(title, no_wrap=True, min_width=PLOT_WIDTH)
    table.add_column("detects", justify="right", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    table.add_column("tier", justify="center", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    reach = scale.reach(result.cases)
    for case in words.ordered(result.cases):
        row = [
            Text(words.plain(case.id)),
            words.duration(case.baseline_ms),
            words.duration(case.candidate_ms),
            words.speedup(case),
            *([plot(case, reach, marks)] if plotted else []),
            words.detects(case),
            case.mode or "",
            case.tier.value if case.tier else "",
            Text(words.verdict(case), style=_STYLES[case.verdict]),
        ]
        table.add_row(*row)
    return table


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
    return Text("".join(cells), style=_STYLES[case.verdict])


def _remarks(result: GateResult) -> list[Text]:
    """Reasons of the cases that need them, then what holds for the whole check."""
    lines = []
    shown: dict[tuple[str, str], list[str]] = {}
    for case in words.ordered(result.cases):
        for reason in case.reasons:
            shown.setdefault((reason.code, reason.text), []).append(case.id)
            if reason.detail and case.verdict in (Verdict.BROKEN, Verdict.WRONG):
                lines.extend(_detail(case, reason))
    remarks = [
        Text.assemble(
            (f"{_cases(ids, result)}: ", "bold"), f"{words.plain(text)} ", (f"[{code}]", "dim")
        )
        for (code, text), ids in shown.items()
    ]
    remarks += [
        Text.assemble(f"{words.plain(reason.text)} ", (f"[{reason.code}]", "dim"))
        for reason in result.disclosures
    ]
    causes = [
        Text.assemble((f"{words.plain(case.id)}: ", "bold"), words.plain(sentence(found)))
        for case in words.ordered(result.cases)
        if (found := case.explanation) is not None
    ]
    shown_lines = [*lines, *causes, *remarks]
    return [Text(""), *shown_lines] if shown_lines else []


def _detail(case: CaseResult, reason: Reason) -> list[Text]:
    last = reason.detail.rstrip().splitlines()[-_TRACEBACK_LINES:]
    return [
        Text(f"{words.plain(case.id)}:", style="bold"),
        *(Text(f"  {words.plain(t)}", "dim") for t in last),
    ]


def _cases(ids: list[str], result: GateResult) -> str:
    if len(ids) == len(result.cases) and len(ids) > 1:
        return "all cases"
    few = 3
    return ", ".join(map(words.plain, ids[:few])) + (
        f" and {len(ids) - few} more" if len(ids) > few else ""
    )


def _facts(result: GateResult) -> Text:
    found = result.candidate.fingerprint
    machine = ""
    if found is not None:
        parts = (
            found.gpu_name or found.cpu_model,
            found.driver_version and f"driver {found.driver_version}",
            found.torch_version and f"torch {found.torch_version}",
            found.triton_version and f"triton {found.triton_version}",
            found.python_version and f"Python {found.python_version}",
        )
        machine = ", ".join(part for part in parts if part)
    seconds = f"{result.seconds:.0f} s, seed {result.seed}"
    lines = [
        f"{words.counts(result.cases)}; tolerance {100 * result.tolerance:g}%",
        f"baseline {words.revision(result.baseline)}, candidate {words.revision(result.candidate)}",
        f"{result.device}: {machine}; {result.processes} processes a side, {seconds}",
    ]
    return Text("\n".join(lines), style="dim")


def _ascii_only(console: Console) -> bool:
    return not (console.encoding or "").lower().startswith("utf")


def progress_for(console: Console) -> LiveProgress | PlainProgress:
    """A bar where somebody watches, lines where a log is kept."""
    return LiveProgress(console) if console.is_interactive else PlainProgress(console)


class LiveProgress:
    """A bar, the case at hand, its interval narrowing and the time left."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("", total=None, left="")
        self._clock = _Remaining()

    def start(self) -> None:
        """Begin to draw."""
        self._bar.start()

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self._bar.stop()

    def stage(self, text: str) -> None:
        """A stage that takes seconds begins."""
        self._bar.update(self._task, description=text, total=None, left="")

    def cases_known(self, count: int) -> None:
        """So many cases will be measured."""
        self._clock.expect(count)

    def case_started(self, case: str, *, confirming: bool) -> None:
        """A case's measurement begins."""
        self._clock.confirming = confirming
        text = f"{words.plain(case)}: {'preparing again' if confirming else 'preparing'}"
        self._bar.update(self._task, description=text, total=1.0, completed=0.0)

    def block_done(self, case: str, done: int, planned: int, half_width: float | None) -> None:
        """A block is done."""
        width = "" if half_width is None else f" ±{100 * half_width:.2f}%"
        text = f"{self._clock.position} {words.plain(case)}{width}"
        left = self._clock.left(done / planned)
        self._bar.update(self._task, description=text, total=planned, completed=done, left=left)

    def case_finished(self, result: CaseResult) -> None:
        """A case has its verdict."""
        self._clock.case_done()
        self._bar.console.print(_finished(result))


class PlainProgress:
    """One line a stage and a case, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = _Remaining()

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing to end."""

    def stage(self, text: str) -> None:
        """A stage that takes seconds begins."""
        self._console.print(Text(text))

    def cases_known(self, count: int) -> None:
        """So many cases will be measured."""
        self._clock.expect(count)

    def case_started(self, case: str, *, confirming: bool) -> None:
        """A case's measurement begins."""
        del case
        self._clock.confirming = confirming

    def block_done(self, case: str, done: int, planned: int, half_width: float | None) -> None:
        """Blocks make no line."""
        del case, done, planned, half_width

    def case_finished(self, result: CaseResult) -> None:
        """A case has its verdict."""
        position = self._clock.position
        self._clock.case_done()
        self._console.print(Text.assemble(f"{position} ", _finished(result)))


class _Remaining:
    """Estimates the time left from the cases done so far."""

    def __init__(self) -> None:
        self.confirming = False
        self._expected, self._done = 0, 0
        self._start_s = time.monotonic()

    def expect(self, count: int) -> None:
        self._expected, self._start_s = count, time.monotonic()

    def case_done(self) -> None:
        self._done += not self.confirming

    @property
    def position(self) -> str:
        return "again:" if self.confirming else f"{self._done + 1}/{self._expected}"

    def left(self, share_of_case: float) -> str:
        progress = self._done + share_of_case
        if self.confirming or progress < 0.2:  # noqa: PLR2004 (too early to tell)
            return ""
        spent_s = time.monotonic() - self._start_s
        return f"{spent_s / progress * max(0.0, self._expected - progress):.0f} s left"


def _finished(result: CaseResult) -> Text:
    verdict = words.verdict(result)
    return Text.assemble(
        f"{words.plain(result.id)}  ",
        (verdict, _STYLES[result.verdict]),
        f"  {words.speedup(result)}",
    )


__all__ = ["LiveProgress", "PlainProgress", "console_for", "plot", "progress_for", "render"]
