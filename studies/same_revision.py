"""Identical revisions through whole checks, launch after launch: misses, alarms, refusals, cost.

``python -m studies.same_revision FILE [LAUNCHES]`` needs a GPU; launches already in FILE stay.
"""

from __future__ import annotations

import statistics
from typing import Any

from studies.launches import add_launches, launch

LAUNCHES = 8


def _said(found: dict[str, Any]) -> str:
    missed = [case["id"] for case in found["cases"] if _missed(case)]
    return f"{len(found['cases'])} cases, missed: {', '.join(missed) or 'none'}"


def _first(case: dict[str, Any]) -> dict[str, float] | None:
    """Its first interval: a confirmation's would be chosen by what it shows."""
    found: dict[str, float] | None = case["first"] or case["speedup"]
    return found


def _missed(case: dict[str, Any]) -> bool:
    found = _first(case)
    return found is not None and not found["low"] <= 1 <= found["high"]


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    kernels: dict[str, list[dict[str, Any]]] = {}
    for found in kept["launches"]:
        for case in found["cases"]:
            kernels.setdefault(_kernel(case["id"]), []).append(case)
    cases = [case for listed in kernels.values() for case in listed]
    judged = [case for case in cases if _first(case) is not None]
    missed = sum(map(_missed, judged))
    slower = sum(case["verdict"] == "slower" for case in cases)
    refused = sum(case["verdict"] == "refused" for case in cases)
    return [
        "## Identical revisions\n",
        f"{kept['machine']}. {len(kept['launches'])} launches, each in new processes with fresh "
        f"compiler and tuning caches, {len(cases)} comparisons of {len(kernels)} kernels: "
        f"{missed} intervals missed 1 ({100 * missed / max(len(judged), 1):.1f}%), {slower} were "
        f"called slower at the default tolerance, {_twice(kept)} would have been at none "
        f"(below 1 in two launches in turn), {refused} were refused.\n",
        "| kernel | comparisons | missed | refused | half-width, %: median | worst | s a case "
        "| placing, settling, sampling, s |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(kernel, listed) for kernel, listed in kernels.items()),
        "",
    ]


def _kernel(id_: str) -> str:
    name = id_.partition("round=")[0].rstrip(",")
    return name.rstrip("[") if name.endswith("[") else f"{name}]"


def _twice(kept: dict[str, Any]) -> int:
    count = 0
    for one, other in zip(kept["launches"], kept["launches"][1:], strict=False):
        below = [
            {c["id"] for c in found["cases"] if (s := _first(c)) and s["high"] < 1}
            for found in (one, other)
        ]
        count += len(below[0] & below[1])
    return count


def _row(kernel: str, listed: list[dict[str, Any]]) -> str:
    widths = [case["half_width_pct"] for case in listed if case["half_width_pct"] is not None]
    spent = [
        statistics.median(column) for column in zip(*(c["spent"] for c in listed), strict=True)
    ]
    return (
        f"| {kernel} | {len(listed)} | {sum(map(_missed, listed))} | "
        f"{sum(case['verdict'] == 'refused' for case in listed)} | "
        f"{statistics.median(widths):.2f} | {max(widths):.2f} | "
        f"{statistics.median(case['seconds'] for case in listed):.1f} | "
        f"{', '.join(f'{seconds:.2f}' for seconds in spent)} |"
    )


if __name__ == "__main__":
    add_launches(LAUNCHES, lambda number: launch("same", 0, "--seed", str(number)), _said)
