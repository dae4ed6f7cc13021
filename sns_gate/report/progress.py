"""A running check for people who wait: a bar, lines for a log, more lines, or none."""

from __future__ import annotations

import math
import time
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from sns_gate.plain import plain
from sns_gate.report import words
from sns_gate.report.table import STYLES
from sns_gate.report.terminal import command
from sns_gate.session import Standing
from sns_gate.types import CaseResult

Detail = Literal["quiet", "usual", "verbose"]


def progress_for(
    console: Console, detail: Detail = "usual"
) -> LiveProgress | PlainProgress | NoProgress:
    """A bar where somebody watches, lines where a log is kept.

    Args:
        console: to draw on.
        detail: ``quiet`` draws nothing, ``verbose`` writes a line a block.
    """
    if detail == "quiet":
        return NoProgress()
    if console.is_interactive and detail == "usual":
        return LiveProgress(console)
    return PlainProgress(console, blocks=detail == "verbose")


class NoProgress:
    """Hears everything and says nothing."""

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing to end."""

    def stage(self, text: str) -> None:
        """Said by nobody."""

    def cases_known(self, count: int) -> None:
        """Said by nobody."""

    def case_started(self, case: str, *, confirming: bool) -> None:
        """Said by nobody."""

    def block_done(self, case: str, standing: Standing) -> None:
        """Said by nobody."""

    def case_finished(self, result: CaseResult) -> None:
        """Said by nobody."""


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
        text = f"{plain(case)}: {'preparing again' if confirming else 'preparing'}"
        self._bar.update(self._task, description=text, total=1.0, completed=0.0)

    def block_done(self, case: str, standing: Standing) -> None:
        """A block is done."""
        text = f"{self._clock.position} {plain(case)}  {_stands(standing)}"
        left = self._clock.left(standing.blocks / standing.planned)
        self._bar.update(
            self._task,
            description=text,
            total=standing.planned,
            completed=standing.blocks,
            left=left,
        )

    def case_finished(self, result: CaseResult) -> None:
        """A case has its verdict."""
        self._clock.case_done()
        self._bar.console.print(_finished(result))


class PlainProgress:
    """One line a stage and a case, for logs.

    Args:
        console: to write to.
        blocks: whether each block has a line too.
    """

    def __init__(self, console: Console, *, blocks: bool = False) -> None:
        self._console = console
        self._clock = _Remaining()
        self._blocks = blocks

    def start(self) -> None:
        """Have GitHub fold the lines away, under a title."""
        command(self._console, "::group::sns-gate: measuring")

    def stop(self) -> None:
        """End that."""
        command(self._console, "::endgroup::")

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

    def block_done(self, case: str, standing: Standing) -> None:
        """A block is done."""
        if self._blocks:
            done = f"block {standing.blocks} of {standing.planned}"
            self._console.print(Text(f"  {plain(case)}  {done}  {_stands(standing)}"))

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
        if count <= self._done:  # all of an earlier check's are done: another one begins
            self._expected, self._done = 0, 0
        if not self._expected:
            self._start_s = time.monotonic()
        self._expected = count

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


def _stands(standing: Standing) -> str:
    """Pairs so far, the interval as it narrows, and the tier so far."""
    parts = [f"{standing.pairs} pairs"]
    if standing.estimate is not None:
        found = standing.estimate
        half_width = 100 * found.half_width()
        parts.append(f"{math.exp(found.log_speedup):.4f} ±{half_width:.2f}%")
    return "  ".join([*parts, f"tier {standing.tier.value}"])


def _finished(result: CaseResult) -> Text:
    verdict = words.verdict(result)
    return Text.assemble(
        f"{plain(result.id)}  ",
        (verdict, STYLES[result.verdict]),
        f"  {words.speedup(result)}",
    )
