"""A worker's claims against the coordinator's own clock: what is doubted and what is not."""

from __future__ import annotations

import random

import pytest

from sns_gate.session.consistency import doubtful
from sns_gate.types import Block, Reason


def block(claimed: tuple[float, float], wall: tuple[float, float], held: float = 0.0) -> Block:
    """A block of eight samples in µs, one call each."""
    return Block(
        placement=0, baseline_worker=0, candidate_worker=0, settling=0, sides="bccb" * 2,
        ms=tuple(claimed[s == "c"] / 1e3 for s in "bccb" * 2), device_mhz=(None,) * 8,
        held_us=(held or None,) * 8, wall_us=tuple(wall[s == "c"] for s in "bccb" * 2),
        log_speedup=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("claimed", "wall", "held"),
    [
        ((1000, 1000), (1200, 1200), 0.0),
        ((1000, 500), (1300, 800), 0.0),
        ((1000, 500), (1600, 1100), 300.0),
        ((500, 1000), (700, 1200), 0.0),
        ((1000, 100), (1200, 310), 0.0),
        ((1000, 990), (1200, 1230), 0.0),
    ],
)
def test_a_gain_that_is_seen_from_outside_is_believed(
    claimed: tuple[float, float], wall: tuple[float, float], held: float
) -> None:
    assert doubtful([block(claimed, wall, held)] * 6, 1) is None


def test_a_gain_that_is_not_seen_from_outside_is_doubted() -> None:
    found = doubtful([block((1000, 100), (1200, 1200))] * 6, 1)
    assert found is not None
    assert found.code == "wall-disagrees"
    assert "claim to take 900 µs less" in found.text
    hidden = doubtful([block((1000, 1000), (1200, 3000))] * 6, 1)
    assert hidden is not None, "a slowdown that is hidden is no gain, and yet a lie"


def test_samples_that_a_busy_host_delays_are_not_doubted() -> None:
    """Its half that is delayed claims more and is answered later; neither side hides a thing."""
    rng = random.Random(7)
    blocks = []
    for _ in range(6):
        one = block((1000, 1000), (1200, 1200))
        delays = [
            600 * (rng.random() < (0.6 if side == "b" else 0.3)) + rng.random()
            for side in one.sides
        ]
        blocks.append(
            one.model_copy(
                update={
                    "ms": tuple(1.0 + delay / 1e3 for delay in delays),
                    "wall_us": tuple(1200.0 + delay + 300 * rng.random() for delay in delays),
                }
            )
        )
    assert doubtful(blocks, 1) is None


def test_what_the_hosts_own_delays_could_be_is_not_doubted() -> None:
    """The baseline's least delayed answers lie 60 µs apart from block to block."""
    uneven = [block((1000, 1000), (1100 + 120 * (n % 2), 1180 + 120 * (n % 2))) for n in range(6)]
    assert doubtful(uneven, 1) is None
    even = [block((1000, 1000), (1100, 1300))] * 6
    assert doubtful(even, 1) is not None


def test_a_device_that_is_busy_after_the_region_is_seen_and_its_twin_is_not() -> None:
    def late(baseline: float, candidate: float) -> Reason | None:
        one = block((100, 60), (0, 0)).model_copy(
            update={"wall_us": (), "late_us": (baseline, candidate)}
        )
        return doubtful([one] * 6, 1)

    found = late(22.0, 70.0)
    assert found is not None
    assert found.code == "work-outlives"
    assert "busy for 48 µs longer" in found.text
    assert late(22.0, 24.0) is None, "a stream that is waited for leaves nothing"
    assert late(70.0, 70.0) is None, "both leave the same"
    assert late(70.0, 22.0) is None, "the baseline's own fault makes no candidate faster"


def test_what_is_noise_is_not_doubted() -> None:
    noisy = [block((1000, 900), (1200, 1100 + 400 * (n % 2))) for n in range(6)]
    assert doubtful(noisy, 1) is None
    assert doubtful([block((1000, 100), (1200, 1200))] * 2, 1) is None, "two blocks say nothing"
