"""One timed run against another of the same code, on the recordings, and the picture of it.

``python -m studies.single_runs FILE`` keeps the figures; it needs the recordings, not a GPU.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from studies.resampled import read

#: Slower by more than this is what a fixed threshold calls a regression.
THRESHOLD_PCT = 2.0
#: Windows of both are timed as the gate times: settled, and cold or in a graph.
_RECORDED = ("settled", "short")
#: A recorded kernel's name, and the benchmark of ``same_revision`` that is the same work.
KERNELS = {
    "add100": "add", "softmax4k": "softmax", "ln_small": "layer_norm", "mm1024": "matmul[n=1024]",
    "mm2048": "matmul[n=2048]", "sdpa2k": "attention", "mlp": "mlp", "mm4096": "matmul[n=4096]",
    "mm8192": "matmul[n=8192]",
}  # fmt: skip


def run() -> dict[str, Any]:
    """How far apart two windows of two processes are, kernel by kernel."""
    recorded = read("h200_windows")
    windows: dict[tuple[str, str, int], dict[int, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for name in _RECORDED:
        for kernel, _, batch, process, _, _, ms in recorded[name]:
            windows[kernel, name, batch][process].append(ms)
    changes: dict[str, list[Any]] = defaultdict(list)
    for (kernel, _, _), processes in windows.items():
        for one, other in itertools.permutations(processes.values(), 2):
            changes[kernel].append(100 * (np.divide.outer(other, one).ravel() - 1))
    kept = {}
    for kernel in KERNELS:
        change = np.concatenate(changes[kernel])
        ends = np.percentile(change, [2.5, 97.5])
        kept[kernel] = {
            "comparisons": change.size,
            "slower_pct": round(100 * float(np.mean(change > THRESHOLD_PCT)), 1),
            "middle_95_pct": [round(float(end), 2) for end in ends],
        }
        print(kernel, kept[kernel])
    return kept


def section(kept: dict[str, Any], picture: str) -> list[str]:
    """The study's part of the page."""
    return [
        "## One run against one run\n",
        f"Time the old code, time the new code, and fail where it takes {THRESHOLD_PCT:.0f}% "
        "longer: on recordings of identical code from an H200, every window of one process "
        "against every window of each other process of its batch. Half of the windows followed 50 "
        "ms of load, half a pause. Beside it in the picture, what whole checks said of identical "
        "revisions of the same kernels (below).\n",
        "| kernel | comparisons | called slower, % | middle 95% of the changes in time, % |",
        "|---|---|---|---|",
        *(
            f"| {KERNELS[kernel]} | {row['comparisons']} | {row['slower_pct']:.1f} | "
            f"{row['middle_95_pct'][0]:+.2f} to {row['middle_95_pct'][1]:+.2f} |"
            for kernel, row in kept.items()
        ),
        "",
        f"![Changes in time of identical code: one run against one run spreads by up to several "
        f"percent, the gate's intervals stay around zero]({picture})\n",
    ]


def draw(kept: dict[str, Any], checks: dict[str, Any], path: Path) -> None:
    """Draw both as SVG, the same for the same figures.

    Args:
        kept: of this study.
        checks: of ``same_revision``.
        path: of the picture.
    """
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "sns-gate"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    figure.patch.set_facecolor("white")  # readable on a dark page
    axes.axvspan(-THRESHOLD_PCT, THRESHOLD_PCT, color="#eef2ee", zorder=0)
    axes.axvline(0, color="#b0b0b0", linewidth=0.8, zorder=1)
    for row, (kernel, found) in enumerate(reversed(kept.items())):
        low, high = found["middle_95_pct"]
        label = "one run against one run: the middle 95%" if row == 0 else None
        axes.plot([low, high], [row + 0.17] * 2, color="#c98a3b", linewidth=5,
                  solid_capstyle="butt", label=label)  # fmt: skip
        label = "sns-gate check: each 95% interval" if row == 0 else None
        for nth, (faster, slower) in enumerate(_intervals(checks, KERNELS[kernel])):
            axes.plot([faster, slower], [row - 0.1 - 0.025 * nth] * 2, color="#1f5fa8",
                      linewidth=1, label=label if nth == 0 else None)  # fmt: skip
        text = f"{found['slower_pct']:.0f}%" if found["slower_pct"] >= 1 else "under 1%"
        axes.text(1.01, row, text, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.text(1.01, len(kept) - 0.35, "one run calls\nit slower", fontsize=8,
              transform=axes.get_yaxis_transform(), va="bottom")  # fmt: skip
    axes.set_yticks(range(len(kept)), [KERNELS[kernel] for kernel in reversed(kept)])
    axes.set(xlabel="change in time of identical code, %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, 1.13), ncols=2, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _intervals(checks: dict[str, Any], benchmark: str) -> list[tuple[float, float]]:
    """The first intervals of its cases as changes in time, in %."""
    name, _, parameter = benchmark.rstrip("]").partition("[")
    found = []
    for launched in checks["launches"]:
        for case in launched["cases"]:
            said = case["first"] or case["speedup"]
            begin, _, inside = case["id"].rstrip("]").partition("[")
            if said and begin == name and (not parameter or parameter in inside.split(",")):
                found.append((100 * (1 / said["high"] - 1), 100 * (1 / said["low"] - 1)))
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(run()) + "\n", encoding="utf-8")
