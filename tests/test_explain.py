"""A slower call is taken apart: what is new, gone or slower inside it is named."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest

from sns_gate import protocol
from sns_gate.report import causes, inside
from sns_gate.session import with_explanation
from sns_gate.session.explaining import explain_case
from sns_gate.timers.cpu import CpuTimer
from sns_gate.types import Explanation, Profile, ProfiledPart, Verdict
from sns_gate.worker.profiling import choices, profile, seen_kernels
from tests.conftest import check, commit, sns_gate
from tests.test_report import case

#: It sleeps as well, so that a busy machine does not hide how much slower it became.
SQUARE = """
    import time

    def square(n):
        time.sleep(0.001)
        return sum(i * i for i in range(n)) > 0

    def work(n):
        return square(n)
"""
SLOWER = SQUARE.replace("return square(n)", "return square(n) and square(n) and square(n)")


def side(
    *parts: tuple[str, float, float], outside: float = 0.0, launches: tuple[int, ...] = ()
) -> Profile:
    return Profile(
        source="kernels",
        parts=tuple(ProfiledPart(name=name, calls=calls, us=us) for name, calls, us in parts),
        outside_us=outside,
        launches=launches,
    )


# ------------------------------------------------------------------ in words


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        (
            side(("softmax", 1, 10.0)), side(("softmax", 2, 22.0)),
            "the extra 12.00 µs under the profiler are in softmax (called 2 times instead of 1)",
        ),
        (
            side(("fused", 1, 10.0)), side(("mul", 1, 8.0), ("add", 1, 8.0)),
            "the extra 6.000 µs under the profiler are in mul (new)",
        ),
        (
            side(("gemm", 1, 10.0), ("add", 1, 5.0)), side(("gemm", 1, 14.0), ("add", 1, 5.0)),
            "the extra 4.000 µs under the profiler are in gemm (slower)",
        ),
        (
            side(("gemm", 1, 10.0), ("add", 1, 5.0)), side(("gemm", 1, 10.0)),
            "the 5.000 µs less under the profiler are in add (gone)",
        ),
        (
            side(("gemm", 1, 10.0), outside=1.0), side(("gemm", 1, 10.0), outside=21.0),
            "the extra 20.00 µs under the profiler are in between kernels (slower)",
        ),
        (
            side(("a", 1, 10.0), ("b", 1, 10.0)), side(("a", 1, 15.0), ("b", 1, 15.0)),
            "the extra 10.00 µs under the profiler are in a (slower) and b (slower)",
        ),
        (
            side(("gemm", 1, 10.0)), side(("gemm", 1, 10.1)),
            "under a profiler both calls take the same time, so it shows no cause",
        ),
    ],
)  # fmt: skip
def test_the_sentence_names_the_culprit(baseline: Profile, candidate: Profile, said: str) -> None:
    assert inside.sentence(Explanation(baseline=baseline, candidate=candidate)) == said


def test_a_profiler_that_sees_the_opposite_is_no_cause_and_is_said_to_be_so() -> None:
    """As where a generator, each step of which it makes dear, gives way to a list."""
    fewer = Explanation(baseline=side(("step", 99, 50.0), ("sum", 1, 5.0)),
                        candidate=side(("sum", 1, 9.0)))  # fmt: skip
    said = inside.sentence(fewer, Verdict.SLOWER)
    assert said.startswith(
        "under a profiler, which slows small calls down most, it takes less time"
    )
    assert "what changed: step (gone)" in said
    assert inside.sentence(fewer, Verdict.FASTER) == inside.sentence(fewer)
    more = Explanation(baseline=fewer.candidate, candidate=fewer.baseline)
    assert "it takes more time; what changed: step (new)" in inside.sentence(more, Verdict.FASTER)


def test_parts_stand_with_the_most_changed_first_and_equal_ones_are_left_out() -> None:
    found = Explanation(
        baseline=side(("same", 1, 50.0), ("slower", 1, 5.0), ("gone", 1, 7.0)),
        candidate=side(("same", 1, 50.0), ("slower", 1, 8.0), ("new", 3, 20.0)),
    )
    rows = inside.telling(inside.changes(found), 10)
    assert [row.name for row in rows] == ["new", "gone", "slower"]
    assert inside.cells(rows[0]) == ("", "20.00 µs in 3 calls", "+20.00 µs", "new")
    assert inside.cells(rows[1]) == ("7.000 µs", "", "-7.000 µs", "gone")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
         "vectorized_elementwise_kernel of AddFunctor"),
        (("void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda("
         "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}, "
         "std::array<char*, 2ul> >(int, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::"
         "{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>)"),
         "vectorized_elementwise_kernel of neg_kernel_cuda"),
        (("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
         "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::"
         "MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"),
         "elementwise_kernel of MulFunctor"),
        (("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::"
         "func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()("
         "at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >(int)"),
         "reduce_kernel of sum_functor"),
        (("void at::native::(anonymous namespace)::cunn_SoftMaxForwardSmem<8, float, at::native::"
         "(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, long)"),
         "at::native::cunn_SoftMaxForwardSmem"),
        ("softmax_kernel", "softmax_kernel"),
        ("kit/__init__.py:work.<locals>.<genexpr>", "kit/__init__.py:work.<locals>.<genexpr>"),
        ("<built-in method time.sleep>", "<built-in method time.sleep>"),
        ("gemm<float, tile<16>>(float*)", "gemm"),
        ("x" * 100, "x" * 30 + "…" + "x" * 30),
    ],
)  # fmt: skip
def test_a_kernels_name_is_cut_to_what_tells_it(name: str, short: str) -> None:
    assert inside.short(name) == short


# ------------------------------------------------------------------ what is seen


def test_kernels_are_counted_in_the_call_that_ran_them_and_gaps_between_them() -> None:
    ran = [
        ("gemm", 10.0, 20.0), ("Memcpy DtoD", 20.0, 22.0), ("add", 25.0, 30.0),
        ("gemm", 110.0, 120.0), ("Memcpy DtoD", 120.0, 122.0), ("add", 125.0, 130.0),
        ("before", 1.0, 2.0),
    ]  # fmt: skip
    seen = seen_kernels(ran, [(5.0, 40.0), (100.0, 140.0)])
    assert seen.launches == (2, 2)
    assert seen.outside_us == 3.0
    assert [(part.name, part.calls, part.us) for part in seen.parts] == [
        ("gemm", 1, 10.0), ("add", 1, 5.0), ("Memcpy DtoD", 1, 2.0),
    ]  # fmt: skip


def test_two_streams_at_once_leave_no_gap() -> None:
    seen = seen_kernels([("a", 1.0, 9.0), ("b", 2.0, 5.0), ("c", 9.5, 10.0)], [(0.0, 20.0)])
    assert seen.outside_us == 0.5
    assert seen_kernels([], [(0.0, 1.0)]).launches == (0,)


class Profiler:
    """A ``torch.profiler`` whose device's clock is behind the host's by this many microseconds."""

    def __init__(self, skew_us: float) -> None:
        self.skew_us = skew_us
        self.found: list[SimpleNamespace] = []
        self.ProfilerActivity = SimpleNamespace(CPU=0, CUDA=1)

    def profile(self, activities: list[int]) -> Profiler:
        assert activities == [0, 1]
        self.found = []
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def events(self) -> list[SimpleNamespace]:
        return self.found

    @contextmanager
    def record_function(self, name: str) -> Iterator[None]:
        start_us = self._now_us()
        yield
        self.add(name, start_us, self._now_us(), device_type="CPU")

    def run(self, *kernels: str) -> None:
        now_us = self._now_us() - self.skew_us
        for kernel in kernels:
            self.add(kernel, now_us, now_us + 1.0)
        self.add("a range", now_us, now_us + 1.0, is_user_annotation=True)

    def add(self, name: str, start: float, end: float, **more: object) -> None:
        span = SimpleNamespace(start=start, end=end)
        event = {"device_type": "CUDA", "is_user_annotation": False, **more}
        self.found.append(SimpleNamespace(name=name, time_range=span, **event))

    @staticmethod
    def _now_us() -> float:
        return time.perf_counter_ns() / 1e3


@pytest.mark.parametrize("skew_us", [-200.0, 0.0, 200.0])
def test_kernels_are_those_of_their_call_though_two_clocks_are_apart(
    monkeypatch: pytest.MonkeyPatch, skew_us: float
) -> None:
    profiler = Profiler(skew_us)
    kinds = SimpleNamespace(DeviceType=SimpleNamespace(CUDA="CUDA"))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(profiler=profiler, autograd=kinds))
    timer = CpuTimer()
    timer.device = "cuda:0"
    (found,) = profile(lambda: profiler.run("gemm", "add"), timer).profiles
    assert found.source == "kernels"
    assert set(found.launches) == {2}
    assert {(part.name, part.calls) for part in found.parts} == {("gemm", 1), ("add", 1)}


def test_functions_and_operators_are_both_taken_apart_on_the_cpu() -> None:
    import torch

    x = torch.rand(64, 64)
    found = {
        one.source: one for one in profile(lambda: torch.softmax(x @ x, -1), CpuTimer()).profiles
    }
    assert set(found) == {"operators", "functions"}
    names = [part.name for part in found["operators"].parts]
    assert "aten::mm" in names
    assert "aten::_softmax" in names
    assert any("<lambda>" in part.name for part in found["functions"].parts)
    assert next(p for p in found["operators"].parts if p.name == "aten::mm").calls == 1


def test_what_an_autotuner_settled_on_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Autotuner:
        best_config = "BLOCK: 128, num_warps: 4"
        base_fn = SimpleNamespace(__name__="softmax_kernel")

    import tests.test_explain as here  # noqa: PLW0406 (a module that holds one)

    monkeypatch.setattr(here, "tuned", Autotuner(), raising=False)
    assert choices() == ("softmax_kernel: BLOCK: 128, num_warps: 4",)


def test_operators_that_hold_little_of_the_call_give_way_to_functions() -> None:
    functions = protocol.ProfileSeen("functions", (protocol.PartSeen("f", 1, 90.0),), 0.0, (), ())

    class Worker:
        side = "baseline"
        index = 0
        name = "w"

        def send(self, request: object) -> None:
            del request

        def receive(self, expected: object, timeout_s: float) -> object:
            del timeout_s, expected
            return protocol.Placed(0.0, 0)

        def ask(self, request: object, expected: object, timeout_s: float) -> protocol.Profiled:
            del request, expected, timeout_s
            few = protocol.ProfileSeen(
                "operators", (protocol.PartSeen("aten::add", 1, 1.0),), 90.0, (), ()
            )
            return protocol.Profiled((few, functions))

    found = explain_case(lambda _: [Worker()], "case", 0, 1.0)  # type: ignore[list-item]
    assert found is not None
    assert found.candidate.source == "functions"


# ------------------------------------------------------------------ what it decides


def test_a_faster_candidate_whose_launches_vary_is_refused_and_a_steady_one_is_not() -> None:
    faster = case("add", Verdict.FASTER, 1.5, 1.6, 1.7)
    varying = Explanation(
        baseline=side(("k", 1, 2.0), launches=(2, 2, 2)),
        candidate=side(("k", 1, 1.0), launches=(2, 0, 0)),
    )
    refused = with_explanation(faster, varying)
    assert (refused.verdict, refused.note) == (Verdict.REFUSED, "launches-vary")
    assert "launches 0 to 2 kernels a call, and the baseline always 2" in refused.reasons[-1].text
    steady = varying.model_copy(update={"candidate": side(("k", 1, 1.0), launches=(1, 1, 1))})
    both = varying.model_copy(update={"baseline": varying.candidate})
    for found in (steady, both):
        assert with_explanation(faster, found).verdict is Verdict.FASTER
    same = case("add", Verdict.UNCHANGED, 0.99, 1.0, 1.01)
    assert with_explanation(same, varying).verdict is Verdict.REFUSED, "it hides a slowdown"
    slower = case("add", Verdict.SLOWER, 0.5, 0.6, 0.7)
    assert with_explanation(slower, varying).verdict is Verdict.SLOWER
    assert with_explanation(faster, None) == faster


# ------------------------------------------------------------------ in a check, and alone


def test_a_check_says_where_the_time_of_a_slower_case_went(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": SQUARE})
    commit(repository, {"pkg/__init__.py": SLOWER})
    ran = check(repository, "--explain", "changed")
    found = ran.case("square[n=2000]")
    assert found.verdict is Verdict.SLOWER, ran.out
    assert found.explanation.candidate.source == "functions"
    said = " ".join(ran.out.split())
    # Which of its parts comes first is the profiler's and the host's affair.
    assert "square[n=2000]: the extra time is in" in said
    assert "instead of" in said
    calls = {part.name: part.calls for part in found.explanation.candidate.parts}
    assert any("genexpr" in name and count == 6003 for name, count in calls.items())
    again = sns_gate(repository, "explain", "square", "--device", "cpu", "--baseline", "HEAD~1")
    assert again.code == 0, again.err
    assert "called 6003 times instead of 2001" in " ".join(again.out.split())
    silent = check(repository)
    assert silent.case("square[n=2000]").explanation is None


def test_a_case_that_raises_is_not_explained_and_the_reason_is_said(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": "def work(n):\n    raise ValueError('boom')\n"})
    ran = sns_gate(repository, "explain", "square", "--device", "cpu", "--baseline", "HEAD~1")
    assert ran.code == 3
    assert "could not be taken apart" in ran.out
    assert "boom" in ran.out


def test_cases_of_one_side_and_files_that_do_not_load_are_named(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_new.py": """
        from sns_gate import benchmark
        from pkg import fresh

        @benchmark
        def new():
            return fresh
    """, "pkg/__init__.py": "def fresh():\n    return 1\n",
        "benchmarks/bench_bad.py": "import nothing_of_this_name"})  # fmt: skip
    (repository / "benchmarks" / "bench_work.py").unlink()
    ran = sns_gate(repository, "explain", "*", "--device", "cpu", "--baseline", "HEAD~1")
    assert ran.code == 3
    assert "new: the baseline has no such case" in ran.out
    assert "square[n=2000]: the baseline has this case" in ran.out
    assert "nothing_of_this_name" in ran.out


def test_a_parts_name_acts_nowhere() -> None:
    hostile = "@everyone <script>alert(1)</script> | [x](http://e) `\n# "
    found = Explanation(
        baseline=side(("k", 1, 1.0)),
        candidate=side((hostile, 1, 9.0)).model_copy(update={"choices": (hostile,)}),
    )
    shown = case("add", Verdict.SLOWER, 0.5, 0.6, 0.7, explanation=found)
    for text in (causes.said([shown]), causes.tables([shown])):
        for harm in ("@everyone", "<script", "](http", "\n# "):
            assert harm not in text
    rows = [line for line in causes.tables([shown]).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {6}
