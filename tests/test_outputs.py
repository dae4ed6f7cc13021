"""Both sides' outputs are compared before anything is timed: what differs is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch  # noqa: TID253 (its tensors are what is compared)
from hypothesis import given, settings
from hypothesis import strategies as st

from sns_gate import protocol
from sns_gate.errors import WorkerDied
from sns_gate.protocol import OutputWritten, Reply, Request
from sns_gate.session.outputs import Compared, compare_outputs
from sns_gate.types import CHECKED, OutputCheck, Side
from sns_gate.worker.outputs import write_output

_R = TypeVar("_R", bound=Reply)


@dataclass
class Returning:
    """A worker whose call returns this; ``spoil`` changes what it wrote.

    ``written`` are the bytes of the elements that it was asked for.
    """

    side: Side
    value: object
    spoil: Callable[[Path], None] = lambda _: None
    index: int = 0
    name: str = "worker 0"
    reached: tuple[str, ...] = ("the same",)
    not_renewed: int = 0
    most_bytes: int = 256 << 20
    written: list[int] = field(default_factory=list)

    def send(self, request: Request) -> None:
        assert isinstance(request, protocol.WriteOutput)
        request = replace(request, most_bytes=min(self.most_bytes, request.most_bytes))
        self.written.append(write_output(self.value, request))
        self.spoil(Path(request.stem))

    def receive(self, expected: type[_R], timeout_s: float) -> _R:
        del timeout_s
        found: Reply = OutputWritten(0, self.reached, 1, self.not_renewed)
        assert isinstance(found, expected)
        return found

    def ask(self, request: Request, expected: type[_R], timeout_s: float) -> _R:
        self.send(request)
        return self.receive(expected, timeout_s)

    def lent(self, folder: Path) -> AbstractContextManager[None]:
        del folder
        return nullcontext()


def compared(baseline: object, candidate: object, asked: OutputCheck = CHECKED) -> Compared:
    pair = Returning("baseline", baseline), Returning("candidate", candidate)
    return compare_outputs(pair, asked, 1, 1.0)


def wrong(baseline: object, candidate: object, asked: OutputCheck = CHECKED) -> str:
    found = compared(baseline, candidate, asked).wrong
    return found.text if found else ""


@dataclass
class Pair:
    left: Any
    right: Any


BF16 = torch.bfloat16
ODD = torch.tensor([math.nan, math.inf, -math.inf])
RANDOM = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        (RANDOM, RANDOM.clone()),
        (RANDOM.to(BF16), (RANDOM * (1 + 1e-3)).to(BF16)),
        (RANDOM, RANDOM * (1 + 1e-7)),
        (RANDOM + 100, (RANDOM + 100) + 1e-4),
        (RANDOM, RANDOM.t().contiguous().t()),
        (ODD, ODD.clone()),
        (torch.zeros(0, 3), torch.zeros(0, 3)),
        (torch.tensor(3.0), torch.tensor(3.0)),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j]).conj().conj()),
        (torch.ones(3).to(torch.float8_e4m3fn), torch.ones(3).to(torch.float8_e4m3fn)),
        (torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))),
        ({"a": [1, (RANDOM, 2.0)]}, {"a": [1, (RANDOM.clone(), 2.0)]}),
        (Pair(RANDOM, "x"), Pair(RANDOM.clone(), "x")),
        (np.float32(0.1) * np.float32(3), np.float32(0.3)),
        (np.float32(1.0), 1.0),
        (np.float16(1.0), np.float16(1.001)),
        (float(np.float32(1 / 3)), 1 / 3),
        (np.complex64(1 + 1e-9j), np.complex64(1 + 2e-9j)),
        (1 + 2j, 1.0000001 + 2j),
        ({(0, 1): 1.0, (1, 0): 2.0}, {(1, 0): 2.0, (0, 1): 1.0}),
        (np.ma.masked_less(np.arange(5), 2), np.ma.masked_less(np.arange(5), 2)),
        (np.arange(3, dtype=np.int64) << 60, np.arange(3, dtype=np.int64) << 60),
        (np.arange(5), np.arange(5)),
        (0.1 + 0.2, 0.3),
        (math.nan, math.nan),
        ("text", "text"),
    ],
)  # fmt: skip
def test_the_same_is_the_same(baseline: object, candidate: object) -> None:
    assert compared(baseline, candidate) == Compared()


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        (RANDOM, RANDOM + 0.01, "4096 of 4096 elements differ"),
        (RANDOM.to(BF16), (RANDOM * 1.1).to(BF16), "elements differ by more than 0.032"),
        (RANDOM, RANDOM.to(BF16), "array of bfloat16, and the baseline's is an array of float32"),
        (RANDOM, RANDOM[:32], r"the shape (32, 64), and the baseline's has the shape (64, 64)"),
        (torch.arange(5), torch.tensor([0, 1, 2, 3, 5]), "1 of 5 elements differ"),
        (torch.arange(5), torch.tensor([0, 1, 2, 3, 5]), "at [4], where 5 stands for 4"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1 elements differ"),
        (torch.tensor([1.0]), torch.tensor([math.nan]), "where nan stands for 1"),
        (torch.tensor([math.nan]), torch.tensor([1.0]), "where 1 stands for nan"),
        (torch.tensor([math.inf]), torch.tensor([-math.inf]), "where -inf stands for inf"),
        (torch.tensor([1 + 2j]), torch.tensor([1 - 2j]), "1 of 1 elements differ"),
        ({"a": 1}, {"b": 1}, "the parts 'b', and the baseline's has the parts 'a'"),
        ([1, 2], [1], "the parts 0, and the baseline's has the parts 0, 1"),
        ([1, 2], (1, 2), "a tuple, and the baseline's is a list"),
        ({"a": [RANDOM]}, {"a": [RANDOM + 1]}, "output['a'][0]: 4096 of 4096"),
        (Pair(1, 2), Pair(1, 3), "output[right] is 3, and the baseline's is 2"),
        (1.0, 1.1, "output is 1.1, and the baseline's is 1.0"),
        (1, 1.0, "output is the float 1.0, and the baseline's is the int 1"),
        (None, RANDOM, "output is an array of float32, and the baseline's is nothing"),
        ("a", "b", "output is 'b', and the baseline's is 'a'"),
        (np.arange(5.0), np.arange(5.0) + 1, "5 of 5 elements differ"),
    ],
)  # fmt: skip
def test_what_differs_is_said_with_where_and_how_far(
    baseline: object, candidate: object, said: str
) -> None:
    assert said in wrong(baseline, candidate)


def test_a_single_element_of_many_is_found_wherever_it_is() -> None:
    one = torch.zeros(5_000_000)
    other = one.clone()
    other[4_999_999] = 1.0
    assert "1 of 5000000 elements differ" in wrong(one, other)
    assert "at [4999999]" in wrong(one, other)


def test_an_element_near_zero_has_the_rounding_of_its_sum() -> None:
    """A product summed in another order: no element is wrong, however near zero it lies."""
    generator = torch.Generator().manual_seed(2)
    left, right = (torch.randn(256, 4096, generator=generator) for _ in range(2))
    product = left @ right.t()
    order = torch.randperm(4096, generator=generator)
    again = left[:, order] @ right[:, order].t()
    assert not torch.equal(product, again)
    assert compared(product, again) == Compared()


def test_a_few_elements_far_off_do_not_make_all_others_near() -> None:
    """Masked scores, and one that overflows a square."""
    for far in (-1e9, float(torch.finfo(torch.float32).min), 1e200):
        masked = RANDOM.double().clone()
        masked[:, :8] = far
        other = masked.clone()
        other[:, 8:] = 0.0
        assert "3584 of 4096 elements differ" in wrong(masked, other)
        assert compared(masked, masked * (1 + 1e-9)) == Compared()


def test_small_outputs_are_compared_by_their_own_size() -> None:
    assert "elements differ" in wrong(RANDOM * 1e-6, -RANDOM * 1e-6)
    assert compared(RANDOM * 1e-6, RANDOM * 1e-6 * (1 + 1e-7)) == Compared()


def test_code_that_rounds_less_often_is_not_wrong() -> None:
    x, a, b = (torch.randn(512, 512, generator=torch.Generator().manual_seed(n)) for n in range(3))
    for dtype in (torch.float16, BF16):
        one, two, three = (t.to(dtype) for t in (x, a, b))
        step_by_step = torch.nn.functional.gelu(one * two + three) * one + three
        fused = torch.nn.functional.gelu(one.float() * two.float() + three.float())
        fused = (fused * one.float() + three.float()).to(dtype)
        assert not torch.equal(step_by_step, fused)
        assert compared(step_by_step, fused) == Compared()


class Unset:
    """A type of the user's that raises where it is looked at."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)


