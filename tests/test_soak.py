"""The study of many checks in a row: one of its checks, and what it says of figures that grow."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from studies.soak import ENDINGS, USUAL, Place, Row, section, slope_per_100


def kept(seconds: Callable[[int], float]) -> dict[str, Any]:
    """Figures of a hundred checks, of which every tenth was disturbed."""
    rows = [
        Row(
            ending=USUAL if n % 10 else ENDINGS[n // 10 % len(ENDINGS)], code=0, seconds=seconds(n),
            rss_mib=70, descriptors=6, processes=0, tmp_bytes=0, home_bytes=0, state_bytes=0,
            git_bytes=9, files=7, worktrees=1, locks=0,
        )
        for n in range(1, 101)
    ]  # fmt: skip
    columns, values = list(asdict(rows[0])), [list(asdict(row).values()) for row in rows]
    options = ["--device", "cpu"]
    return {"machine": "a machine", "options": options, "every": 10,
            "columns": columns, "rows": values}  # fmt: skip


def test_a_check_that_is_interrupted_is_read_as_leaving_nothing(tmp_path: Path) -> None:
    row = Place(tmp_path).check("interrupted", random.Random(1))
    assert row.code == 130
    left = (row.processes, row.tmp_bytes, row.home_bytes, row.state_bytes, row.locks)
    assert left == (0, 0, 0, 0, 0)
    assert row.worktrees == 1
    assert row.rss_mib > 10


def test_what_grows_is_named_and_what_does_not_is_not() -> None:
    rng = random.Random(1)
    flat = "\n".join(section(kept(lambda _: 2 + rng.gauss(0, 0.1)), "plot.svg"))
    assert "Nothing grows" in flat
    growing = "\n".join(section(kept(lambda n: 2 + n / 100 + rng.gauss(0, 0.1)), "plot.svg"))
    assert "so it grows: seconds a check." in growing


def test_a_slope_is_found_and_refused_from_too_few() -> None:
    slope, low, high = slope_per_100(range(100), [0.03 * n for n in range(100)])
    assert slope == pytest.approx(3)
    assert low <= slope <= high
    assert slope_per_100(range(100), [5.0] * 100) == (0, 0, 0)
    with pytest.raises(ValueError, match="got 50"):
        slope_per_100(range(50), [1.0] * 50)
