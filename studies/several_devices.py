"""Identical revisions on one GPU and on two, in turn: the time that two save, and the misses.

``python -m studies.several_devices FILE [LAUNCHES]`` needs two GPUs; launches already in FILE stay.
"""

from __future__ import annotations

import statistics
from typing import Any

from studies.launches import add_launches, launch

LAUNCHES = 5
DEVICES = ("cuda:0", "cuda:0,1")
#: Twenty cases.
CASES = ("add*", "softmax*", "matmul*", "batched*=0]", "batched*=1]")


def _once(number: int) -> dict[str, Any]:
    """One launch on each, in an order that alternates."""
    order = DEVICES if number % 2 == 0 else DEVICES[::-1]
    chosen = [word for pattern in CASES for word in ("--filter", pattern)]
    found = {
        devices: launch(
            "same", 0, "--seed", str(number), "--device", devices, "--explain", "none", *chosen
        )
        for devices in order
    }
    return {"seconds": sum(one["seconds"] for one in found.values()), "on": found}


def _said(found: dict[str, Any]) -> str:
    one, two = (found["on"][devices] for devices in DEVICES)
    return f"{one['seconds']:.0f} s on one, {two['seconds']:.0f} s on two"


def _missed(case: dict[str, Any]) -> bool:
    found = case["first"] or case["speedup"]
    return found is not None and not found["low"] <= 1 <= found["high"]


def _cases(kept: dict[str, Any], devices: str) -> list[dict[str, Any]]:
    return [case for launched in kept["launches"] for case in launched["on"][devices]["cases"]]


def _verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {case["id"]: case["verdict"] for case in found["cases"]}


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    launches = kept["launches"]
    ratios = [
        launched["on"][DEVICES[1]]["seconds"] / launched["on"][DEVICES[0]]["seconds"]
        for launched in launches
    ]
    pairs = [[_verdicts(launched["on"][devices]) for devices in DEVICES] for launched in launches]
    same = sum(one[case] == two.get(case) for one, two in pairs for case in one)
    total = sum(len(one) for one, _ in pairs)
    rows = []
    for devices in DEVICES:
        cases = _cases(kept, devices)
        seconds = statistics.median(launched["on"][devices]["seconds"] for launched in launches)
        widths = [case["half_width_pct"] for case in cases if case["half_width_pct"] is not None]
        rows.append(
            f"| {devices} | {len(cases)} | {sum(map(_missed, cases))} | "
            f"{sum(case['verdict'] == 'slower' for case in cases)} | "
            f"{sum(case['verdict'] == 'refused' for case in cases)} | "
            f"{statistics.median(widths):.2f} | {seconds:.0f} |"
        )
    return [
        "## One GPU and two\n",
        f"{kept['machine']}. {len(launches)} launches on each, in turn, of the same cases of "
        f"identical revisions. Two took {statistics.median(ratios):.2f} of one's time "
        f"({min(ratios):.2f} to {max(ratios):.2f}); {same} of {total} verdicts were the same.\n",
        "| devices | comparisons | missed | slower | refused | half-width, %: median | s a check |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *rows,
        "",
    ]


if __name__ == "__main__":
    add_launches(LAUNCHES, _once, _said)
