"""The demo's planted changes on a GPU: a result of ``sns-gate check`` and its part of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Half-widths of earlier recordings of the same kernels, in % (docs/statistics.md).
RECORDED_HALF_WIDTHS = {
    "add": (0.17, 0.37),
    "softmax[n=4096]": (0.19, 0.25),
    "matmul[n=2048]": (0.41, 0.81),
    "matmul[n=4096]": (0.09, 0.14),
    "matmul[n=8192]": (0.03, 0.07),
    "layer_norm[rows=512]": (0.52, 0.80),
    "attention[length=2048]": (0.07, 0.16),
    "mlp": (0.21, 0.31),
}
RECORDED_SECONDS = {
    "add": 1.2,
    "softmax[n=4096]": 1.6,
    "matmul[n=2048]": 1.6,
    "matmul[n=4096]": 1.7,
    "matmul[n=8192]": 2.9,
    "layer_norm[rows=512]": 0.9,
    "attention[length=2048]": 1.7,
    "mlp": 1.9,
}


def compact(result: Path) -> dict[str, Any]:
    """A result file of ``sns-gate check`` reduced to the figures that the page shows."""
    full = json.loads(result.read_text(encoding="utf-8"))
    wanted = ("id", "verdict", "note", "tier", "speedup", "half_width_pct", "detectable_pct",
              "baseline_ms", "candidate_ms", "mode", "seconds")  # fmt: skip
    return {
        "fingerprint": full["candidate"]["fingerprint"],
        "started_at": full["started_at"],
        "seconds": full["seconds"],
        "processes": full["processes"],
        "placements": full["placements"],
        "tolerance": full["tolerance"],
        "cases": [
            {key: case[key] for key in wanted}
            | {
                "blocks": len(case["blocks"]),
                "clock_cv_pct": (case["evidence"] or {}).get("clock_cv_pct"),
                "first": (case["screening"] or {}).get("speedup"),
            }
            for case in full["cases"]
        ],
    }


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    machine = kept["fingerprint"]
    name = machine["gpu_name"] or machine["cpu_model"]
    lines = [
        f"## The demo on one {name}\n",
        (
            f"`make demo`, {kept['started_at'][:10]}, driver {machine['driver_version']}, torch "
            f"{machine['torch_version']}, triton {machine['triton_version']}: {kept['processes']} "
            f"processes a side, {kept['placements']} placements, tolerance "
            f"{100 * kept['tolerance']:g}%, {kept['seconds']:.0f} s in all, start-up and "
            f"confirmation included. `add`, `scale` and `matmul_inner` do 3% more work, `mlp` does "
            f"less; everything else is the same code. In the last two columns, what recordings of "
            f"the same kernels gave before this tool existed.\n"
        ),
        (
            "| case | verdict | speedup, 95% interval | half-width, % | seconds | mode "
            "| clock CV, % | recorded half-width, % | recorded seconds |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in kept["cases"]:
        s = case["speedup"]
        low, high = RECORDED_HALF_WIDTHS.get(case["id"], (None, None))
        lines.append(
            f"| {case['id']} | {case['verdict']} | {s['estimate']:.4f} "
            f"[{s['low']:.4f}, {s['high']:.4f}] | {case['half_width_pct']:.2f} | "
            f"{case['seconds']:.1f} | {case['mode']} | {case['clock_cv_pct']:.2f} | "
            f"{'' if low is None else f'{low} to {high}'} | "
            f"{RECORDED_SECONDS.get(case['id'], '')} |"
        )
    return [*lines, ""]
