"""Both sides' calls beside each other, part by part, at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sns_gate.plain import plain
from sns_gate.report import inside
from sns_gate.types import Explanation

_ROWS = 15


def render(case: str, found: Explanation, console: Console) -> None:
    """Print one case's parts, the most changed first."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(inside.noun(found), overflow="fold")
    for name in ("baseline", "candidate", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for row in inside.telling(inside.changes(found), _ROWS):
        table.add_row(Text(plain(inside.short(row.name))), *map(Text, inside.cells(row)))
    console.print()
    console.print(Text.assemble((plain(case), "bold"), f": {plain(inside.sentence(found))}"))
    console.print(table)
    launches = inside.launches(found)
    if launches:
        console.print(Text(f"kernels: {launches}", style="dim"))
    for side in ("baseline", "candidate"):
        for choice in getattr(found, side).choices:
            console.print(Text(f"{side} tuned {plain(choice)}", style="dim"))
