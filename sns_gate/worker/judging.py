"""Reads both sides' outputs back and hands them to a benchmark's own comparator."""

from __future__ import annotations

import ast
import json
import sys
import types
from collections.abc import Callable
from typing import Any, BinaryIO

from sns_gate.worker.outputs import WIDENED_STARTS, Node

_LONGEST = 2000


def judge(comparator: Callable[[Any, Any], object], baseline: str, candidate: str) -> str:
    """What a comparator says of two outputs; empty where it finds them alike.

    Whatever it raises is a difference: outputs that it cannot even compare are not alike.

    Args:
        comparator: of the benchmark.
        baseline: path of the baseline's output, without an ending.
        candidate: of the candidate's.
    """
    try:
        said = comparator(read_output(baseline), read_output(candidate))
        truth = said if isinstance(said, str) or said is None else _truth(said)
    except AssertionError as error:
        return (str(error) or "an assertion of it failed")[:_LONGEST]
    except Exception as error:  # noqa: BLE001 (the benchmark's own code may raise anything)
        return f"it raised {type(error).__name__}: {error}"[:_LONGEST]
    if isinstance(said, str):
        return said[:_LONGEST]
    if said is None:
        return ""
    if truth is None:
        return (
            f"it returned {type(said).__name__}, which is no verdict; return a text that says "
            f"what differs, True or False, or raise AssertionError"
        )
    return "" if truth else "it returned False"


def _truth(said: object) -> bool | None:
    """A truth value, numpy's and torch's single ones too; None where it is none."""
    kind = str(getattr(said, "dtype", type(said).__name__)).rpartition(".")[2]
    single = getattr(said, "size", 1) == 1 if not callable(getattr(said, "size", 1)) else True
    return bool(said) if kind == "bool" and single else None


def read_output(stem: str) -> Any:  # noqa: ANN401 (whatever a benchmark returns)
    """An output as it was written, on the CPU.

    Containers, numbers and texts come back as they were; a named tuple as a tuple, a dataclass as
    a namespace of its fields, an array of 8 bits or less a float as float32, an array larger than
    was to be written as its flat sample, and what could not be written as a text.
    """
    with open(f"{stem}.json", encoding="utf-8") as file:  # noqa: PTH123 (a string, as it came)
        tree = json.load(file)
    with open(f"{stem}.bin", "rb") as data:  # noqa: PTH123
        return _value(tree, data)


def _value(node: Node, data: BinaryIO) -> Any:  # noqa: ANN401
    kind = node["kind"]
    if kind == "array":
        return _array(node, data)
    if kind == "items":
        return _container(node, [_value(item, data) for item in node["items"]])
    if kind == "float":
        return float(node["text"])
    if kind == "exact":
        return _literal(node["text"])
    return None if kind == "none" else f"an opaque {node['type']}"


def _container(node: Node, items: list[Any]) -> Any:  # noqa: ANN401
    if node["form"] == "dict":
        return dict(zip(map(_literal, node["keys"]), items, strict=True))
    if node["form"] == "masked":
        return sys.modules["numpy.ma"].masked_array(*items)
    if node["form"] == "fields":
        return types.SimpleNamespace(**dict(zip(node["keys"], items, strict=True)))
    return tuple(items) if node["form"] == "tuple" else items


def _literal(text: str) -> Any:  # noqa: ANN401
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _array(node: Node, data: BinaryIO) -> Any:  # noqa: ANN401
    data.seek(node["at"])
    raw = bytearray(data.read(node["size"]))
    shape = node["shape"] if node["step"] == 1 else [-1]
    name = "float32" if node["type"].startswith(WIDENED_STARTS) else node["type"]
    if node["form"] in ("numpy", "number"):
        array = sys.modules["numpy"].frombuffer(raw, dtype=name).reshape(shape)
        return array.item() if node["form"] == "number" else array
    torch = sys.modules["torch"]
    dtype = getattr(torch, "complex64" if name == "complex32" else name)
    if not raw:
        return torch.empty(node["shape"], dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype).reshape(shape)
