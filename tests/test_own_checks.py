"""What a benchmark may say of its outputs and memory: own comparators, poison, tolerances."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch  # noqa: TID253 (its tensors are what is compared)

from sns_gate import benchmark
from sns_gate.benchmarks import Comparator
from sns_gate.discovery import load_file
from sns_gate.protocol import CaseSpec, WriteOutput
from sns_gate.session import Expected, PlannedCase, Policy, summarise
from sns_gate.types import MORE_MEMORY, CaseResult, GateResult, OutputCheck, Verdict
from sns_gate.worker.inputs import moved, snapshot
from sns_gate.worker.judging import judge, read_output
from sns_gate.worker.outputs import overwrite, write_output
from tests.conftest import WORK, check, commit
from tests.recorded import Recording
from tests.test_replay import recordings, run

CASE = "square[n=2000]"


@dataclasses.dataclass
class Fields:
    left: object
    right: object


@pytest.mark.parametrize(
    "value",
    [
        1, True, None, "text", b"bytes", 2.5, 1 + 2j, [1, (2, "x")], {"a": [1], 2: None},
        torch.arange(6).reshape(2, 3), torch.ones(3, dtype=torch.bfloat16), torch.empty(0, 4),
        np.linspace(0, 1, 5), np.array(3), {"deep": [torch.ones(2, 2, dtype=torch.bool)]},
    ],
    ids=lambda value: f"{type(value).__name__}",
)  # fmt: skip
def test_a_comparator_receives_what_was_returned(tmp_path: Path, value: object) -> None:
    write_output(value, WriteOutput(str(tmp_path / "one"), 1))
    back = read_output(str(tmp_path / "one"))
    if isinstance(value, (torch.Tensor, np.ndarray)):
        assert type(back) is type(value)
        assert (back.dtype, tuple(back.shape)) == (value.dtype, tuple(value.shape))
        assert bool((back == value).all())
    elif isinstance(value, dict) and "deep" in value:
        assert bool(back["deep"][0].all())
    else:
        assert back == value
        assert type(back) is type(value)


def test_a_dataclass_comes_back_as_a_namespace_of_its_fields(tmp_path: Path) -> None:
    write_output(Fields(1, [2.0]), WriteOutput(str(tmp_path / "one"), 1))
    assert read_output(str(tmp_path / "one")) == SimpleNamespace(left=1, right=[2.0])


def _asserts(baseline: float, candidate: float) -> None:
    torch.testing.assert_close(candidate, baseline, rtol=0.1, atol=0)


@pytest.mark.parametrize(
    ("comparator", "candidate", "said"),
    [
        (_asserts, 1.05, ""),
        (_asserts, 1.5, "Scalars are not close"),
        (lambda one, other: one < other, 1.5, ""),
        (lambda one, other: one > other, 1.5, "it returned False"),
        (lambda one, other: f"{other} is not {one}", 1.5, "1.5 is not 1.0"),
        (lambda *_: "", 1.5, ""),
    ],
)
def test_a_comparator_says_what_differs_in_its_own_way(
    tmp_path: Path, comparator: Comparator, candidate: float, said: str
) -> None:
    write_output(1.0, WriteOutput(str(tmp_path / "one"), 1))
    write_output(candidate, WriteOutput(str(tmp_path / "other"), 1))
    found = judge(comparator, str(tmp_path / "one"), str(tmp_path / "other"))
    assert found.startswith(said)
    assert bool(found) == bool(said)


def raises(one: float, other: float) -> bool:
    raise ValueError(f"shapes of {one} and {other}")


@pytest.mark.parametrize(
    ("comparator", "said"),
    [
        (lambda one, _: one, "it returned float, which is no verdict"),
        (raises, "it raised ValueError: shapes of 1.0 and 1.0"),
        (lambda one, other: np.float64(one) > other, "it returned False"),
        (lambda one, other: np.float64(one) == other, ""),
        (lambda *_: torch.ones(2).eq(1).all(), ""),
        (lambda *_: torch.ones(2).eq(2).all(), "it returned False"),
    ],
)
def test_whatever_a_comparator_does_is_a_verdict(
    tmp_path: Path, comparator: Comparator, said: str
) -> None:
    write_output(1.0, WriteOutput(str(tmp_path / "one"), 1))
    found = judge(comparator, str(tmp_path / "one"), str(tmp_path / "one"))
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"check": 3}, "True, False or a function"),
        ({"check": _asserts, "rtol": 0.1}, "names another"),
        ({"memory_tolerance": -0.1}, "memory_tolerance is a share"),
    ],
)
def test_an_unclear_wish_is_refused_where_it_is_written(asked: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        benchmark(**asked)(lambda: None)


# ------------------------------------------------------------------ whose comparator governs

BENCH = """
    from sns_gate import benchmark
    from pkg import work

    FAR = 1

    def near(one, other):
        return far(one, other)

    def far(one, other):
        return abs(one - other) <= FAR

    @benchmark(params={"n": [2000]}, check=near)
    def square(n):
        return lambda: work(n)
