"""The commit that changed a case is found, past broken ones, and a second run goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate.bisection import remaining
from sns_gate.types import Fate, Tried
from tests.conftest import Ran, commit
from tests.factors import BROKEN, FactorRepository


@given(
    count=st.integers(1, 200), data=st.data(),
)  # fmt: skip
def test_the_first_bad_commit_is_found_in_as_few_tries_as_halving_takes(
    count: int, data: st.DataObject
) -> None:
    commits = [f"c{n}" for n in range(count)]
    culprit = data.draw(st.integers(0, count - 1))
    broken = data.draw(st.sets(st.integers(0, count - 2), max_size=3)) if count > 1 else set()
    broken -= {culprit}
    tried: list[Tried] = []
    while True:
        left, wanted = remaining(commits, tried)
        if wanted is None:
            break
        number = commits.index(wanted)
        fate: Fate = "like bad" if number >= culprit else "like good"
        tried.append(Tried(commit=wanted, fate="skipped" if number in broken else fate))
    assert left[-1] == commits[culprit]
    assert all(commits.index(one) in broken for one in left[:-1])
    measured = [one for one in tried if one.fate != "skipped"]
    assert len(measured) <= math.ceil(math.log2(count)) + len(broken)
    assert len({one.commit for one in tried}) == len(tried)


class History(FactorRepository):
    """A repository whose commits carry these factors."""

    def __init__(self, folder: Path, factors: list[float | str]) -> None:
        super().__init__(folder)
        self.commits = [
            self.commit(factor, f"step {number}") for number, factor in enumerate(factors, 1)
        ]

    def bisect(self, *options: str) -> Ran:
        return self.run("bisect", *options, "--processes", "3")


def test_a_planted_regression_is_found_past_a_broken_commit_and_nothing_is_done_twice(
    tmp_path: Path,
) -> None:
    factors: list[float | str] = [1.0] * 12
    factors[5:] = [1.02] * 7
    factors[2] = BROKEN
    history = History(tmp_path, factors)
    build = "--build={python} -c \"open('{prefix}/built.py', 'w'); open('/dev/stderr', 'w')\""
    found = history.bisect(history.first, "HEAD", "--case", "case0", build)
    assert found.code == 0, found.err + found.out
    culprit = history.commits[5]
    assert f"{culprit[:7]}" in found.out
    said = " ".join(found.out.split())
    assert "step 6 made case0 slower." in said
    assert f"Next: git show {culprit[:9]}" in said
    state = json.loads((history.root / "bisect.json").read_text())
    assert state["effect"] == pytest.approx(-math.log(1.02), abs=0.003)
    fates = [one["fate"] for one in state["tried"]]
    assert len(fates) - fates.count("skipped") <= math.ceil(math.log2(12))
    assert not list(history.root.glob("bisect.json.builds"))
    again = history.bisect(history.first, "HEAD", "--case", "case0", build)
    assert again.code == 0
    assert "made case0 slower" in again.out
    assert "starting" not in again.out, "everything was known"


def test_ends_that_do_not_differ_or_do_not_follow_each_other_are_said(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0, 1.0])
    same = history.bisect(history.first, "HEAD", "--case", "case0")
    assert same.code == 3
    assert "there is no commit to find" in same.err
    wrong_way = history.bisect("HEAD", history.first, "--case", "case0")
    assert wrong_way.code == 2
    assert "is not on the line of first parents" in wrong_way.err
    (history.root / "bisect.json").write_text("{}")
    spoilt = history.bisect(history.first, "HEAD", "--case", "case0")
    assert spoilt.code == 2
    assert "is no bisection to go on from" in spoilt.err


def test_a_build_that_fails_is_passed_over_whatever_it_says(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0, 1.0, 1.0, 1.0, 1.02, 1.02])
    says = "echo undefined reference to baseline_kernel"
    build = f"sh -c 'if grep -q \"step 3\" message; then {says}; exit 1; fi'"
    found = history.bisect(history.first, "HEAD", "--case", "case0", "--build", build)
    assert found.code == 0, found.err
    assert "step 5 made case0 slower." in " ".join(found.out.split())
    tried = json.loads((history.root / "bisect.json").read_text())["tried"]
    assert [one["commit"] for one in tried if one["fate"] == "skipped"] == [history.commits[2]]


def test_a_commit_that_cannot_be_asked_is_passed_over_and_no_other_question_is_answered(
    tmp_path: Path,
) -> None:
    """Its settings are none; and what was kept is of one case and its settings."""
    history = History(tmp_path, [1.0, 1.0])
    settings = 'tolerence = "1%"\n'
    spoilt = commit(history.root, {"sns-gate.toml": settings, "message": "spoilt"}, "spoilt")
    commit(history.root, {"sns-gate.toml": "", "message": "mended"}, "mended")
    history.commit(1.0, "step 5")
    culprit = history.commit(1.02, "step 6")
    found = history.bisect(history.first, "HEAD", "--case", "case0")
    assert found.code == 0, found.err
    assert f"Next: git show {culprit[:9]}" in found.out
    state = json.loads((history.root / "bisect.json").read_text())
    assert [t["commit"] for t in state["tried"] if t["fate"] == "skipped"] in ([], [spoilt])
    again = history.bisect(history.first, "HEAD", "--case", "case0", "--seed", "1")
    assert "starting" in again.out
    other = history.bisect(history.first, "HEAD", "--case", "ase")
    assert "starting" in other.out
