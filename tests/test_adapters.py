"""Benchmarks that were written for other tools become cases as they are."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from sns_gate.discovery import Case, load_file
from tests.conftest import check, commit

#: The part of triton.testing that a report needs, with its own names and order.
TRITON = """
    class Benchmark:
        def __init__(self, x_names, x_vals, line_arg, line_vals, line_names, plot_name, args,
                     xlabel="", ylabel="", x_log=False, y_log=False, styles=None):
            self.x_names, self.x_vals, self.line_arg = x_names, x_vals, line_arg
            self.line_vals, self.line_names, self.plot_name = line_vals, line_names, plot_name
            self.args = args

    class Mark:
        def __init__(self, fn, benchmarks):
            self.fn, self.benchmarks = fn, benchmarks

    def perf_report(benchmarks):
        return lambda fn: Mark(fn, benchmarks)

    def do_bench(fn, warmup=25, rep=100, quantiles=None):
        raise AssertionError("this tool's own timing has no place in a check")
"""
REPORT = """
    import triton.testing
    from sns_gate.adapters import perf_report

    @triton.testing.perf_report(triton.testing.Benchmark(
        x_names=["M", "N"], x_vals=[16, (32, 8)], line_arg="provider",
        line_vals=["ours", "torch"], line_names=["Ours", "Torch"], plot_name="softmax",
        args={"scale": 2},
    ))
    def bench(M, N, provider, scale):
        data = list(range(M * N * scale))
        ms = triton.testing.do_bench(lambda: (provider, sum(data)), rep=10)
        return 1 / ms

    perf_report(bench, providers=["ours"], tolerance=0.05)
"""
TESTS = """
    import pytest
    from pkg import work

    @pytest.fixture
    def numbers(start):
        yield [start, start + 1]
        raise AssertionError("torn down while its work was still to come")

    @pytest.mark.parametrize("n", [500, pytest.param(600, id="more")])
    @pytest.mark.parametrize("power, name", [(2, "two")])
    def test_work(benchmark, n, power, name, numbers):
        found = benchmark(work, n)
        assert found == "never reached"

    def test_pedantic(benchmark):
        benchmark.pedantic(work, setup=lambda: ((700,), {}), rounds=3)

    def test_of_something_else(numbers):
        raise AssertionError
"""
CONFTEST = """
    import pytest

    @pytest.fixture
    def start():
        return 7
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from, and forgotten after; a real triton is not seen."""
    loaded, path = dict(sys.modules), list(sys.path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - set(loaded):
        del sys.modules[name]
    sys.modules.update(loaded)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))


def loaded(folder: Path, text: str) -> list[Case]:
    write(folder, {"bench_x.py": text})
    return load_file(str(folder / "bench_x.py"))


def test_each_point_of_a_report_is_a_case_of_what_it_hands_to_be_timed(here: Path) -> None:
    write(here, {"triton/__init__.py": "", "triton/testing.py": TRITON})
    cases = loaded(here, REPORT)
    assert [case.id for case in cases] == [
        "softmax[M,N=16x16,provider=ours]", "softmax[M,N=32x8,provider=ours]",
    ]  # fmt: skip
    assert cases[1].build("cpu")() == ("ours", sum(range(32 * 8 * 2)))
    assert cases[0].benchmark.tolerance == 0.05
    assert (Path(cases[0].benchmark.file).name, cases[0].benchmark.line) == ("bench_x.py", 5)
    assert cases[0].digest
    import triton.testing

    with pytest.raises(AssertionError, match="no place in a check"):
        triton.testing.do_bench(None)  # given back


def test_a_report_that_times_elsewhere_is_said(here: Path) -> None:
    write(here, {"triton/__init__.py": "", "triton/testing.py": TRITON})
    hidden = REPORT.replace("triton.testing.do_bench(lambda: (provider, sum(data)), rep=10)", "5")
    with pytest.raises(TypeError, match=r"handed nothing to triton\.testing\.do_bench"):
        loaded(here, hidden)[0].build("cpu")
    with pytest.raises(TypeError, match=r"is no benchmark of triton\.testing"):
        loaded(here, "from sns_gate.adapters import perf_report\nperf_report(3)\n")


ADAPTED = """
    from sns_gate.adapters import pytest_benchmarks

    pytest_benchmarks("tests/test_perf.py")
