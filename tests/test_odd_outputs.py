"""Outputs that plain comparing would pass, or call unlike, and none of which is lost unseen."""

from __future__ import annotations

import numpy as np
import pytest
import torch  # noqa: TID253 (its tensors are what is compared)

from tests.test_outputs import RANDOM, compared, wrong


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        (np.full(3, 1 << 60), np.full(3, (1 << 60) + 1), "3 of 3 elements"),
        (torch.full((3,), 1 << 60), torch.full((3,), (1 << 60) + 100), "3 of 3 elements"),
        ({(0, 1): 1, (1, 0): 2}, {(7, 7): 1, (8, 8): 2}, "the parts"),
        (np.ma.masked_less(np.arange(9), 8), np.ma.masked_less(np.arange(9), 1), "output[data]"),
        (np.float32(1.0), np.float32(1.001), "is 1.001"),
        (1 + 2j, 1.01 + 2j, "1 of 1 elements"),
    ],
)
def test_what_plain_comparing_would_miss_is_seen(
    baseline: object, candidate: object, said: str
) -> None:
    assert said in wrong(baseline, candidate)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_no_vector() -> None:
    one, other = np.asmatrix([[1.0, 2.0], [3.0, 4.0]]), np.asmatrix([[1.0, 3.0], [2.0, 4.0]])
    assert "2 of 4 elements" in wrong(one, other)
    assert not wrong(one, one.copy())


class Unreadable(torch.Tensor):  # type: ignore[misc]
    """A tensor that nobody can take apart, as one for which there is no room."""

    def detach(self) -> torch.Tensor:
        raise RuntimeError("no room")


def test_what_could_not_be_read_on_one_side_is_no_difference_and_is_said() -> None:
    found = compared(RANDOM, RANDOM.clone().as_subclass(Unreadable))
    assert found.wrong is None
    assert "could not be read, a Unreadable (RuntimeError)" in found.notes[0].text


@pytest.mark.parametrize("error", [OSError(28, "No space left"), MemoryError()])
def test_want_of_room_is_an_error_and_no_output(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("sns_gate.worker.outputs._tensor", full)
    with pytest.raises(type(error)):
        compared(RANDOM, RANDOM)


def test_lists_of_very_many_numbers_are_not_taken_apart() -> None:
    many = [[float(n) for n in range(200)] for _ in range(200)]
    assert compared(many, many).notes[0].code == "outputs-unchecked"
    assert wrong([1.0, *many], [2.0, *many])


def test_a_view_whose_copy_does_not_fit_is_not_compared_and_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OutOfMemoryError(RuntimeError):
        pass

    def no_room(_: torch.Tensor, *__: int) -> torch.Tensor:
        raise OutOfMemoryError

    monkeypatch.setattr(torch.Tensor, "reshape", no_room)
    wide = torch.ones(1).expand(1 << 40)
    found = compared(wide, wide)
    assert found.wrong is None
    assert found.notes[0].code == "outputs-unchecked"
