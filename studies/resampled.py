"""Recorded times of one code, dealt to two sides again and again: how often an interval misses 1.

``python -m studies.resampled FILE`` keeps the figures; it needs the recordings, not a GPU.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sns_gate.stats import block_effect, clustered_estimate

RECORDINGS = Path(__file__).resolve().parents[1] / "tests" / "recordings"
_DEALS = 100
_SIDE = 4
#: All that were recorded, and fewer of them.
_PAIRS = 20
_FEWER = (4, 6, 8, 12, 20)
_SETTLING = 4
#: Mean and half-width on the log scale.
Interval = tuple[float, float]


def read(name: str) -> Any:  # noqa: ANN401 (JSON)
    """A recording, by its name."""
    with gzip.open(RECORDINGS / f"{name}.json.gz") as file:
        return json.load(file)


def alternating(pairs: int = _PAIRS) -> dict[str, list[Interval]]:
    """Every batch as it was recorded, and with any one worker a side left out: mean, half-width."""
    batches: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for block in read("h200_alternating_held"):
        if _same(block["kernel"], block["candidate_kernel"]):
            batches[block["candidate_kernel"], block["batch"]].append(block)
    found: dict[str, list[Interval]] = defaultdict(list)
    for (kernel, _), blocks in batches.items():
        workers = sorted({block["baseline_process"] for block in blocks})
        for without in [(-1, -1), *itertools.product(workers, workers)]:
            kept = [b for b in blocks if b["baseline_process"] != without[0]
                    and b["candidate_process"] != without[1]]  # fmt: skip
            effects = [
                block_effect(_times(b["baseline"], pairs), _times(b["candidate"], pairs))
                for b in kept
            ]
            estimate = clustered_estimate(
                effects,
                [b["baseline_process"] for b in kept],
                [b["candidate_process"] for b in kept],
                [0 for _ in kept],  # no two blocks of these recordings share one
                0.0,
            )
            name = kernel if without == (-1, -1) else f"{kernel}, a worker a side left out"
            found[name].append((estimate.log_speedup, estimate.half_width()))
    return found


def _same(baseline: str, candidate: str) -> bool:
    """mm8192x4 is mm8192, sampled four calls at a time."""
    return baseline == candidate or (baseline == "mm8192" and candidate.startswith("mm8192"))


def _times(samples: list[list[float]], pairs: int) -> list[float]:
    return [sample[0] for sample in samples[_SETTLING : _SETTLING + pairs]]


def windows() -> dict[str, list[Interval]]:
    """Live processes dealt at random to two sides of four, windows standing for placements."""
    rng = np.random.default_rng(1)
    found: dict[str, list[Interval]] = defaultdict(list)
    recorded = read("h200_windows")
    for name in ("interleaved", "settled", "short"):
        for kernel, table in _tables(recorded[name], rounds=name == "interleaved"):
            for _ in range(_DEALS):
                found[f"{kernel}, {name}"].append(_dealt(table, rng))
    return found


def _tables(rows: list[Any], *, rounds: bool) -> Iterator[tuple[str, Any]]:
    """Log time by process and placement, for each kernel and batch."""
    cells: dict[tuple[str, int], dict[tuple[int, int], list[float]]] = {}
    for kernel, mode, batch, process, placement, round_, ms in rows:
        place = round_ if rounds else placement
        table = cells.setdefault((f"{kernel} {mode}", batch), defaultdict(list))
        table[process, place].append(math.log(ms))
    for (kernel, _), table in cells.items():
        processes, places = (len({key[i] for key in table}) for i in (0, 1))
        yield (
            kernel,
            np.array([[np.median(table[p, q]) for q in range(places)] for p in range(processes)]),
        )


def _dealt(table: Any, rng: np.random.Generator) -> Interval:  # noqa: ANN401 (an array)
    processes, places = table.shape
    chosen = rng.permutation(processes)[: 2 * _SIDE]
    first = int(rng.integers(0, places - _SIDE + 1))
    effects, met = [], []
    for place in range(_SIDE):
        for worker in range(_SIDE):
            other = (worker + place) % _SIDE
            baseline, candidate = chosen[worker], chosen[_SIDE + other]
            effects.append(float(table[baseline, first + place] - table[candidate, first + place]))
            met.append((worker, other, place))
    workers, others, places_ = zip(*met, strict=True)
    estimate = clustered_estimate(effects, workers, others, places_, 0.0)
    return estimate.log_speedup, estimate.half_width()


def run() -> dict[str, Any]:
    """Misses and median half-widths, kernel by kernel."""
    kept: dict[str, Any] = {}
    for kind, found in (("alternating", alternating()), ("windows", windows())):
        kept[kind] = {
            kernel: {
                "intervals": len(intervals),
                "misses": sum(abs(mean) > half for mean, half in intervals),
                "half_width_pct": round(100 * float(np.median([h for _, h in intervals])), 3),
            }
            for kernel, intervals in found.items()
        }
        rows = kept[kind].values()
        print(kind, sum(r["misses"] for r in rows), "of", sum(r["intervals"] for r in rows))
    kept["pairs"] = {str(pairs): _typical_width(pairs) for pairs in _FEWER}
    return kept


def _typical_width(pairs: int) -> float:
    """Geometric mean over kernels of the mean half-width with so many pairs a block, in %."""
    widths = [
        statistics.fmean(half for _, half in intervals)
        for kernel, intervals in alternating(pairs).items()
        if "," not in kernel
    ]
    return round(100 * statistics.geometric_mean(widths), 4)


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    lines = ["## The estimator on recordings of identical code\n"]
    says = {
        "alternating": "Pairs alternated between live processes, the queue held.",
        "windows": "Windows of live processes tens of milliseconds apart, whose clocks differ, "
        "dealt at random to two sides of four.",
    }
    for kind, text in says.items():
        rows = kept[kind]
        missed = sum(row["misses"] for row in rows.values())
        count = sum(row["intervals"] for row in rows.values())
        lines += [
            f"{text} Of {count} intervals {missed} missed 1 ({100 * missed / count:.1f}%).\n",
            "| kernel | intervals | missed | median half-width, % |",
            "|---|---|---|---|",
            *(
                f"| {kernel} | {row['intervals']} | {row['misses']} | {row['half_width_pct']:.2f} |"
                for kernel, row in rows.items()
            ),
            "",
        ]
    return [
        *lines,
        "Half-widths with fewer of the recorded pairs in each block, typical of all kernels:\n",
        "| pairs | half-width, % |",
        "|---|---|",
        *(f"| {pairs} | {width:.3f} |" for pairs, width in kept["pairs"].items()),
        "",
    ]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(run()) + "\n", encoding="utf-8")