"""


def test_each_set_of_parameters_of_a_test_is_a_case(here: Path) -> None:
    write(here, {"pkg.py": "def work(n):\n    return n + 1\n", "tests/test_perf.py": TESTS,
                 "tests/conftest.py": CONFTEST})  # fmt: skip
    cases = loaded(here, ADAPTED)
    assert [case.id for case in cases] == [
        "test_work[power,name=2xtwo,n=500]", "test_work[power,name=2xtwo,n=600]", "test_pedantic",
    ]  # fmt: skip
    assert cases[0].build("cpu")() == 501
    assert cases[2].build("cpu")() == 701
    assert Path(cases[0].benchmark.file).name == "test_perf.py"


@pytest.mark.parametrize(
    "tests",
    ["def test_a():\n    pass\n",
     "import pytest\n@pytest.mark.skip\ndef test_a(benchmark):\n    pass\n"],
)  # fmt: skip
def test_a_file_without_a_test_to_take_is_said(here: Path, tests: str) -> None:
    write(here, {"tests/test_perf.py": tests})
    with pytest.raises(ValueError, match="hold no test with a 'benchmark' fixture"):
        loaded(here, ADAPTED)


#: Tests that only pytest itself can run, and what is said of each.
FOREIGN = {
    "def test_a(benchmark, tmp_path):\n    pass\n": "test_a needs the fixture 'tmp_path'",
    "@pytest.fixture\ndef place(tmp_path):\n    return 1\n\ndef test_a(benchmark, place):\n"
    "    pass\n": "place needs the fixture 'tmp_path'",
    "@pytest.fixture(params=[1])\ndef one(request):\n    return 1\n\n"
    "def test_a(benchmark, one):\n    pass\n": "one needs the fixture 'request'",
    "@pytest.mark.parametrize('n', [1], indirect=True)\ndef test_a(benchmark, n):\n"
    "    pass\n": "parametrized indirectly",
    "@pytest.mark.parametrize('n, m', [1])\ndef test_a(benchmark, n, m):\n"
    "    pass\n": "cannot be taken from pytest",
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_test_that_pytest_alone_can_run_is_a_broken_case_and_the_others_are_taken(
    here: Path, foreign: str
) -> None:
    tests = f"import pytest\n{foreign}\ndef test_b(benchmark):\n    benchmark(int)\n"
    write(here, {"tests/test_perf.py": tests})
    cases = {case.id: case for case in loaded(here, ADAPTED)}
    assert set(cases) == {"test_a", "test_b"}
    assert cases["test_b"].build("cpu")() == 0
    with pytest.raises(ValueError, match=FOREIGN[foreign]) as caught:
        cases["test_a"].build("cpu")
    assert "without=['test_a']" in str(caught.value)
    left = ADAPTED.replace(")", ", without=['test_a'])")
    assert [case.id for case in loaded(here, left)] == ["test_b"]


def test_parameters_may_be_given_by_name(here: Path) -> None:
    tests = """
        import pytest

        @pytest.mark.parametrize(argnames="n", argvalues=[1, 2])
        def test_named(benchmark, n):
            benchmark(lambda: n)
    """
    write(here, {"tests/test_perf.py": tests})
    assert [case.build("cpu")() for case in loaded(here, ADAPTED)] == [1, 2]


def test_values_without_a_text_of_their_own_are_named_by_their_place(here: Path) -> None:
    tests = """
        import pytest

        class Odd:
            pass

        @pytest.mark.parametrize("odd", [Odd(), Odd()])
        def test_odd(benchmark, odd):
            benchmark(lambda: odd)
    """
    write(here, {"tests/test_perf.py": tests})
    assert [case.id for case in loaded(here, ADAPTED)] == [
        "test_odd[odd=Odd0]", "test_odd[odd=Odd1]",
    ]  # fmt: skip


def test_a_test_that_hands_nothing_over_is_said(here: Path) -> None:
    write(here, {"tests/test_perf.py": "def test_a(benchmark):\n    pass\n"})
    with pytest.raises(TypeError, match="handed nothing to its benchmark fixture"):
        loaded(here, ADAPTED)[0].build("cpu")


def test_tests_of_a_repository_are_judged_on_both_revisions(repository: Path) -> None:
    adapted = ADAPTED.replace("tests/", "../tests/")
    foreign = TESTS + "\n    def test_files(benchmark, tmp_path):\n        pass\n"
    commit(repository, {"tests/test_perf.py": foreign, "tests/conftest.py": CONFTEST,
                        "benchmarks/bench_tests.py": adapted})  # fmt: skip
    slow = (repository / "pkg/__init__.py").read_text().replace("5e-7", "25e-7")
    commit(repository, {"pkg/__init__.py": slow})
    ran = check(repository, "--filter", "test_pedantic", "--filter", "test_files")
    expected = {"test_pedantic": "slower", "test_files": "broken"}
    assert ran.verdicts == expected, ran.out + ran.err
    assert "test_files needs the fixture 'tmp_path'" in ran.case("test_files").reasons[0].text
    assert ran.result is not None
    assert ran.result.baseline.loaded == ("pkg/__init__.py",)
    assert ran.case("test_pedantic").file == "tests/test_perf.py"