"""


def digest(folder: Path, text: str) -> str:
    path = folder / "bench_x.py"
    path.write_text(text.replace("\n    ", "\n"))
    return load_file(str(path))[0].comparator_digest


def test_two_versions_of_a_comparator_are_told_apart_by_all_that_they_lean_on(
    tmp_path: Path,
) -> None:
    bench = BENCH.replace("from pkg import work", "work = abs")
    same = digest(tmp_path, bench)
    assert same == digest(tmp_path, bench)
    for old, new in (("FAR = 1", "FAR = 9"), ("<= FAR", "<= 2 * FAR"), ("far(one", "far(other")):
        assert digest(tmp_path, bench.replace(old, new, 1)) != same, old
    assert digest(tmp_path, bench.replace("check=near", "check=True")) == ""


def test_a_comparators_helper_beside_its_file_belongs_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    helper = tmp_path / "nearness_for_a_test.py"
    helper.write_text("FAR = 1\n")
    bench = BENCH.replace("from pkg import work", "work = abs").replace(
        "FAR = 1", "from nearness_for_a_test import FAR"
    )
    before = digest(tmp_path, bench)
    helper.write_text("FAR = 9\n")
    assert digest(tmp_path, bench) != before
    sys.modules.pop("nearness_for_a_test")


def spec(**changes: object) -> CaseSpec:
    return CaseSpec("case", "f.py", 1, None, "auto", **changes)  # type: ignore[arg-type]


def test_a_comparator_that_a_change_brings_or_alters_does_not_govern_it() -> None:
    policy = Policy(0.02, from_baseline=True)
    same = policy.governs(spec(own_check="a"), spec(own_check="a"))
    assert (same.outputs, same.notes) == (OutputCheck(own="a"), ())
    for theirs, own in (("b", "a"), ("a", ""), ("", "a")):
        held = policy.governs(spec(own_check=theirs), spec(own_check=own))
        assert held.outputs == OutputCheck(), "the gate's own comparison is the stricter one"
        assert [note.code for note in held.notes] == ["policy-from-baseline"] * bool(theirs)


def test_a_change_cannot_raise_the_memory_it_may_take() -> None:
    policy = Policy(0.02, from_baseline=True, memory_tolerance=0.1)
    held = policy.governs(spec(memory_tolerance=9.0), spec())
    assert held.memory_tolerance == 0.1
    assert "a memory tolerance of 900%, the baseline's 10% governs" in held.notes[0].text
    assert (
        policy.governs(spec(memory_tolerance=9.0), spec(memory_tolerance=0.5)).memory_tolerance
        == 0.5
    )
    free = Policy(0.02, from_baseline=False, memory_tolerance=0.1)
    assert free.governs(spec(memory_tolerance=9.0), spec()).memory_tolerance == 9.0


def test_a_comparator_lets_pass_what_it_finds_alike_and_nothing_else(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH})
    commit(repository, {"pkg/__init__.py": WORK.replace("return True", "return 2")})
    alike = check(repository)
    assert alike.verdicts[CASE] in ("unchanged", "refused"), alike.out
    assert alike.case(CASE).speedup is not None
    commit(repository, {"pkg/__init__.py": WORK.replace("return True", "return 4")})
    unlike = check(repository)
    assert unlike.verdicts == {CASE: "wrong"}
    assert "the benchmark's own comparator finds both outputs unlike" in " ".join(
        unlike.out.split()
    )


# ------------------------------------------------------------------ poison and changed inputs

MEMO = """
    import functools
    import numpy as np

    @functools.lru_cache
    def work(n):
        return np.arange(n) * 2.0
"""
POISONED = """
    from sns_gate import benchmark
    from pkg import work

    @benchmark(poison=True)
    def doubled():
        return lambda: work(2000)
