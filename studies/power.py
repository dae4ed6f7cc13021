"""Planted slowdowns through whole checks: how often they are called slower, and what was printed.

``python -m studies.power FILE [LAUNCHES]`` needs a GPU; launches already in FILE stay.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from studies.launches import launch
from studies.machine import describe

LAUNCHES = 4
#: One call more in so many, by benchmark (``studies/zoo/planted``).
PLANTED_PCT = {"seen": 100 / 66, "within": 100 / 333}
PROCESSES = 6


def run(kept: dict[str, Any], launches: int, file: Path) -> None:
    """So many launches more, saved after each."""
    for number in range(launches):
        seed = str(len(kept["launches"]))
        found = launch("planted", 1, "--seed", seed, "--processes", str(PROCESSES))
        kept["launches"].append(found)
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        verdicts = [case["verdict"] for case in found["cases"]]
        print(number, f"{found['seconds']:.0f} s", {v: verdicts.count(v) for v in set(verdicts)},
              flush=True)  # fmt: skip


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
        f"{len(kept['launches'])} launches. One call more in 66 (1.5%) at a tolerance of 0.5%, and "
        f"one in 333 (0.3%) at 1%.\n",
        "| kernel | planted, % | tolerance, % | runs | called slower | printed detectable, % "
        "| of runs that print it as detectable, slower | estimate, % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (benchmark, kind), listed in kinds.items():
        planted = PLANTED_PCT[benchmark]
        slower = [case["verdict"] == "slower" for case in listed]
        prints = [case["detectable_pct"] or 0.0 for case in listed]
        says_so = [s for s, p in zip(slower, prints, strict=True) if 0 < p <= planted]
        estimates = [100 * (1 / c["speedup"]["estimate"] - 1) for c in listed if c["speedup"]]
        share = f"{sum(says_so)} of {len(says_so)}" if says_so else "none print it"
        lines.append(
            f"| {kind} | {planted:.2f} | {100 * listed[0]['tolerance']:g} | {len(listed)} | "
            f"{sum(slower)} | {statistics.median(prints):.2f} | {share} | "
            f"{statistics.median(estimates):.2f} |"
        )
    return [*lines, ""]


def main() -> None:
    """Add launches to a file."""
    file = Path(sys.argv[1])
    kept = {"machine": describe(), "launches": []}
    if file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
    run(kept, int(sys.argv[2]) if len(sys.argv) > 2 else LAUNCHES, file)  # noqa: PLR2004 (argv)


if __name__ == "__main__":
    main()
