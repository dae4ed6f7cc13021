"""Workers or placements that fall into two speeds are named, and only those."""

from __future__ import annotations

import random
import re

import pytest

from sns_gate.session.modes import two_speeds
from sns_gate.types import Block, Side

PROCESSES = 4
PRECISION = 0.005


def blocks(
    levels: dict[Side, list[float]], noise: float = 0.001, cells: dict[int, float] | None = None
) -> list[Block]:
    """Blocks of workers at these levels (log time), one rotation, with noise and special cells."""
    rng = random.Random(2)
    made: list[Block] = []
    for placement in range(PROCESSES):
        for b in range(PROCESSES):
            c = (b + placement) % PROCESSES
            effect = levels["baseline"][b] - levels["candidate"][c] + rng.gauss(0, noise)
            effect -= (cells or {}).get(len(made), 0.0)
            made.append(
                Block(
                    placement=placement,
                    baseline_worker=b,
                    candidate_worker=c,
                    settling=0,
                    sides="",
                    ms=(),
                    device_mhz=(),
                    held_us=(),
                    log_speedup=effect,
                )
            )
    return made


LEVEL = [0.0] * PROCESSES


@pytest.mark.parametrize(
    ("levels", "who"),
    [
        ({"baseline": LEVEL, "candidate": [0, 0.03, 0, 0.03]}, "2 of 4 candidate workers"),
        ({"baseline": [0.03, 0.03, 0, 0], "candidate": LEVEL}, "2 of 4 baseline workers"),
    ],
)
def test_workers_of_two_speeds_are_named_with_the_gap(
    levels: dict[Side, list[float]], who: str
) -> None:
    reason = two_speeds(blocks(levels), PRECISION)
    assert reason is not None
    assert reason.code == "bimodal"
    assert re.match(rf"(2\.9|3\.0)% slower in {who} than in the rest", reason.text)


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ({"baseline": [0, 0, 0.03, 0], "candidate": LEVEL},
         r"one of 4 baseline workers stands apart, (2\.9|3\.0)% slower than the rest"),
        ({"baseline": LEVEL, "candidate": [0.03, 0.03, 0.03, 0]},
         r"one of 4 candidate workers stands apart, (2\.9|3\.0)% faster than the rest"),
    ],
)  # fmt: skip
def test_a_single_worker_that_stands_apart_is_no_second_speed(
    levels: dict[Side, list[float]], text: str
) -> None:
    reason = two_speeds(blocks(levels), PRECISION)
    assert reason is not None
    assert reason.code == "one-apart"
    assert re.match(text, reason.text)


@pytest.mark.parametrize("slow", range(1, 2 * PROCESSES))
def test_two_speeds_are_spoken_of_where_each_is_seen_twice(slow: int) -> None:
    cells = dict.fromkeys(range(slow), 0.04)
    reason = two_speeds(blocks({"baseline": LEVEL, "candidate": LEVEL}, cells=cells), PRECISION)
    assert reason is not None
    assert (reason.code == "bimodal") == (slow > 1)


def test_placements_of_two_speeds_are_named() -> None:
    slow = dict.fromkeys((0, 3, 5, 14), 0.04)
    reason = two_speeds(blocks({"baseline": LEVEL, "candidate": LEVEL}, cells=slow), PRECISION)
    assert reason is not None
    assert "slower in 4 of the candidate's 16 placements" in reason.text


@pytest.mark.parametrize(
    "levels",
    [
        {"baseline": LEVEL, "candidate": LEVEL},
        {"baseline": LEVEL, "candidate": [0.03] * PROCESSES},  # a real change is no mode
        {"baseline": [0, 0.01, 0.02, 0.03], "candidate": LEVEL},  # a spread without a gap
        {"baseline": LEVEL, "candidate": [0, 0.003, 0, 0.003]},  # a gap within the precision
    ],
)
def test_one_speed_a_spread_and_a_change_are_not_two_speeds(
    levels: dict[Side, list[float]],
) -> None:
    assert two_speeds(blocks(levels), PRECISION) is None
