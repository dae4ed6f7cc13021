"""Further baselines: what creeps in by small steps is seen against the last release."""

from __future__ import annotations

from pathlib import Path

import pytest

from sns_gate.report import words
from sns_gate.types import GateResult, RevisionInfo, Verdict
from tests.conftest import check, commit, git
from tests.factors import FactorRepository
from tests.test_report import case, result

STEP, STEPS = 1.005, 8


def test_small_steps_pass_one_by_one_and_not_against_the_last_release(tmp_path: Path) -> None:
    lab = FactorRepository(tmp_path)
    git(lab.root, "tag", "v1.2")
    git(lab.root, "tag", "v1.10-other")
    options = ("--processes", "4", "--explain", "none", "--baseline", "HEAD~1")
    for step in range(1, STEPS):
        lab.commit(f"{STEP**step:.6f}", f"step {step}")
        assert lab.run("check", *options).verdicts == {"case0": "unchanged"}, f"step {step}"
    lab.commit(f"{STEP**STEPS:.6f}", f"step {STEPS}")
    ran = lab.run("check", *options, "--also-against", "v?.?")
    assert ran.verdicts == {"case0": "unchanged", "case0 against v1.2": "slower"}, ran.out
    assert ran.code == 1
    crept = ran.case("case0 against v1.2")
    assert crept.against == "v1.2"
    assert crept.speedup.low < STEP**-STEPS < crept.speedup.high
    assert crept.screening is not None, "it was confirmed in new processes"
    assert ran.result is not None
    assert [info.ref for info in ran.result.further_baselines] == ["v1.2"]
    said = " ".join(ran.out.split())
    assert "1 of 2 cases is slower than v1.2" in said
    assert "also against v1.2 at" in said


def test_a_further_baseline_has_its_own_code_and_lacks_what_is_new(repository: Path) -> None:
    git(repository, "tag", "first")
    slow = (repository / "pkg/__init__.py").read_text().replace("5e-7", "25e-7")
    bench = """
        from sns_gate import benchmark
        from pkg import newer

        @benchmark
        def fresh():
            return lambda: newer(2000)
    """
    commit(repository, {"pkg/__init__.py": slow + "\n\nnewer = work\n"})
    commit(repository, {"benchmarks/bench_fresh.py": bench})
    ran = check(repository, "--also-against", "first", "--also-against", "HEAD~1")
    against = "square[n=2000] against first"
    assert set(ran.verdicts) == {"square[n=2000]", "fresh", against}
    assert ran.verdicts[against] == "slower"
    assert ran.result is not None
    codes = {reason.code for reason in ran.result.disclosures}
    assert codes >= {"no-counterpart", "same-baseline"}


@pytest.mark.parametrize("asked", ["nosuch", "v*"])
def test_a_further_baseline_that_is_not_there_is_said(repository: Path, asked: str) -> None:
    commit(repository, {"README": "the same"})
    ran = check(repository, "--also-against", asked)
    assert ran.code == 2
    assert asked in ran.err
    assert "fetch" in ran.err


def slower(*opponents: str) -> GateResult:
    cases = []
    for number, one in enumerate(opponents):
        fields = {"against": one} if one.startswith("v") else {}
        fields |= {"reference": one} if one == "torch" else {}
        cases.append(case(f"c{number}", Verdict.SLOWER, 0.8, 0.85, 0.9, **fields))
    return result(*cases).model_copy(update={"further_baselines": (RevisionInfo(ref="v1"),)})


@pytest.mark.parametrize(
    ("opponents", "said"),
    [
        (("base",), "than merge base with origin/main at ababababa"),
        (("v1",), "than v1"),
        (("torch",), "than the reference"),
        (("base", "v1"), "than baseline or v1"),
        (("base", "torch", "v1"), "than baseline or reference or v1"),
    ],
)
def test_the_headline_says_than_what(opponents: tuple[str, ...], said: str) -> None:
    assert words.headline(slower(*opponents)).endswith(f"slower {said}.")
