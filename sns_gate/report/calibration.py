"""A calibration for people at a terminal, and its settings written into a configuration file."""

from __future__ import annotations

from pathlib import Path

import tomlkit
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tomlkit.exceptions import TOMLKitError

from sns_gate.calibration import LADDER, Calibration, CaseNoise
from sns_gate.config import FILE
from sns_gate.errors import ConfigError
from sns_gate.plain import plain
from sns_gate.report import words


def render(found: Calibration, console: Console) -> None:
    """Print each case's noise, then what is recommended and why."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("case", overflow="fold")
    for title in ("half-width", "misses", "called slower", "placements", "processes", "suits",
                  "seconds"):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    for case in found.cases:
        table.add_row(*map(Text, _row(case)))
    console.print()
    console.print(table)
    console.print()
    for line in _summary(found):
        console.print(Text(line))


def _row(case: CaseNoise) -> list[str]:
    if case.half_width_pct is None:
        return [plain(case.id), f"none: {', '.join(case.refused)}", *[""] * 6]
    return [
        plain(case.id),
        f"±{case.half_width_pct:.2f}%",
        f"{case.missed} of {case.rounds}",
        f"{case.alarms} of {case.rounds}",
        words.percent(case.placement_pct),
        words.percent(case.process_pct),
        "none" if case.tolerance is None else f"{100 * case.tolerance:g}%",
        f"{case.seconds:.1f}",
    ]


#: A tolerance above this lets through what most changes would be judged by.
_COARSE = 0.1


def _summary(found: Calibration) -> list[str]:
    if found.tolerance is None and any(case.half_width_pct is not None for case in found.cases):
        text = (
            f"The intervals are too wide for any tolerance up to {100 * LADDER[-1]:g}%, so there "
            f"is nothing to recommend: other work disturbs it; 'sns-gate doctor' may name it"
        )
        return [text]
    if found.tolerance is None:
        return ["No case gave an interval, so there is nothing to recommend; see the reasons above"]
    alarms = (
        f"Identical code was called slower {found.alarms} times in {found.rounds} rounds of "
        f"{len(found.cases)} cases."
    )
    recommended = (
        f"Recommended: tolerance {100 * found.tolerance:g}%, placements {found.placements}, "
        f"processes {found.processes}: slowdowns of {words.percent(found.detectable_pct)} and more "
        f"are seen 95 times in 100."
    )
    lines = [alarms, recommended]
    if found.tolerance > _COARSE:
        lines.append(
            "That is coarse: less than this passes unseen here. A quieter machine, or longer work "
            "in each case, sees more; 'sns-gate doctor' may name what disturbs this one."
        )
    if found.excepted:
        lines.append(
            "Of their own they want more: "
            + ", ".join(_excepted(case) for case in found.cases if case.id in found.excepted)
            + "; give them @benchmark(tolerance=...), or more processes where processes differ."
        )
    return lines


def _excepted(case: CaseNoise) -> str:
    wanted = "more than any" if case.tolerance is None else f"{100 * case.tolerance:g}%"
    return f"{plain(case.id)} {wanted}"


def write(found: Calibration, folder: Path) -> Path:
    """Put the recommended settings into the configuration, leaving all else as it stands.

    Args:
        found: with a recommendation.
        folder: of ``pyproject.toml`` or ``sns-gate.toml``; the second is made if neither has any.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    path, shared = folder / FILE, folder / "pyproject.toml"
    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8")) if path.is_file() else None
        if document is None and shared.is_file():
            parsed = tomlkit.parse(shared.read_text(encoding="utf-8"))
            if "sns-gate" in parsed.get("tool", {}):
                path, document = shared, parsed
        document = tomlkit.document() if document is None else document
        table = document["tool"]["sns-gate"] if path == shared else document
        table["tolerance"] = f"{100 * (found.tolerance or 0):g}%"
        table["placements"] = found.placements
        table["processes"] = found.processes
        path.write_text(tomlkit.dumps(document), encoding="utf-8")
    except (OSError, TOMLKitError) as error:
        raise ConfigError(
            f"{path} cannot be changed: {error}; write the settings by hand"
        ) from None
    return path
