"""What a bisection found, and every commit that it measured, at a terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sns_gate.plain import plain
from sns_gate.types import Found

_STYLES = {"like bad": "bold red", "like good": "green", "skipped": "yellow"}


def render(found: Found, subject: Callable[[str], str], console: Console) -> None:
    """Print the commits that were measured, and the one that made the difference.

    Args:
        found: what came of it.
        subject: a commit's short name and the first line of its message.
        console: to print to.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("commit", "speedup over good [interval]", ""):
        table.add_column(name, overflow="fold")
    for tried in found.state.tried:
        speedup = tried.speedup
        shown = f"{speedup.estimate:.4f} [{speedup.low:.4f}, {speedup.high:.4f}]" if speedup else ""
        fate = Text(tried.fate, _STYLES[tried.fate])
        if tried.why:
            fate.append(f": {plain(tried.why)}", "dim")
        table.add_row(Text(plain(subject(tried.commit))), shown, fate)
    if found.state.tried:
        console.print(table)
    what = "slower" if found.state.effect < 0 else "faster"
    *before, culprit = found.culprits
    console.print()
    if not before:
        console.print(Text(f"{plain(subject(culprit))} made {plain(found.state.case)} {what}."))
        console.print(Text(f"Next: git show {culprit[:9]}"))
        return
    console.print(
        Text(
            f"One of {len(found.culprits)} commits made {plain(found.state.case)} {what}; those "
            f"before the last could not be measured:"
        )
    )
    for commit in found.culprits:
        console.print(Text(f"  {plain(subject(commit))}"))
