"""Planted slowdowns through whole checks: how often they are called slower, and what was printed.

``python -m studies.power FILE [LAUNCHES]`` needs a GPU; launches already in FILE stay.
"""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from studies.launches import add_launches, launch

LAUNCHES = 4
#: About, in % of the time, by benchmark (``studies/zoo/planted``).
PLANTED_PCT = {"seen": 1.5, "within": 0.3}


def _once(number: int) -> dict[str, Any]:
    return launch("planted", 1, "--seed", str(number))


def _said(found: dict[str, Any]) -> dict[str, int]:
    return dict(Counter(case["verdict"] for case in found["cases"]))


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for found in kept["launches"]:
        for case in found["cases"]:
            benchmark, _, rest = case["id"].partition("[kind=")
            kinds.setdefault((benchmark, rest.partition(",")[0]), []).append(case)
    lines = [
        "## Planted slowdowns\n",
        f"{kept['machine']}; {kept['launches'][0]['processes']} processes a side, "
        f"{len(kept['launches'])} launches. Some 1.5% more work at a tolerance of 0.5%, and some "
        f"0.3% at 1%; what it came to in time is the median of all estimates.\n",
        "| kernel | planted, % | it came to, % | tolerance, % | runs | called slower "
        "| printed detectable, % | of runs that print it as detectable, slower |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (benchmark, kind), listed in kinds.items():
        estimates = [100 * (1 / c["speedup"]["estimate"] - 1) for c in listed if c["speedup"]]
        came_to = statistics.median(estimates)
        slower = [case["verdict"] == "slower" for case in listed]
        prints = [case["detectable_pct"] or 0.0 for case in listed]
        says_so = [s for s, p in zip(slower, prints, strict=True) if 0 < p <= came_to]
        share = f"{sum(says_so)} of {len(says_so)}" if says_so else "none print it"
        lines.append(
            f"| {kind} | {PLANTED_PCT[benchmark]:g} | {came_to:.2f} | "
            f"{100 * listed[0]['tolerance']:g} | {len(listed)} | {sum(slower)} | "
            f"{statistics.median(prints):.2f} | {share} |"
        )
    return [*lines, ""]


if __name__ == "__main__":
    add_launches(LAUNCHES, _once, _said)
