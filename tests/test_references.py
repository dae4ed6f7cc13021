"""Two callables of one revision: ``reference=`` in a check, and ``sns-gate compare``."""

from __future__ import annotations

from pathlib import Path

import pytest

from sns_gate.benchmarks import benchmark
from sns_gate.discovery import cases_of, load_file
from sns_gate.types import Speedup, Verdict
from sns_gate.verdict import judge
from tests.conftest import QUICK, WORK, Ran, check, commit, sns_gate

#: A kernel that takes a tenth of its reference's time, and one that takes six times as long.
BENCH = """
    from sns_gate import benchmark
    from pkg import work

    def plain(n):
        return lambda: work(10 * n)

    def quick(n):
        return lambda: work(n // 6)

    @benchmark(params={"n": [2000]}, reference=plain, at_least=4)
    def fused(n):
        return lambda: work(n)

    @benchmark(params={"n": [2000]}, reference=quick, revisions=False)
    def naive(n):
        return lambda: work(n)
"""
FUSED, NAIVE = "fused[n=2000] vs plain", "naive[n=2000] vs quick"


def compare(folder: Path, *arguments: str) -> Ran:
    """A quick comparison of two functions on the CPU."""
    return sns_gate(folder, "compare", *arguments, *QUICK)


def test_a_reference_is_judged_in_one_revision_beside_the_two(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH})
    ran = check(repository, "--baseline", "HEAD")
    assert ran.code == 1, ran.out + ran.err
    assert ran.verdicts == {
        "fused[n=2000]": "unchanged",
        FUSED: "faster",
        NAIVE: "slower",
    }, ran.out + ran.err
    fused, naive = ran.case(FUSED), ran.case(NAIVE)
    assert (fused.reference, fused.at_least) == ("plain", 4.0)
    assert fused.speedup.low > 4
    assert "processes" in fused.covers
    assert naive.screening is not None, "slower than a reference is confirmed like any other"
    assert "slower than the reference" in ran.out


def test_less_than_the_speedup_asked_for_is_slower(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH.replace("at_least=4", "at_least=30")})
    ran = check(repository, "--baseline", "HEAD", "--filter", "fused* vs *")
    assert ran.verdicts == {FUSED: "slower"}, ran.out
    assert ran.case(FUSED).speedup.low > 1
    assert ran.case(FUSED).note == "than the 30 times asked"


def test_the_reference_runs_on_the_candidates_code(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH})
    commit(repository, {"pkg/__init__.py": WORK.replace("range(n)", "range(6 * n)")})
    ran = check(repository, "--filter", "fused*")
    assert ran.verdicts == {"fused[n=2000]": "slower", FUSED: "faster"}, ran.out


def test_a_reference_need_not_load_any_code_of_the_revision(repository: Path) -> None:
    bench = """
        import time
        from sns_gate import benchmark

        def plain():
            return lambda: time.sleep(0.006) or True

        @benchmark(reference=plain)
        def fused():
            from pkg import work
            return lambda: work(2000)
    """
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository, "--baseline", "HEAD", "--filter", "vs plain")
    assert ran.verdicts == {"fused vs plain": "faster"}, ran.out + ran.err


def test_a_change_cannot_loosen_the_speedup_it_is_held_to(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH.replace("at_least=4", "at_least=30")})
    slower = BENCH.replace("work(10 * n)", "work(11 * n)")
    commit(repository, {"benchmarks/bench_work.py": slower})
    ran = check(repository, "--policy-from", "baseline", "--filter", FUSED)
    assert ran.verdicts == {FUSED: "slower"}, ran.out
    codes = [reason.code for reason in ran.case(FUSED).reasons]
    assert "policy-from-baseline" in codes
    assert "reference-changed" in codes


def test_a_reference_that_is_no_longer_compared_with_is_removed(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH})
    without = BENCH.replace(", reference=plain, at_least=4", "")
    commit(repository, {"benchmarks/bench_work.py": without})
    ran = check(repository)
    assert ran.verdicts[FUSED] == "removed", ran.out


def test_a_reference_that_raises_is_broken_on_its_side_and_named(repository: Path) -> None:
    broken = BENCH.replace("return lambda: work(10 * n)", "raise OSError('no such library')")
    commit(repository, {"benchmarks/bench_work.py": broken})
    ran = check(repository, "--baseline", "HEAD", "--filter", FUSED)
    assert ran.verdicts == {FUSED: "broken"}, ran.out
    assert ran.case(FUSED).broken_sides == ("baseline",)
    assert ran.code == 3
    assert "reference worker 0: OSError: no such library" in ran.out


