"""``compare`` of identical callables, again and again, beside the specification's in the same run.

``python -m studies.same_code FILE`` needs a GPU; it keeps its figures in FILE as compact JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from sns_gate.types import ComparisonResult
from studies.kernels import KERNELS
from studies.machine import describe
from studies.sequential import sequential_compare

ROUNDS = 50


def run(file: Path, rounds: int = ROUNDS) -> None:
    """Every kernel against itself so often by either way, in turn; those in FILE stay."""
    import sns_gate

    kept: dict[str, Any] = {"machine": describe(), "kernels": {}}
    if file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
    kernels = kept["kernels"]
    for name, (setup, fn) in KERNELS.items():
        if name in kernels:
            continue
        ours, theirs, seconds = [], [], [0.0, 0.0]
        tiers: Counter[str] = Counter()
        for round_ in range(rounds):
            start = time.perf_counter()
            found = sns_gate.compare(fn, fn, setup=setup, seed=round_)
            seconds[0] += time.perf_counter() - start
            ours.append([found.speedup, found.speedup_ci_lo, found.speedup_ci_hi])
            tiers[_tier(found)] += 1
            candidate, baseline = partial(fn, *setup()), partial(fn, *setup())
            start = time.perf_counter()
            theirs.append(list(sequential_compare(candidate, baseline)))
            del candidate, baseline
            seconds[1] += time.perf_counter() - start
        kernels[name] = {
            "ours": _rounded(ours), "specification": _rounded(theirs), "tiers": tiers,
            "seconds": [round(s / rounds, 3) for s in seconds],
        }  # fmt: skip
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        print(_row(name, kernels[name]), flush=True)


def _tier(found: ComparisonResult) -> str:
    """The tier, with the reasons where there is no verdict."""
    if found.is_performance_valid:
        return found.tier.value
    codes = {reason.code for half in (found.candidate, found.baseline) for reason in half.reasons}
    return f"{found.tier.value} ({', '.join(sorted(codes))})"


def _rounded(intervals: list[list[float]]) -> list[list[float]]:
    return [[round(value, 6) for value in interval] for interval in intervals]


def misses(intervals: list[list[float]]) -> int:
    """Intervals that do not hold the truth, 1."""
    return sum(not low <= 1 <= high for _, low, high in intervals)


def _half_width(intervals: list[list[float]]) -> float:
    widths = sorted(50 * (high - low) for _, low, high in intervals)
    return widths[len(widths) // 2]


def _row(name: str, kept: dict[str, Any]) -> str:
    # One tier alone was kept of the first rounds, the last one's.
    tiers = kept.get("tiers") or {kept["tier"]: 0}
    cells = [name, ", ".join(f"{count or ''} {tier}".strip() for tier, count in tiers.items())]
    for way, seconds in zip(("ours", "specification"), kept["seconds"], strict=True):
        found = kept[way]
        worst = max(abs(100 * (estimate - 1)) for estimate, _, _ in found)
        share = f"{misses(found)} of {len(found)}"
        cells += [share, f"{_half_width(found):.2f}", f"{worst:.2f}", f"{seconds:.2f}"]
    return "| " + " | ".join(cells) + " |"


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    rows = kept["kernels"]
    totals = {
        way: (sum(misses(k[way]) for k in rows.values()), sum(len(k[way]) for k in rows.values()))
        for way in ("ours", "specification")
    }
    shares = {way: f"{100 * m / n:.1f}% ({m} of {n})" for way, (m, n) in totals.items()}
    return [
        "## `compare` of identical callables\n",
        f"{kept['machine']}. Each kernel against itself, fresh inputs each time (`setup=`), in "
        f"turn with the specification's sequential `compare` rebuilt from its description. A 95% "
        f"interval may miss the truth, 1, in 5% of comparisons: ours missed {shares['ours']}, the "
        f"specification's {shares['specification']}. Half-widths are medians; the largest error "
        f"is of the estimate.\n",
        "| kernel | tier | missed | half-width, % | largest error, % | seconds "
        "| specification: missed | half-width, % | largest error, % | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_row(name, row) for name, row in rows.items()),
        "",
    ]


if __name__ == "__main__":
    run(Path(sys.argv[1]))