def in_itself() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (lambda: {"b": 1, "a": 2}, {"a": 2, "b": 1}),
        (lambda: {object(): 1}, {object(): 1}),
        (lambda: np.float32(1.5), 1.5),
        (lambda: np.int64(7), 7),
        (lambda: np.arange(3.0).astype(">f4"), np.arange(3.0).astype("<f4")),
        (lambda: "x" * 50_000, "x" * 50_000),
        (in_itself, in_itself()),
    ],
)  # fmt: skip
def test_honest_outputs_of_odd_kinds_are_no_fault(
    value: Callable[[], object], same: object
) -> None:
    assert compared(value(), same).wrong is None
    assert compared(same, value()).wrong is None


def test_long_texts_and_numbers_are_compared_whole() -> None:
    assert wrong("x" * 50_000, "x" * 49_999 + "y")
    assert compared(3**20000, 3**20000) == Compared()
    assert compared(3**20000, 3**20000 + 1).wrong is not None
    assert wrong(np.float32(1.5), 1.75)


def test_what_raises_where_it_is_looked_at_is_not_compared_and_that_is_said() -> None:
    assert compared(Unset(), Unset()).notes[0].code == "outputs-unchecked"


def test_a_benchmark_may_set_its_own_tolerance() -> None:
    assert wrong(RANDOM, RANDOM + 0.01, OutputCheck(atol=0.1)) == ""
    assert wrong(RANDOM, RANDOM * 1.05, OutputCheck(rtol=0.1)) == ""
    assert "differ" in wrong(RANDOM, RANDOM * (1 + 1e-7), OutputCheck(rtol=0, atol=0))
    assert wrong(torch.arange(5), torch.arange(5) + 1, OutputCheck(atol=1)) == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "returns nothing"), (object(), "a builtins.object"), ([object()], "[0] is a builtins"),
     (RANDOM.to_sparse(), "layout torch.sparse_coo")],
)  # fmt: skip
def test_what_cannot_be_compared_is_said(value: object, said: str) -> None:
    found = compared(value, value)
    assert found.wrong is None
    assert found.notes[0].code == "outputs-unchecked"
    assert said in found.notes[0].text


