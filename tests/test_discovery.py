"""The decorator and the cases it makes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sns_gate import benchmark, benchmarks, discovery


def load(folder: Path, text: str, name: str = "bench_x.py") -> list[discovery.Case]:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return discovery.load_file(str(path))


def test_cases_are_the_product_of_the_parameters_in_order(tmp_path: Path) -> None:
    cases = load(
        tmp_path,
        """
        from sns_gate import benchmark

        @benchmark(params={"n": [1, 2], "kind": ["a", "b"]}, tolerance=0.01)
        def first(n, kind):
            return lambda: (n, kind)

        @benchmark
        def second(device):
            return lambda: device
        """,
    )
    assert [case.id for case in cases] == [
        "first[n=1,kind=a]", "first[n=1,kind=b]",
        "first[n=2,kind=a]", "first[n=2,kind=b]", "second",
    ]  # fmt: skip
    assert cases[2].build("cpu")() == (2, "a")
    assert cases[4].build("cuda:1")() == "cuda:1"
    assert cases[0].benchmark.tolerance == 0.01
    assert (Path(cases[0].benchmark.file).name, cases[0].benchmark.line) == ("bench_x.py", 4)


def test_a_helper_that_two_files_import_defines_its_cases_once(tmp_path: Path) -> None:
    (tmp_path / "shared_helper.py").write_text(
        "from sns_gate import benchmark\n@benchmark\ndef helper():\n    return print\n"
    )
    text = f"import sys\nsys.path.append({str(tmp_path)!r})\nimport shared_helper\n"
    ids = [c.id for name in ("bench_a.py", "bench_b.py") for c in load(tmp_path, text, name)]
    assert ids == ["helper"]


def test_a_file_that_fails_leaves_no_cases_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        load(tmp_path, "from sns_gate import benchmark\n@benchmark\ndef f():\n    pass\n1 / 0\n")
    assert [
        c.id
        for c in load(tmp_path, "from sns_gate import benchmark\n@benchmark\ndef g():\n    pass\n")
    ] == ["g"]


def test_a_setup_that_returns_no_callable_says_what_to_return() -> None:
    @benchmark(name="nothing")
    def setup() -> Any:  # noqa: ANN401
        return 3

    case = discovery.cases_of(benchmarks.registered[-1])[0]
    with pytest.raises(
        TypeError, match="'nothing' returned int, so there is nothing to time; return a"
    ):
        case.build("cpu")
    assert setup() == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: benchmark(tolerance=2.0), "is a share"),
        (lambda: benchmark(mode="hot"), "auto, cold, warm"),
        (lambda: benchmark(params={"n": []}), "parameter 'n' needs a list"),
        (lambda: benchmark(params={"n": "abc"}), "parameter 'n' needs a list"),
    ],
)
def test_a_wrong_decorator_is_an_error_where_it_stands(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_are_short_and_stable() -> None:
    class Odd:
        pass

    def kernel() -> None: ...

    assert discovery._labels([1, 2.5, "a b", None, True, (1, 2)]) == [
        "1", "2.5", "ab", "None", "True", "(1,2)",
    ]  # fmt: skip
    assert discovery._labels([Odd(), Odd()]) == ["Odd0", "Odd1"]
    assert discovery._labels([kernel]) == ["kernel"]


def test_torch_values_lose_their_prefix() -> None:
    torch = pytest.importorskip("torch")
    assert discovery._labels([torch.bfloat16]) == ["bfloat16"]


def test_files_are_found_in_every_folder_and_sorted(tmp_path: Path) -> None:
    for name in ("bench_b.py", "sub/bench_a.py", "other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [p.name for p in discovery.find_files(tmp_path)] == ["bench_b.py", "bench_a.py"]


def test_repeated_ids_are_named_once() -> None:
    assert discovery.repeated_ids(["a", "b", "a", "a"]) == ["a"]
