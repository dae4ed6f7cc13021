"""Whole checks of changes that compute something else."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import WORK, check, commit

CASE = "square[n=2000]"


def test_a_faster_change_that_computes_something_else_is_wrong(repository: Path) -> None:
    quick = "def work(n):\n    return n + 1\n"
    commit(repository, {"pkg/__init__.py": quick})
    ran = check(repository)
    assert (ran.code, ran.verdicts) == (1, {CASE: "wrong"})
    assert "output is the int 2001, and the baseline's is the bool True" in " ".join(
        ran.out.split()
    )
    assert "say on the benchmark what may differ" in " ".join(ran.out.split())


def test_a_benchmark_that_asks_for_no_check_says_so(repository: Path) -> None:
    bench = """
        from sns_gate import benchmark
        from pkg import work

        @benchmark(params={"n": [2000]}, check=False)
        def square(n):
            return lambda: work(n)
    """
    commit(repository, {"benchmarks/bench_work.py": bench})
    other = WORK.replace("return True", "return False")
    commit(repository, {"pkg/__init__.py": other})
    ran = check(repository)
    assert ran.verdicts == {CASE: "unchanged"}, ran.out
    assert [reason.code for reason in ran.case(CASE).reasons].count("outputs-unchecked") == 1


def test_a_change_cannot_switch_the_check_of_its_outputs_off(repository: Path) -> None:
    bench = """
        from sns_gate import benchmark
        from pkg import work

        @benchmark(params={"n": [2000]}, check=False)
        def square(n):
            return lambda: work(n)
    """
    other = WORK.replace("return True", "return False")
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": other})
    ran = check(repository, "--policy-from", "baseline")
    assert ran.verdicts == {CASE: "wrong"}, ran.out
    assert "the candidate asks for no check of outputs" in " ".join(ran.out.split())


def test_random_work_is_seeded_alike_on_both_sides(repository: Path) -> None:
    bench = """
        import random
        from sns_gate import benchmark
        from pkg import work

        @benchmark
        def draws():
            numbers = [random.random() for _ in range(9)]
            return lambda: [work(2000), numbers, random.random()]
    """
    commit(repository, {"benchmarks/bench_work.py": bench})
    commit(repository, {"README": "the same"})
    assert check(repository).verdicts == {"draws": "unchanged"}


def test_a_reference_is_held_to_the_same_output(repository: Path) -> None:
    bench = """
        from sns_gate import benchmark
        from pkg import work

        def plain():
            return lambda: [work(2000), 1.0]

        @benchmark(reference=plain, revisions=False, at_least=0.1)
        def fused():
            return lambda: [work(2000), 1.01]
    """
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository, "--baseline", "HEAD")
    assert ran.verdicts == {"fused vs plain": "wrong"}
