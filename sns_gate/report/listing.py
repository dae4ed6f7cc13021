"""The cases that a check would measure, where each is written, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sns_gate.discovery import repeated_ids
from sns_gate.plain import plain
from sns_gate.protocol import CaseSpec, LoadFailure
from sns_gate.report.words import counted, roughly
from sns_gate.types import GateResult

#: Of a first rotation, where no earlier result says better: setting up, settling and sampling.
BLOCK_S = 0.15
#: What a result's time holds besides measuring its cases for the first time.
BESIDE = "starting workers and measuring again what looks slower"


@dataclass(frozen=True)
class Earlier:
    """What an earlier check took.

    Attributes:
        seconds: its cases, by id.
        beside_s: all else in its result's time, None where it did not finish or there was none.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    beside_s: float | None = None

    @classmethod
    def of(cls, result: GateResult) -> Self:
        """Of its result."""
        seconds = {case.id: case.seconds for case in result.cases if case.seconds}
        beside_s = max(0.0, result.seconds - sum(seconds.values()))
        return cls(seconds, beside_s if result.complete else None)


def render(
    cases: Sequence[CaseSpec],
    failures: Sequence[LoadFailure],
    earlier: Earlier,
    blocks: int,
    root: Path,
    console: Console,
) -> None:
    """Print a row a case, then what does not load and what all of it may take.

    Args:
        cases: in their order.
        failures: files that do not load.
        earlier: what a check took before.
        blocks: of a first rotation.
        root: folder that files are named relative to.
        console: to print to.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("case", overflow="fold")
    table.add_column("defined at", overflow="fold")
    table.add_column("measuring", justify="right", no_wrap=True)
    total_s, seconds = 0.0, earlier.seconds
    for case in cases:
        known = seconds.get(case.id)
        total_s += known if known is not None else blocks * BLOCK_S
        took = f"~{roughly(blocks * BLOCK_S)}" if known is None else roughly(known)
        table.add_row(Text(plain(case.id)), Text(f"{_short(case.file, root)}:{case.line}"), took)
    console.print(table)
    for failure in failures:
        console.print(
            Text(f"{_short(failure.file, root)} does not load: {plain(failure.error)}", "red")
        )
    for id_ in repeated_ids(case.id for case in cases):
        console.print(
            Text(f"'{plain(id_)}' is the id of several cases; give one @benchmark(name=...)", "red")
        )
    if not cases:
        console.print(Text("no case to measure", "dim"))
        return
    known = sum(case.id in seconds for case in cases)
    basis = f", {known} of them from the last result" if known else ""
    then = "" if earlier.beside_s is None else f", {roughly(earlier.beside_s)} last time"
    text = (
        f"{counted(len(cases), 'case')}, about {roughly(total_s)} of measuring{basis}; "
        f"{BESIDE} come on top{then}, and so does building"
    )
    console.print(Text(text, "dim"))


def _short(file: str, root: Path) -> str:
    path = Path(file)
    return plain(str(path.relative_to(root)) if path.is_relative_to(root) else file)