"""


def test_what_only_returns_its_old_answer_is_wrong_once_that_is_overwritten(
    repository: Path,
) -> None:
    fresh = MEMO.replace("    @functools.lru_cache\n", "")
    commit(repository, {"pkg/__init__.py": fresh, "benchmarks/bench_work.py": POISONED})
    commit(repository, {"pkg/__init__.py": MEMO})
    ran = check(repository)
    assert ran.verdicts == {"doubled": "wrong"}, ran.out
    assert "nan stands for" in " ".join(ran.out.split())


def test_everything_that_can_be_written_to_is_overwritten() -> None:
    made = {"a": torch.ones(3), "b": [np.ones(2), (torch.ones(2, dtype=torch.int32), 5)]}
    overwrite(made)
    assert bool(torch.isnan(made["a"]).all())
    array, (whole, number) = made["b"]
    assert np.isnan(array).all()
    assert whole.tolist() == [113, 113]
    assert number == 5


def in_place(scale: float) -> Callable[[], torch.Tensor]:
    x = torch.rand(100) + 1
    return lambda: x.mul_(scale)


def into_a_buffer() -> Callable[[], torch.Tensor]:
    x, out = torch.rand(100), torch.empty(100)
    return lambda: torch.mul(x, 2, out=out)


@pytest.mark.parametrize(
    ("call", "changed"),
    [(in_place(1.1), 1), (in_place(1.0), 0), (into_a_buffer(), 0), (lambda: torch.rand(3), 0)],
)
def test_a_call_that_works_on_what_the_last_one_left_is_seen(
    call: Callable[[], torch.Tensor], changed: int
) -> None:
    call()
    before = snapshot(call)
    call()
    assert moved(before, snapshot(call)) == changed


def test_changed_inputs_are_said_and_judged(repository: Path) -> None:
    bench = """
        import numpy as np
        from sns_gate import benchmark
        from pkg import work

        @benchmark
        def grows():
            x = np.ones(100)
            def call():
                work(2000)
                x[:] += 1.0
                return x
            return call
    """
    commit(repository, {"benchmarks/bench_work.py": bench})
    commit(repository, {"README": "the same"})
    ran = check(repository)
    assert ran.case("grows").speedup is not None
    assert "inputs-changed" in [reason.code for reason in ran.case("grows").reasons]
    assert "1 of the baseline's and 1 of the candidate's" in " ".join(ran.out.split())


# ------------------------------------------------------------------ memory


def remembered(peaks: tuple[int | None, int | None], tolerance: float | None) -> CaseResult:
    measured = dataclasses.replace(run(recording()), peak_bytes=peaks)
    planned = PlannedCase(spec(), tolerance=0.02, memory_tolerance=tolerance)
    expected = Expected(on_gpu=True, nvml=True, locked_mhz=None, blocks=16)
    return summarise(planned, measured, expected, 1).result


def recording() -> Recording:
    return next(one for one in recordings() if one.candidate_kernel == "mm4096")


def test_more_memory_than_allowed_is_wrong_whatever_its_speed() -> None:
    case = remembered((100 << 20, 120 << 20), 0.1)
    assert (case.verdict, case.note) == (Verdict.WRONG, MORE_MEMORY)
    assert "takes 120.0 MiB" in case.reasons[0].text
    assert "100.0 MiB, 20.0% more" in case.reasons[0].text
    assert remembered((100 << 20, 120 << 20), 0.2).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("peaks", "codes"),
    [
        ((100 << 20, 120 << 20), ["memory-changed"]),
        ((120 << 20, 100 << 20), ["memory-changed"]),
        ((1000, 1005), []),
        ((None, None), []),
        ((0, 0), []),
    ],
)
def test_changed_memory_is_shown_and_passes_where_nothing_is_asked(
    peaks: tuple[int | None, int | None], codes: list[str]
) -> None:
    case = remembered(peaks, None)
    assert case.verdict is Verdict.UNCHANGED
    found = [reason.code for reason in case.reasons if reason.code == "memory-changed"]
    assert (found, case.baseline_peak_bytes) == (codes, peaks[0])


def test_the_next_step_of_a_case_that_is_wrong_for_its_memory_speaks_of_memory() -> None:
    from sns_gate.report import words
    from tests.test_report import result

    case = remembered((100, 200), 0.1)
    shown: GateResult = result(case)
    assert "--memory-tolerance" in words.next_step(shown)
