"""What a call returned, written so that another process can compare it without this one's code.

``NAME.json`` holds the structure, ``NAME.bin`` the elements of all arrays, one after the other.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO

from sns_gate.protocol import WriteOutput
from sns_gate.worker.digests import digest_array, digest_tensor

#: Of all arrays of an output together; what comes after is not compared, and that is said.
MOST_BYTES_IN_ALL = 1 << 30
_DEEPEST, _MOST_PARTS = 20, 20_000
_LONGEST = 200
_KEYS = (str, int, float, bool, bytes, type(None))
_PLAIN = (bool, int, str, bytes, complex)
#: Stored as another type, which holds each of their values.
_WIDENED = {"complex32": "complex64"}
_KNOWN = frozenset(
    ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
     "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")
)  # fmt: skip
WIDENED_STARTS = ("float8_", "float6_", "float4_")

Node = dict[str, Any]


@dataclasses.dataclass
class _Elements:
    """Where the elements of arrays go, or the key of the digests that stand for them."""

    data: BinaryIO
    most_bytes: int
    key: int | None
    parts: int = 0


def write_output(value: object, request: WriteOutput) -> int:
    """Write what a call returned as asked; the bytes of its arrays that were written.

    Args:
        value: that it returned.
        request: where to and how.
    """
    stem = request.stem
    with open(f"{stem}.bin", "wb") as data:  # noqa: PTH123 (a string, as it came)
        tree = _node(value, _Elements(data, request.most_bytes, request.key), ())
        size = data.tell()
    with open(f"{stem}.json", "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(tree, file)
    return size


def overwrite(value: object, depth: int = 0) -> None:
    """Fill every array in what a call returned with values that no work of it gives.

    What cannot be written to stays as it is.
    """
    _, items, _ = _items(value)
    if items is not None:
        for item in items if depth < _DEEPEST else ():
            overwrite(item, depth + 1)
        return
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    with contextlib.suppress(Exception):
        if torch is not None and isinstance(value, torch.Tensor):
            floating = value.is_floating_point() or value.is_complex()
            value.detach().fill_(float("nan") if floating else 113)
        elif numpy is not None and isinstance(value, numpy.ndarray):
            value.fill(numpy.nan if value.dtype.kind in "fc" else 113)


def _node(value: object, to: _Elements, above: tuple[int, ...]) -> Node:
    """Describe one part; what cannot be described is opaque, and no error but for want of room."""
    to.parts += 1
    try:
        return _described_value(value, to, above)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # of the user's own types
        name = type(error).__name__
        if "OutOfMemory" in name:
            raise
        return {"kind": "opaque", "form": "failed", "type": f"{type(value).__name__} ({name})"}


def _described_value(value: object, to: _Elements, above: tuple[int, ...]) -> Node:
    number = _number(value, to)
    if number is not None:
        return number
    form, items, keys = _items(value)
    if items is not None:
        if id(value) in above or len(above) >= _DEEPEST or to.parts + len(items) > _MOST_PARTS:
            return {"kind": "opaque", "type": "a container too deep, too long, or in itself"}
        made = [_node(item, to, (*above, id(value))) for item in items]
        return {
            "kind": "items", "type": _class_name(value, form), "form": form, "keys": keys,
            "items": made,
        }  # fmt: skip
    return _array(value, to)


def _number(value: object, to: _Elements) -> Node | None:
    """What has no parts: nothing, a number, a text; None of all else."""
    numpy = sys.modules.get("numpy")
    if value is None:
        return {"kind": "none"}
    if numpy is not None and isinstance(value, (numpy.complexfloating, complex)):
        return {**_array(numpy.asarray(value, numpy.complex64), to), "form": "number"}
    if isinstance(value, float) or (numpy is not None and isinstance(value, numpy.floating)):
        form = str(getattr(value, "dtype", ""))
        return {"kind": "float", "form": form, "text": repr(float(value))}
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return {"kind": "exact", "type": type(value).__name__, "text": _exact(value, to.key)}
    return None


def _exact(value: object, key: int | None) -> str:
    """A text that two values share where they are equal, a short one where digests do."""
    whole = hex(value) if isinstance(value, int) and abs(value) >> 128 else repr(value)
    if key is None or len(whole) <= _LONGEST:
        return whole
    digest = hashlib.blake2b(whole.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"{whole[:_LONGEST]}… of {len(whole)} characters, digest {digest}"


def _class_name(value: object, form: str) -> str:
    """The name of a container's class, such that none that computes late passes for a plain one."""
    name = type(value).__name__
    return name if type(value) in (list, tuple, dict) or form == "fields" else f"{name} of {form}"


def _is_plain(value: object, library: str) -> bool:
    """Whether an array's class is the library's own, whose elements are there when it is."""
    kind = type(value)
    known = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    return known and kind.__module__.partition(".")[0] == library