def test_parts_that_can_be_compared_are_beside_one_that_cannot() -> None:
    assert "output[1] is 2" in wrong([object(), 1], [object(), 2])


def test_outputs_beyond_all_measure_are_compared_in_part_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sns_gate.worker.outputs.MOST_BYTES_IN_ALL", 100)
    many, near = [np.ones(20), np.ones(20)], [np.ones(20) + 1e-12, np.ones(20)]
    assert not compared(many, many).notes
    assert "part behind 0 MiB of arrays" in compared(many, near).notes[0].text
    assert wrong([np.ones(20), np.ones(20)], [np.zeros(20), np.ones(20)])


def test_of_an_array_that_is_too_large_elements_at_even_distances_are_compared() -> None:
    one, baseline = torch.ones(10, 100), Returning("baseline", torch.ones(10, 100), most_bytes=400)
    other = one.clone()
    other[5, :] = 2.0
    found = compare_outputs(
        (baseline, Returning("candidate", other, most_bytes=400)), CHECKED, 1, 1.0
    )
    assert found.wrong is not None
    assert "10 of 100 elements differ" in found.wrong.text
    assert "at [5, 0]" in found.wrong.text
    near = Returning("candidate", one * (1 + 1e-6), most_bytes=400)
    assert compare_outputs((baseline, near), CHECKED, 1, 1.0).notes[0].code == "outputs-sampled"


def test_the_elements_are_asked_for_only_where_their_digests_differ() -> None:
    one, other = Returning("baseline", RANDOM), Returning("candidate", RANDOM.clone())
    assert compare_outputs((one, other), CHECKED, 1, 1.0) == Compared()
    assert (one.written, other.written) == ([0], [0])
    near = Returning("candidate", RANDOM * (1 + 1e-7))
    assert compare_outputs((one, near), CHECKED, 1, 1.0) == Compared()
    assert near.written == [0, RANDOM.nbytes]


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_whatever_a_worker_writes_is_refused_or_compared(text: bytes) -> None:
    def spoil(stem: Path) -> None:
        stem.with_suffix(".json").write_bytes(text)

    pair = Returning("baseline", RANDOM), Returning("candidate", RANDOM, spoil)
    with pytest.raises(WorkerDied, match="wrote no output"):
        compare_outputs(pair, CHECKED, 1, 1.0)


@pytest.mark.parametrize(
    "change",
    [{"size": 1 << 40}, {"at": -8}, {"size": 16383}, {"type": "object"}, {"type": "<V8"},
     {"at": 1 << 62}, {"size": -4}],
)  # fmt: skip
def test_an_array_that_is_not_as_it_says_is_refused(change: dict[str, Any]) -> None:
    def spoil(stem: Path) -> None:
        path = stem.with_suffix(".json")
        path.write_text(json.dumps(json.loads(path.read_text()) | change))

    pair = Returning("baseline", RANDOM, spoil), Returning("candidate", RANDOM + 1, spoil)
    with pytest.raises(WorkerDied, match="not as it says"):
        compare_outputs(pair, CHECKED, 1, 1.0)


class Late(torch.Tensor):  # type: ignore[misc]
    """A tensor of a class that might compute its elements when somebody reads them."""


class Stamped(np.ndarray[Any, Any]):
    """An array of a class of its own."""


def test_an_array_that_may_compute_late_is_not_taken_for_a_plain_one() -> None:
    plain = torch.ones(3)
    assert "of float32 and class Late" in wrong(plain, plain.as_subclass(Late))
    assert "and class Stamped" in wrong(np.ones(3), np.ones(3).view(Stamped))
    assert "is a list of list" in wrong([1], type("list", (list,), {})([1]))
    Late.__module__, Late.__name__ = "torch", "Tensor"
    assert wrong(plain, plain.as_subclass(Late)), "whatever name it goes by"


def test_arrays_of_the_libraries_own_classes_are_plain() -> None:
    plain = torch.ones(3)
    assert compared(plain, torch.nn.Parameter(plain)).wrong is None
    assert compared(plain.as_subclass(Late), plain.as_subclass(Late)).wrong is None


# ------------------------------------------------------------------ in a check
