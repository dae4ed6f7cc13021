"""A short number for all bytes of an array, made where the array lies, under a key.

Equal arrays have equal digests; arrays that differ anywhere have equal ones by a chance of at most
2^-32, whoever chose them, as long as the key came after: the sum of the array's words of 32 bits,
each times a random weight of 64 (Carter and Wegman's multilinear hashing). Most of the time both
sides return the same bits, and then nothing has to leave the device.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

#: Words that have weights of their own; each piece of so many has a sum of its own.
_WORDS = 1 << 16
_PIECES_AT_ONCE = 16
_WORD_BYTES = 4


def digest_tensor(flat: Any, key: int) -> str:  # noqa: ANN401 (torch is imported by the user)
    """Of a flat tensor's elements, on its device.

    Args:
        flat: tensor of one dimension, of any type with whole bytes.
        key: that draws the weights, below 2^63.
    """
    torch = sys.modules["torch"]
    flat = flat.resolve_conj().resolve_neg().contiguous()
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    raw = flat.view(torch.uint8)
    if raw.device.type == "cpu" and "numpy" in sys.modules:
        return digest_array(raw.numpy(), key)
    generator = torch.Generator(device=raw.device).manual_seed(key)
    bounds = {"low": -(1 << 63), "high": (1 << 63) - 1}
    weights = torch.randint(
        size=(_WORDS,), dtype=torch.int64, device=raw.device, generator=generator, **bounds
    )
    sums: list[int] = []
    for slab in raw.split(_PIECES_AT_ONCE * _WORDS * _WORD_BYTES):
        lacks = -slab.numel() % (_WORDS * _WORD_BYTES)
        if lacks or slab.data_ptr() % _WORD_BYTES:
            slab = torch.cat((slab, slab.new_zeros(lacks)))  # noqa: PLW2901 (its copy)
        words = slab.view(torch.int32).view(-1, _WORDS)
        sums.extend((weights * words).sum(1).tolist())
    return _short(raw.numel(), sums)


def digest_array(flat: Any, key: int) -> str:  # noqa: ANN401 (numpy likewise)
    """Of a flat numpy array's elements.

    Args:
        flat: array of one dimension, of any plain type.
        key: that draws the weights, below 2^63.
    """
    numpy = sys.modules["numpy"]
    raw = numpy.ascontiguousarray(numpy.asarray(flat).reshape(-1)).view(numpy.uint8)
    needed = min(_WORDS, -(-raw.size // _WORD_BYTES))
    weights = numpy.random.Generator(numpy.random.PCG64(key)).integers(
        0, (1 << 64) - 1, needed, dtype=numpy.uint64, endpoint=True
    )
    sums: list[int] = []
    for start in range(0, raw.size, _WORDS * _WORD_BYTES):
        piece = raw[start : start + _WORDS * _WORD_BYTES]
        words = numpy.pad(piece, (0, -piece.size % _WORD_BYTES)).view(numpy.uint32)
        sums.append(int((weights[: len(words)] * words).sum()))
    return _short(raw.size, sums)


def _short(size: int, sums: list[int]) -> str:
    return hashlib.blake2b(repr((size, sums)).encode(), digest_size=16).hexdigest()