def _items(value: object) -> tuple[str, list[object] | None, list[str]]:
    """A container's form, what it holds and under which names; None where it is no container."""
    if isinstance(value, (list, tuple)):
        form = "list" if isinstance(value, list) else "tuple"
        return form, list(value), [str(index) for index in range(len(value))]
    if isinstance(value, dict):
        if not all(map(_is_key, value)):
            return "", None, []
        named = sorted(((repr(key), key) for key in value), key=lambda pair: pair[0])
        return "dict", [value[key] for _, key in named], [name for name, _ in named]
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(value, masked):
        mask = sys.modules["numpy.ma"].getmaskarray(value)
        return "masked", [value.filled(value.dtype.type(0)), mask], ["data", "mask"]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return "fields", [getattr(value, name) for name in names], names
    return "", None, []


def _is_key(key: object) -> bool:
    """Whether equal keys of two processes have one text."""
    return all(map(_is_key, key)) if isinstance(key, tuple) else isinstance(key, _KEYS)


def _array(value: Any, to: _Elements) -> Node:  # noqa: ANN401 (of the user's libraries)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if to.data.tell() >= MOST_BYTES_IN_ALL:
        return {"kind": "opaque", "type": f"part behind {MOST_BYTES_IN_ALL >> 20} MiB of arrays"}
    if torch is not None and isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.is_meta:
            return {"kind": "opaque", "type": f"{type(value).__name__} of layout {value.layout}"}
        return _named(_tensor(torch, value.detach(), to), value, "torch")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc":
        value = value.astype(value.dtype.newbyteorder("="), copy=False)
        node = _numpy_array(numpy, value, to)
        return _named(node, value, "numpy")
    return {"kind": "opaque", "type": f"{type(value).__module__}.{type(value).__qualname__}"}


def _numpy_array(numpy: Any, value: Any, to: _Elements) -> Node:  # noqa: ANN401
    # A matrix stays one of two dimensions otherwise.
    name, flat = str(value.dtype), numpy.asarray(value).reshape(-1)
    if to.key is not None:
        return _digested("numpy", name, value.shape, digest_array(flat, to.key))
    flat, step = _sampled(flat, value.nbytes, value.size, to)
    at = to.data.tell()
    to.data.write(numpy.ascontiguousarray(flat).tobytes())
    return _described("numpy", name, value.shape, step, at, to)


def _named(node: Node, value: object, library: str) -> Node:
    """An array of a class of its own says so: its elements may be computed when they are read."""
    if node["kind"] == "array" and not _is_plain(value, library):
        node["of"] = type(value).__name__
    return node


def _tensor(torch: Any, value: Any, to: _Elements) -> Node:  # noqa: ANN401
    name = str(value.dtype).removeprefix("torch.")
    if not name.startswith(WIDENED_STARTS) and name not in _KNOWN:
        return {"kind": "opaque", "type": f"tensor of {name}"}
    flat, count = _flat(value), value.numel()
    if to.key is not None:
        return _digested("torch", name, value.shape, digest_tensor(flat, to.key))
    flat, step = _sampled(flat, count * value.element_size(), count, to)
    if name.startswith(WIDENED_STARTS):
        flat = flat.to(torch.float32)
    elif name in _WIDENED:
        flat = flat.to(getattr(torch, _WIDENED[name]))
    flat = flat.cpu().contiguous().resolve_conj().resolve_neg()
    size = flat.numel() * flat.element_size()
    at = to.data.tell()
    if size:
        to.data.write((ctypes.c_char * size).from_address(flat.data_ptr()))
    return _described("torch", name, value.shape, step, at, to)


def _flat(tensor: Any) -> Any:  # noqa: ANN401
    """Its elements in order; a copy for one that repeats them, or whose strides are others'.

    Raises:
        ValueError: that copy does not fit, which is no fault of the call.
    """
    try:
        return tensor.reshape(-1)
    except Exception as error:
        if "OutOfMemory" in type(error).__name__:
            raise ValueError("there is no room for a copy") from None
        raise


def _sampled(flat: Any, size: int, count: int, to: _Elements) -> tuple[Any, int]:  # noqa: ANN401
    step = max(1, -(-size // to.most_bytes))
    return (flat if step == 1 or not count else flat[::step]), step


def _described(
    form: str,
    name: str,
    shape: Iterable[int],
    step: int,
    at: int,
    to: _Elements,
) -> Node:
    return {
        "kind": "array", "form": form, "type": name, "shape": [int(n) for n in shape],
        "step": step, "at": at, "size": to.data.tell() - at,
    }  # fmt: skip


def _digested(form: str, name: str, shape: Iterable[int], digest: str) -> Node:
    shape = [int(n) for n in shape]
    return {"kind": "array", "form": form, "type": name, "shape": shape, "digest": digest}
