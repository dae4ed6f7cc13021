"""What is slow now and then hides behind a median, and is seen all the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sns_gate.session.tails import slow_samples
from sns_gate.stats import block_effect
from sns_gate.types import Block, Verdict
from tests.conftest import check, commit

SIDES = "bccb" * 4
TOLERANCE = 0.02


def block(baseline: list[float], candidate: list[float]) -> Block:
    left = {"b": list(baseline), "c": list(candidate)}
    ms = tuple(left[side].pop(0) for side in SIDES)
    return Block(
        placement=0, baseline_worker=0, candidate_worker=0, settling=0, sides=SIDES, ms=ms,
        device_mhz=(None,) * len(ms), held_us=(None,) * len(ms),
        log_speedup=block_effect(baseline, candidate),
    )  # fmt: skip


def blocks(slower: Callable[[int, random.Random], tuple[float, float]]) -> list[Block]:
    """Eighteen blocks of 8 pairs whose samples take so many times as long, by number."""
    rng, found = random.Random(3), []
    for number in range(18):
        pairs = [slower(8 * number + pair, rng) for pair in range(8)]
        found.append(
            block(
                *(
                    [rng.gauss(1, 0.002) * factor for factor in side]
                    for side in zip(*pairs, strict=True)
                )
            )
        )
    return found


@pytest.mark.parametrize(
    ("slower", "seen"),
    [
        (lambda n, _: (1.0, 10.0 if n % 4 == 0 else 1.0), True),
        (lambda n, _: (1.0, 1.2 if n % 4 == 0 else 1.0), True),
        (lambda *_: (1.0, 1.0), False),
        (lambda *_: (1.0, 1.5), False),
        (lambda n, _: (10.0 if n % 4 == 0 else 1.0, 1.0), False),
        (lambda n, _: (10.0 if n % 4 == 0 else 1.0, 10.0 if n % 4 == 1 else 1.0), False),
        (lambda _, rng: (rng.choice([1.0] * 9 + [3.0]), rng.choice([1.0] * 9 + [3.0])), False),
    ],
    ids=["rebuilt", "a little", "even", "slower", "baseline", "both", "noise"],
)
def test_what_only_the_candidate_does_now_and_then_is_said(
    slower: Callable[[int, random.Random], tuple[float, float]], *, seen: bool
) -> None:
    found = slow_samples(blocks(slower), TOLERANCE)
    assert (found is not None and found.code == "slow-samples") is seen


def test_a_cache_that_is_rebuilt_now_and_then_is_no_pass(repository: Path) -> None:
    work = """
        import time
        calls = []

        def work(n):
            calls.append(n)
            time.sleep({})
            return True
    """
    commit(repository, {"pkg/__init__.py": work.format("0.004")})
    commit(repository, {"pkg/__init__.py": work.format("0.04 if len(calls) % 4 == 0 else 0.004")})
    found = check(repository, "--baseline", "HEAD~1").case("square[n=2000]")
    assert (found.verdict, found.note) in (
        (Verdict.INCONCLUSIVE, "uneven"), (Verdict.SLOWER, ""), (Verdict.REFUSED, "tier C"),
    ), found  # fmt: skip
    assert "slow-samples" in {reason.code for reason in found.reasons} or found.note != "uneven"
