"""Digests of arrays: equal for equal bits wherever they lie, and unlike for any change."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch  # noqa: TID253 (its tensors are digested)

from sns_gate.worker import digests
from sns_gate.worker.digests import digest_array

KEY = 0x1234_5678_9ABC
WORDS = 1 << 16
TYPES = [
    torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int64,
    torch.uint16, torch.bool, torch.complex64, torch.float8_e4m3fn,
]  # fmt: skip


def digest_tensor(flat: torch.Tensor, key: int) -> str:
    """As on a device: a tensor of the CPU is digested as an array otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "numpy")
        return digests.digest_tensor(flat, key)


def noise(count: int, seed: int = 1) -> torch.Tensor:
    """Random bytes."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count,), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_equal_tensors_of_every_type_have_equal_digests(type_: torch.dtype) -> None:
    one = torch.arange(1001).remainder(2).to(type_)
    other = torch.cat((one[:1], one))[1:]  # of the same elements at another address
    assert digest_tensor(one, KEY) == digest_tensor(other, KEY)
    assert digest_tensor(one, KEY) != digest_tensor(one, KEY + 1)
    assert digest_tensor(one, KEY) != digest_tensor(other[:-1], KEY)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1000, 4 * WORDS - 1, 4 * WORDS + 1, 9 * WORDS])
def test_a_change_of_any_bit_anywhere_is_seen(count: int) -> None:
    one, rng = noise(count), random.Random(count)
    before = digest_tensor(one, KEY), digest_array(one.numpy(), KEY)
    for at in {0, count - 1, count // 2, rng.randrange(count)}:
        for bit in range(8):
            one[at] ^= 1 << bit
            assert digest_tensor(one, KEY) != before[0], (at, bit)
            assert digest_array(one.numpy(), KEY) != before[1], (at, bit)
            one[at] ^= 1 << bit
    assert digest_tensor(one, KEY) == before[0]


def test_changes_that_cancel_in_plain_sums_are_seen() -> None:
    """Signs flipped in pairs, elements swapped, pieces swapped: a sum of words hides each."""
    one = noise(8 * WORDS).view(torch.int32)
    flipped, swapped = one.clone(), one.clone()
    flipped[[3, 70_000]] ^= -(1 << 31)
    swapped[[5, 6]] = one[[6, 5]]
    pieces = torch.cat((one[WORDS:], one[:WORDS]))
    digests = [digest_tensor(value, KEY) for value in (one, flipped, swapped, pieces)]
    assert len(set(digests)) == len(digests)
    arrays = [digest_array(value.numpy(), KEY) for value in (one, flipped, swapped, pieces)]
    assert len(set(arrays)) == len(arrays)


@pytest.mark.parametrize("seed", range(20))
def test_equal_sign_bits_cancel_under_no_key(seed: int) -> None:
    """The worst difference is in the highest bits of words: the lowest ones of weights tell."""
    one = torch.zeros(64, dtype=torch.int32)
    other = one.clone()
    other[:: 1 + seed % 7] = -(1 << 31)
    assert digest_tensor(one, seed) != digest_tensor(other, seed)


def test_on_the_cpu_a_tensor_is_digested_as_the_array_that_it_is() -> None:
    one = torch.randn(100_000)
    assert digests.digest_tensor(one, KEY) == digest_array(one.numpy(), KEY)


def test_views_and_conjugates_are_digested_as_what_they_show() -> None:
    matrix = torch.randn(30, 40)
    assert digest_tensor(matrix.t().reshape(-1), KEY) == digest_tensor(
        matrix.t().contiguous().reshape(-1), KEY
    )
    numbers = torch.randn(9, dtype=torch.complex64)
    assert digest_tensor(numbers.conj(), KEY) == digest_tensor(numbers.conj().clone(), KEY)
    assert digest_tensor(numbers.conj(), KEY) != digest_tensor(numbers, KEY)
    assert digest_array(np.arange(10)[::2], KEY) == digest_array(np.arange(10)[::2].copy(), KEY)


def test_nothing_has_a_digest_and_the_global_generators_stay() -> None:
    state, random_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    assert digest_tensor(torch.empty(0), KEY)
    assert digest_array(np.empty(0), KEY)
    digest_tensor(torch.ones(5), KEY)
    digest_array(np.ones(5), KEY)
    assert torch.equal(torch.get_rng_state(), state)
    assert str(np.random.get_state()) == str(random_state)  # noqa: NPY002
