"""Other values in the same inputs: what was kept for an input, by its identity, is then stale."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

_DEEPEST, _MOST = 6, 1000


def renew(call: Callable[[], object]) -> int:
    """Roll the elements of every array and list of numbers that a callable holds, in place.

    The values stay of their kind, and an array's version does not move. What a callable reaches by
    its closure, its defaults and its bound arguments is found; how many there were is returned.
    """
    count = 0
    for value in _held(call, set(), 0):
        if count >= _MOST:
            break
        with contextlib.suppress(Exception):  # read-only, of another layout: then it stays
            count += _rolled(value)
    return count


def _held(value: object, seen: set[int], depth: int) -> Iterator[object]:
    if id(value) in seen or depth > _DEEPEST or inspect.ismodule(value) or inspect.isclass(value):
        return
    seen.add(id(value))
    if isinstance(value, (list, tuple)):
        yield value
        inner: list[object] = list(value[:_MOST])
    elif isinstance(value, dict):
        inner = list(value.values())[:_MOST]
    elif isinstance(value, functools.partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif inspect.ismethod(value):
        inner = [value.__self__, value.__func__]
    elif inspect.isfunction(value):
        cells = value.__closure__ or ()
        filled = [cell.cell_contents for cell in cells if _is_filled(cell)]
        inner = [*filled, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    else:
        yield value
        return
    for part in inner:
        yield from _held(part, seen, depth + 1)


def _is_filled(cell: Any) -> bool:  # noqa: ANN401 (a cell)
    try:
        cell.cell_contents  # noqa: B018 (an empty one raises)
    except ValueError:
        return False
    return True


def _rolled(value: Any) -> int:  # noqa: ANN401 (of the user's libraries)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.is_floating_point() and value.numel() > 1:
            data = value.data
            data.copy_(data.reshape(-1).roll(1).view(data.shape))
            return 1
    elif numpy is not None and isinstance(value, numpy.ndarray):
        if value.dtype.kind == "f" and value.size > 1:
            value[...] = numpy.roll(value, 1)
            return 1
    elif isinstance(value, list) and len(value) > 1 and _is_number(value[0], value[-1]):
        value[0] = value[-1] + 1
        return 1
    return 0


def _is_number(*values: object) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