def test_two_functions_are_compared_without_any_repository(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(
        "import time\n"
        "def quick(): return lambda: time.sleep(0.001)\n"
        "def slow(): return lambda: time.sleep(0.006)\n",
        encoding="utf-8",
    )
    ran = compare(tmp_path, "kernels:slow", "kernels.py:quick")
    assert ran.verdicts == {"slow vs quick": "slower"}, ran.out + ran.err
    assert ran.code == 1
    assert ran.result is not None
    assert ran.result.baseline.ref == "kernels.py:quick"
    assert "slower than kernels.py:quick." in ran.out
    ran = compare(tmp_path, "kernels:quick", "kernels:slow", "--at-least", "2")
    assert ran.verdicts == {"quick vs slow": "faster"}, ran.out + ran.err
    assert ran.code == 0


def test_a_candidates_parameters_hold_for_both_functions(tmp_path: Path) -> None:
    (tmp_path / "bench_kernels.py").write_text(
        "import time\n"
        "from sns_gate import benchmark\n"
        "@benchmark(params={'n': [1, 2]})\n"
        "def ours(n): return lambda: time.sleep(0.001 * n)\n"
        "def theirs(n): return lambda: time.sleep(0.001 * n)\n",
        encoding="utf-8",
    )
    ran = compare(tmp_path, "bench_kernels:ours", "bench_kernels:theirs")
    assert ran.verdicts == {
        "ours[n=1] vs theirs": "unchanged",
        "ours[n=2] vs theirs": "unchanged",
    }, ran.out + ran.err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("kernels", "is no module:function"),
        ("nowhere:f", "No module named 'nowhere'"),
        ("kernels:missing", "'missing' in kernels is no function"),
        ("no.py:f", "No such file"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_usage_error(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "kernels.py").write_text("def f(): return print\n", encoding="utf-8")
    ran = compare(tmp_path, name, "kernels:f")
    assert ran.code == 2, ran.out + ran.err
    assert says in ran.err
    assert "name each as module:function or file.py:function" in ran.err


def test_at_least_stands_in_the_place_of_the_tolerances_lower_end() -> None:
    assert judge(Speedup(estimate=1.1, low=1.05, high=1.15), 0.02, 1.2).verdict is Verdict.SLOWER
    assert judge(Speedup(estimate=1.2, low=1.1, high=1.3), 0.02, 1.2).note == "too wide"
    assert judge(Speedup(estimate=1.3, low=1.2, high=1.4), 0.02, 1.2).verdict is Verdict.FASTER
    assert judge(Speedup(estimate=0.95, low=0.9, high=1), 0.02, 0.9).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("without", [{"at_least": 1.2}, {"revisions": False}])
def test_what_speaks_of_a_reference_needs_one(without: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="name the set-up of another implementation"):
        benchmark(**without)(lambda: print)  # type: ignore[call-overload]


@pytest.mark.parametrize("at_least", [0, -1, float("inf"), float("nan")])
def test_at_least_is_a_speedup(at_least: float) -> None:
    with pytest.raises(ValueError, match="at_least is a speedup"):
        benchmark(reference=lambda: print, at_least=at_least)


def test_each_parameter_has_a_case_against_its_reference(tmp_path: Path) -> None:
    file = tmp_path / "bench_one.py"
    file.write_text(
        "from sns_gate import benchmark\n"
        "def other(n, device): return lambda: ('other', n, device)\n"
        "@benchmark(params={'n': [1, 2]}, reference=other)\n"
        "def one(n): return lambda: ('one', n)\n",
        encoding="utf-8",
    )
    cases = load_file(str(file))
    assert [case.id for case in cases] == [
        "one[n=1]", "one[n=1] vs other", "one[n=2]", "one[n=2] vs other",
    ]  # fmt: skip
    assert cases[1].build("cpu", as_reference=True)() == ("other", 1, "cpu")
    assert cases[1].build("cpu")() == ("one", 1)
    assert cases[0].build("cpu", as_reference=True)() == ("one", 1)
    assert cases_of(cases[0].benchmark) == cases
