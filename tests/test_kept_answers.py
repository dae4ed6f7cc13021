"""Inputs get other values in place: an answer that was kept for them stays, and is seen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch  # noqa: TID253 (its tensors are what is renewed)

from sns_gate import protocol
from sns_gate.protocol import Request
from sns_gate.session.outputs import kept_answer
from sns_gate.worker import inputs
from sns_gate.worker.inputs import renew
from sns_gate.worker.outputs import write_output
from tests.test_outputs import Returning


@dataclass
class Answering(Returning):
    """A worker whose call answers by its inputs, which are renewed when that is asked."""

    numbers: list[float] | None = None
    answer: Callable[[list[float]], object] = lambda numbers: numbers

    def send(self, request: Request) -> None:
        assert isinstance(request, protocol.WriteOutput)
        assert self.numbers is not None
        numbers = self.numbers
        if request.renew:
            assert renew(lambda: numbers) == 1
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


@pytest.mark.parametrize("reached", [0, 2])
def test_an_answer_says_nothing_where_other_arrays_were_reached_on_both_sides(reached: int) -> None:
    pair = (
        Answering("baseline", None, reached=1, numbers=[1.0, 2.0, 3.0, 4.0], answer=sum),
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

    assert renew(functools.partial(call)) == 3
    assert tensor.tolist() == [0, 3, 3, 2, 4]
    assert array.tolist() == [0, 3, 3, 2, 4]
    assert numbers == [1.0, 3.0, 3.0, 4.0]
    assert (index.tolist(), names) == ([0, 1, 2, 3, 4], ["a", "b", "c", "d"]), "no quantities"
    assert shape == [1, 2, 3, 4], "whole numbers may be sizes"
    assert tensor._version == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_narrow_types_are_renewed(dtype: torch.dtype) -> None:
    tensor = torch.arange(8.0).to(dtype)
    assert renew(lambda: tensor) == 1
    assert tensor.float().tolist() == [0, 6, 1, 2, 6, 4, 5, 7]


def test_a_view_of_any_strides_is_renewed_in_place() -> None:
    whole = torch.arange(8.0).reshape(2, 4)
    view = whole.t()
    assert renew(lambda: view) == 1
    assert view.reshape(-1).tolist() == [0, 3, 4, 1, 3, 2, 6, 7]


def test_a_large_tensor_is_renewed_without_a_copy_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_PIECE", 4)
    tensor = torch.arange(10.0)
    assert renew(lambda: tensor) == 1
    assert tensor.tolist() == [0, 4, 1, 4, 3, 8, 5, 8, 7, 9]


def test_complex_inputs_are_renewed() -> None:
    tensor, array = torch.arange(5.0) * 1j, np.arange(5.0) * 1j
    assert renew(lambda: (tensor, array)) == 2
    assert tensor.imag.tolist() == array.imag.tolist() == [0, 3, 3, 2, 4]
