"""From what both sides measured of a call to the one way in which both are sampled."""

from __future__ import annotations

import math

from sns_gate.protocol import SHORT_CALL_PAIRS, Calibrated, Recipe

#: Recordings of samples this short gave intervals no wider than longer ones (docs/statistics.md).
SAMPLE_NS = 250_000
CPU_SAMPLE_NS = 2_000_000
#: Where one side is far slower, its samples take no longer than this, and the other's are shorter.
LONGEST_SAMPLE_NS = 50_000_000
#: Inputs of a rotation through graph copies exceed the cache by this factor.
CACHE_FACTOR = 2
MAX_COPIES = 128
MAX_GRAPH_CALLS = 1024
MAX_WARM_CALLS = 64
MAX_BATCH = 32
#: The hold ends by itself after 50 ms; enqueuing may take this much of it.
HOLD_BUDGET_NS = 20_000_000


def choose_recipe(baseline: Calibrated, candidate: Calibrated, mode: str, device: str) -> Recipe:
    """One recipe for both sides, by the shorter and by the less able of them.

    Args:
        baseline: what a baseline worker measured of its call.
        candidate: what a candidate worker measured of its call.
        mode: ``auto``, ``cold`` or ``warm`` as the benchmark asks.
        device: ``cpu`` or a CUDA device.
    """
    sides = (baseline, candidate)
    call_ns = max(1.0, min(side.call_ns for side in sides))
    slowest_ns = max(side.call_ns for side in sides)
    if device == "cpu":
        calls = min(math.ceil(CPU_SAMPLE_NS / call_ns), int(LONGEST_SAMPLE_NS / slowest_ns))
        return Recipe("loop", calls=max(1, calls))
    warm_ns = _bounded(max(1.0, min(s.warm_ns for s in sides)), max(s.warm_ns for s in sides))
    held = not any(side.hold_expired for side in sides)
    short = call_ns < SHORT_CALL_PAIRS * min(side.empty_ns for side in sides)
    untried = any(side.capturable is None for side in sides)
    if mode == "cold" or (mode == "auto" and (untried or not short)):
        call_ns = _bounded(call_ns, slowest_ns)
        return _cold(call_ns, max(side.enqueue_ns for side in sides), held=held)
    if all(side.capturable for side in sides):
        copies = _copies(sides) if mode == "auto" else None
        return _graph(warm_ns, copies, held=held)
    return _warm(warm_ns, max(side.enqueue_ns for side in sides), held=held)


def _bounded(shortest_ns: float, slowest_ns: float) -> float:
    """The time of a call that samples are made up by, such that the slower side's do end."""
    return max(shortest_ns, slowest_ns * SAMPLE_NS / LONGEST_SAMPLE_NS)


def _cold(call_ns: float, enqueue_ns: float, *, held: bool) -> Recipe:
    regions = max(1, math.ceil(SAMPLE_NS / call_ns))
    batch = min(regions, MAX_BATCH, max(1, int(HOLD_BUDGET_NS / max(enqueue_ns, 1.0))))
    return Recipe("cold", calls=1, regions=regions, held=held, batch=batch if held else 1)


def _graph(warm_ns: float, copies: int | None, *, held: bool) -> Recipe:
    wanted = min(MAX_GRAPH_CALLS, max(1, math.ceil(SAMPLE_NS / warm_ns)))
    # Whole turns through the copies, so that each is called equally often.
    calls = math.ceil(wanted / copies) * copies if copies else wanted
    regions = max(1, math.ceil(SAMPLE_NS / (calls * warm_ns)))
    mode = "graph" if copies else "warm-graph"
    return Recipe(mode, calls=calls, regions=regions, copies=copies or 1, held=held, batch=1)


def _warm(warm_ns: float, enqueue_ns: float, *, held: bool) -> Recipe:
    fits = max(1, int(HOLD_BUDGET_NS / max(enqueue_ns, 1.0)))
    calls = max(1, min(MAX_WARM_CALLS, fits, math.ceil(SAMPLE_NS / warm_ns)))
    regions = max(1, math.ceil(SAMPLE_NS / (calls * warm_ns)))
    return Recipe("warm", calls=calls, regions=regions, held=held, batch=1)


def _copies(sides: tuple[Calibrated, Calibrated]) -> int | None:
    """How many set-ups exceed the cache; None where that cannot be known or is too many."""
    cache, inputs = max(s.cache_bytes for s in sides), min(s.input_bytes for s in sides)
    if inputs <= 0 or cache <= 0:
        return None
    copies = math.ceil(CACHE_FACTOR * cache / inputs)
    return max(2, copies) if copies <= MAX_COPIES else None
