"""What more processes and more placements buy, and cost, in whole checks of identical revisions.

``python -m studies.growth FILE`` needs a GPU.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from studies.launches import launch
from studies.machine import describe

#: Workers a side and placements in a rotation; one rotation each, as the precision is easy.
SETTINGS = ((3, 4), (4, 2), (4, 4), (4, 8), (6, 3), (6, 6), (8, 4))
_EASY = "50%"
#: One case of each kernel that the design's first measurements were made on.
_CASES = tuple(
    f"{kernel}round=0]"
    for kernel in ("add?", "softmax?", "layer_norm?", "matmul?n=*,", "attention?", "mlp?")
)


def run(file: Path) -> None:
    """One check a setting, saved after each."""
    kept: dict[str, Any] = {"machine": describe(), "settings": []}
    for processes, placements in SETTINGS:
        filters = (part for case in _CASES for part in ("--filter", case))
        found = launch(
            "same", 0, *filters, "--processes", str(processes),
            "--placements", str(placements), "--precision", _EASY,
        )  # fmt: skip
        kept["settings"].append(found)
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        print(_row(found), flush=True)


def _row(found: dict[str, Any]) -> str:
    cases = [case for case in found["cases"] if case["half_width_pct"] is not None]
    widths = [case["half_width_pct"] for case in cases]
    spent = [sum(column) for column in zip(*(case["spent"] for case in cases), strict=True)]
    measuring = sum(case["seconds"] for case in cases)
    shares = ", ".join(f"{seconds:.1f}" for seconds in spent)
    return (
        f"| {found['processes']} | {found['placements']} | {len(cases)} | "
        f"{statistics.median(widths):.2f} | {max(widths):.2f} | {found['seconds']:.0f} | "
        f"{found['seconds'] - measuring:.0f} | {measuring - sum(spent):.1f} | {shares} |"
    )


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    return [
        "## Processes and placements: width and cost\n",
        f"{kept['machine']}. Identical revisions, one rotation of each setting.\n",
        "| processes | placements | cases | half-width, %: median | worst | seconds in all "
        "| start | preparing | placing, settling, sampling |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_row, kept["settings"]),
        "",
    ]


if __name__ == "__main__":
    run(Path(sys.argv[1]))
