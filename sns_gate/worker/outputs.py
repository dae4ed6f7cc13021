"""What a call returned, written so that another process can compare it without this one's code.

``NAME.json`` holds the structure, ``NAME.bin`` the elements of all arrays, one after the other.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import sys
from typing import Any, BinaryIO

#: Of a larger array, elements at even distances are kept.
MOST_BYTES = 256 << 20
_DEEPEST, _MOST_ITEMS = 20, 10_000
_PLAIN = (bool, int, str, bytes, complex)
#: Stored as another type, which holds each of their values.
_WIDENED = {"complex32": "complex64"}
_WIDENED_STARTS = ("float8_", "float6_", "float4_")

Node = dict[str, Any]


def write_output(value: object, stem: str) -> int:
    """Write what a call returned to ``stem.json`` and ``stem.bin``; the bytes of its arrays.

    Args:
        value: that it returned.
        stem: path without an ending.
    """
    with open(f"{stem}.bin", "wb") as data:  # noqa: PTH123 (a string, as it came)
        tree = _node(value, data, 0)
        size = data.tell()
    with open(f"{stem}.json", "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(tree, file)
    return size


def _node(value: object, data: BinaryIO, depth: int) -> Node:
    if value is None:
        return {"kind": "none"}
    if isinstance(value, float):
        return {"kind": "float", "text": repr(value)}
    if isinstance(value, _PLAIN):
        return {"kind": "exact", "type": type(value).__name__, "text": repr(value)[:10_000]}
    items, keys = _items(value)
    if items is not None:
        if depth >= _DEEPEST or len(items) > _MOST_ITEMS:
            return {"kind": "opaque", "type": "a container too deep or too long"}
        made = [_node(item, data, depth + 1) for item in items]
        return {"kind": "items", "type": type(value).__name__, "keys": keys, "items": made}
    return _array(value, data)


def _items(value: object) -> tuple[list[object] | None, list[str]]:
    """What a container holds and under which names; None where it is no container."""
    if isinstance(value, (list, tuple)):
        return list(value), [str(index) for index in range(len(value))]
    if isinstance(value, dict):
        return list(value.values()), [repr(key) for key in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return [getattr(value, name) for name in names], names
    return None, []


def _array(value: Any, data: BinaryIO) -> Node:  # noqa: ANN401 (of the user's libraries)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.is_meta:
            return {"kind": "opaque", "type": f"{type(value).__name__} of layout {value.layout}"}
        return _tensor(torch, value.detach(), data)
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc":
        flat, step = _sampled(value.reshape(-1), value.nbytes, value.size)
        raw = numpy.ascontiguousarray(flat)
        at = data.tell()
        data.write(raw.tobytes())
        return _described(str(value.dtype), value.shape, step, at, data)
    return {"kind": "opaque", "type": f"{type(value).__module__}.{type(value).__qualname__}"}


def _tensor(torch: Any, value: Any, data: BinaryIO) -> Node:  # noqa: ANN401
    name = str(value.dtype).removeprefix("torch.")
    flat, step = _sampled(value.reshape(-1), value.numel() * value.element_size(), value.numel())
    if name.startswith(_WIDENED_STARTS):
        flat = flat.to(torch.float32)
    elif name in _WIDENED:
        flat = flat.to(getattr(torch, _WIDENED[name]))
    flat = flat.cpu().contiguous().resolve_conj().resolve_neg()
    size = flat.numel() * flat.element_size()
    at = data.tell()
    if size:
        data.write((ctypes.c_char * size).from_address(flat.data_ptr()))
    return _described(name, value.shape, step, at, data)


def _sampled(flat: Any, size: int, count: int) -> tuple[Any, int]:  # noqa: ANN401
    step = max(1, -(-size // MOST_BYTES))
    return (flat if step == 1 or not count else flat[::step]), step


def _described(name: str, shape: Any, step: int, at: int, data: BinaryIO) -> Node:  # noqa: ANN401
    return {
        "kind": "array", "type": name, "shape": [int(n) for n in shape],
        "step": step, "at": at, "size": data.tell() - at,
    }  # fmt: skip
