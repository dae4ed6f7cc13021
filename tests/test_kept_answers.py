"""Inputs get other values in place: an answer that was kept for them stays, and is seen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch  # noqa: TID253 (its tensors are what is renewed)

from sns_gate import protocol
from sns_gate.errors import CallRaised, WorkerDied, WorkerError, WorkerHung
from sns_gate.protocol import Request
from sns_gate.session.outputs import LostByRenewal, kept_answer
from sns_gate.types import SIDES
from sns_gate.worker import inputs
from sns_gate.worker.inputs import reachable, renewed
from sns_gate.worker.outputs import write_output
from tests.conftest import check, commit, measured
from tests.test_outputs import _R, Returning


def all_renewed(call: Callable[[], object]) -> AbstractContextManager[tuple[int, int]]:
    """Whatever can be reached gets other values."""
    return renewed(call, reachable(call))


@dataclass
class Answering(Returning):
    """A worker whose call answers by its inputs, which are renewed when that is asked."""

    numbers: list[float] | None = None
    answer: Callable[[list[float]], object] = lambda numbers: numbers

    def ask(self, request: Request, expected: type[_R], timeout_s: float) -> _R:
        if not isinstance(request, protocol.Release):
            return super().ask(request, expected, timeout_s)
        found: protocol.Reply = protocol.Released(0)
        assert isinstance(found, expected)
        return found

    def send(self, request: Request) -> None:
        assert isinstance(request, protocol.WriteOutput)
        assert self.numbers is not None
        numbers = self.numbers
        with all_renewed(lambda: numbers) if request.renew else nullcontext((1, 0)) as count:
            assert count == (1, 0)
            write_output(self.answer(numbers), request)


@pytest.mark.parametrize(
    ("baseline", "candidate", "kept"),
    [
        (sum, sum, False),
        (sum, lambda _: 10.0, True),
        (lambda _: 10.0, lambda _: 10.0, False),
        (sum, lambda numbers: 10.0 + 1e-12 * numbers[1], True),
        (sum, lambda numbers: {(1.0, 4.0): 10.0}[numbers[0], numbers[-1]], True),
    ],
)
def test_an_answer_that_does_not_follow_its_inputs_is_seen(
    baseline: Callable[[list[float]], object],
    candidate: Callable[[list[float]], object],
    *,
    kept: bool,
) -> None:
    pair = (
        Answering("baseline", None, numbers=[1.0, 2.0, 3.0, 4.0], answer=baseline),
        Answering("candidate", None, numbers=[1.0, 2.0, 3.0, 4.0], answer=candidate),
    )
    found = kept_answer(pair, 1, 1.0)
    assert (found is not None) is kept


@pytest.mark.parametrize("reached", [(), ("others",)])
def test_an_answer_says_nothing_where_other_arrays_were_reached_on_both_sides(
    reached: tuple[str, ...],
) -> None:
    pair = (
        Answering("baseline", None, reached=("those",), numbers=[1.0, 2.0, 3.0, 4.0], answer=sum),
        Answering(
            "candidate", None, reached=reached, numbers=[1.0, 2.0, 3.0, 4.0], answer=lambda _: 10.0
        ),
    )
    assert kept_answer(pair, 1, 1.0) is None


def test_inputs_of_every_kind_are_renewed_wherever_a_callable_holds_them() -> None:
    tensor, array, numbers = torch.arange(5.0), np.arange(5.0), [1.0, 2.0, 3.0, 4.0]
    index, names, shape = torch.arange(5), ["a", "b", "c", "d"], [1, 2, 3, 4]

    def call(default: object = array) -> object:
        return tensor, default, numbers, index, names, shape

    with all_renewed(functools.partial(call)) as count:
        assert count == (3, 0)
        assert tensor.tolist() == [0, 3, 3, 2, 4]
        assert array.tolist() == [0, 3, 3, 2, 4]
        assert numbers == [1.0, 3.0, 3.0, 4.0]
    assert tensor.tolist() == array.tolist() == list(range(5))
    assert numbers == [1.0, 2.0, 3.0, 4.0]
    assert (index.tolist(), names) == ([0, 1, 2, 3, 4], ["a", "b", "c", "d"]), "no quantities"
    assert shape == [1, 2, 3, 4], "whole numbers may be sizes"
    assert tensor._version == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_narrow_types_are_renewed(dtype: torch.dtype) -> None:
    tensor = torch.arange(8.0).to(dtype)
    with all_renewed(lambda: tensor):
        assert tensor.float().tolist() == [0, 6, 1, 2, 6, 4, 5, 7]
    assert tensor.float().tolist() == list(range(8))


def test_a_view_of_any_strides_is_renewed_in_place() -> None:
    whole = torch.arange(8.0).reshape(2, 4)
    view = whole.t()
    rows = np.arange(8.0).reshape(2, 4).T
    with all_renewed(lambda: (view, rows)) as count:
        assert count == (2, 0)
        assert whole.reshape(-1).tolist() == [0, 6, 1, 2, 6, 4, 5, 7], "in the order of its memory"
        assert rows.reshape(-1).tolist() == [0, 3, 4, 1, 3, 2, 6, 7]
    assert whole.reshape(-1).tolist() == list(range(8))
    assert rows.T.reshape(-1).tolist() == list(range(8))


def test_a_large_tensor_is_renewed_without_a_copy_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_PIECE", 4)
    tensor, array = torch.arange(10.0), np.arange(10.0)
    with all_renewed(lambda: (tensor, array)):
        assert tensor.tolist() == array.tolist() == [0, 4, 1, 4, 3, 8, 5, 8, 7, 9]
    assert tensor.tolist() == array.tolist() == list(range(10))


def test_complex_inputs_are_renewed() -> None:
    tensor, array = torch.arange(5.0) * 1j, np.arange(5.0) * 1j
    with all_renewed(lambda: (tensor, array)) as count:
        assert count == (2, 0)
        assert tensor.imag.tolist() == array.imag.tolist() == [0, 3, 3, 2, 4]
    assert tensor.imag.tolist() == array.imag.tolist() == list(range(5))


def test_all_is_as_it_was_also_where_the_call_raises() -> None:
    tensor = torch.arange(5.0)
    with pytest.raises(ValueError, match="such values"), all_renewed(lambda: tensor):
        raise ValueError("such values")
    assert tensor.tolist() == list(range(5))


def test_what_is_reached_is_told_by_its_contents() -> None:
    one, buffer = torch.arange(5.0), torch.zeros(5)
    (digest,) = reachable(lambda: one).values()
    assert list(reachable(functools.partial(print, one.clone())).values()) == [digest]
    both = reachable(lambda: (one, buffer))
    assert both[id(one)] == digest != both[id(buffer)]
    assert reachable(lambda: 3) == {}


def test_a_buffer_for_the_answer_is_left_alone_and_the_inputs_are_renewed() -> None:
    """It holds whatever was there before, which is not the same on both sides."""
    inputs, buffer = torch.arange(5.0), torch.full((5,), 7.0)
    known = reachable(lambda: (inputs, buffer))
    with renewed(lambda: (inputs, buffer), {id(inputs)}) as count:
        assert (count, len(known)) == ((1, 0), 2)
        assert inputs.tolist() == [0, 3, 3, 2, 4]
        assert buffer.tolist() == [7.0] * 5


def test_what_cannot_be_written_to_is_counted_and_says_nothing() -> None:
    array = np.arange(5.0)
    array.flags.writeable = False
    with all_renewed(lambda: array) as count:
        assert count == (0, 1)
    pair = (
        Answering("baseline", None, numbers=[1.0, 2.0, 3.0, 4.0], answer=sum),
        Answering(
            "candidate", None, not_renewed=1, numbers=[1.0, 2.0, 3.0, 4.0], answer=lambda _: 10.0
        ),
    )
    assert kept_answer(pair, 1, 1.0) is None


def test_tensors_made_for_inference_are_renewed_and_given_back() -> None:
    with torch.inference_mode():
        dense, turned = torch.arange(8.0), torch.arange(8.0).reshape(2, 4).t()
    usual = torch.arange(8.0, requires_grad=True)
    with all_renewed(lambda: (dense, turned, usual)) as count:
        assert count == (3, 0)
        assert dense.tolist() == usual.tolist() == [0, 6, 1, 2, 6, 4, 5, 7]
    for tensor in (dense, turned.t().reshape(-1), usual):
        assert tensor.tolist() == list(range(8))
    assert usual._version == 0


@dataclass
class Failing(Answering):
    """A worker that other values do not agree with."""

    how: Callable[[str], WorkerError] | None = None
    asked: int = 0

    def receive(self, expected: type[_R], timeout_s: float) -> _R:
        self.asked += 1
        if self.asked > 1 and self.how is not None:
            raise self.how(self.name)
        return super().receive(expected, timeout_s)


@pytest.mark.parametrize(
    ("how", "lost"),
    [
        (lambda name: CallRaised(name, "no shares", ""), False),
        (lambda name: CallRaised(name, "device-side assert", "", fatal=True), True),
        (lambda name: WorkerDied(name, "was killed"), True),
        (lambda name: WorkerHung(name, "no answer"), True),
    ],
)
def test_what_other_values_do_to_a_worker_is_no_fault_of_its_code(
    how: Callable[[str], WorkerError], *, lost: bool
) -> None:
    numbers = [1.0, 2.0, 3.0, 4.0]
    pair = (
        Answering("baseline", None, numbers=list(numbers), answer=sum),
        Failing("candidate", None, numbers=list(numbers), answer=sum, how=how),
    )
    with pytest.raises(LostByRenewal) if lost else nullcontext():
        assert kept_answer(pair, 1, 1.0) is None


def test_two_workers_that_other_values_end_are_no_fault_of_their_code() -> None:
    def how(name: str) -> WorkerError:
        return CallRaised(name, "device-side assert", "", fatal=True)

    pair = tuple(
        Failing(side, None, numbers=[1.0, 2.0, 3.0, 4.0], answer=sum, how=how) for side in SIDES
    )
    with pytest.raises(LostByRenewal):
        kept_answer((pair[0], pair[1]), 1, 1.0)


def test_a_call_that_ends_its_worker_on_other_values_is_judged_by_its_times(
    repository: Path,
) -> None:
    commit(repository, {"benchmarks/bench_work.py": """
        import os, time
        from sns_gate import benchmark
        from pkg import work

        @benchmark(params={"n": [1, 2]})
        def solved(n):
            shares = [0.5, 0.125, 0.25, 0.5]

            def call():
                time.sleep(0.002)
                if shares[1] != 0.125:
                    os._exit(9)
                return sum(shares)

            return call
    """})  # fmt: skip
    commit(repository, {"README": "the same"})
    ran = check(repository, "--baseline", "HEAD~1")
    assert set(ran.verdicts.values()) == {"unchanged"}, ran.out + ran.err


def test_a_call_that_cannot_work_on_other_values_is_no_cheat(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": """
        from sns_gate import benchmark
        from pkg import work

        @benchmark
        def checked():
            shares = [0.125] * 4 + [0.25, 0.25]
            shares[1], shares[4] = shares[4], shares[1]

            def call():
                assert work(2000)
                if abs(sum(shares) - 1) > 1e-9:
                    raise ValueError("these are no shares")
                return sum(x * x for x in shares)

            return call
    """})  # fmt: skip
    commit(repository, {"README": "the same"})
    ran = check(repository, "--baseline", "HEAD~1")
    assert ran.result is not None
    assert measured(ran.result.model_dump(mode="json")["cases"][0]), ran.out


def test_an_unlike_buffer_is_no_kept_answer(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": """
        from sns_gate import benchmark
        from pkg import made

        @benchmark
        def replay():
            return made([1.0, 2.0, 4.0, 8.0])
    """, "pkg/__init__.py": """
        import time

        def made(x):
            def call():
                time.sleep(0.001)
                return [2 * v for v in x]
            return call
    """})  # fmt: skip
    commit(repository, {"pkg/__init__.py": """
        import time

        class Graph:
            def __init__(self, x):
                self.x = x

        def made(x):
            graph, buffer = Graph(x), [0.0] * 4
            def call():
                time.sleep(0.001)
                buffer[:] = [2 * v for v in graph.x]
                return list(buffer)
            return call
    """})  # fmt: skip
    ran = check(repository, "--baseline", "HEAD~1")
    assert ran.case("replay").verdict.value != "wrong", ran.out
