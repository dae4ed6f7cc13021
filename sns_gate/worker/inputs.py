"""The arrays that a callable holds: other values put into them, and whether a call changes them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Container, Iterator
from typing import Any

from sns_gate.worker.digests import digest_array, digest_tensor

_DEEPEST, _MOST = 6, 1000
#: With fewer elements there is nothing to roll between the ends, which a cheat looks at first.
_FEWEST, _FEWEST_WHOLE = 4, 16
#: Arrays, and elements of each, that are looked at for changes.
_MOST_SHOWN, _LOOKED_AT = 200, 1 << 12
#: Elements that are rolled at a time: a copy of a large array may not fit beside it.
_PIECE = 1 << 24
#: Of digests that nobody gains by: whoever makes them unlike is judged by other checks alone.
_KEY = 1
#: A sum in another order is no change of an input.
_MOVED_SHARE = 0.02


@contextlib.contextmanager
def renewed(call: Callable[[], object], wanted: Container[int]) -> Iterator[tuple[int, int]]:
    """Roll the inner elements of arrays and lists of numbers that a callable holds, in place.

    One of them is put in another's place too, so that a sum changes as well as an order. In the end
    all is as it was, since other cases may share it.

    The values stay of their kind, and an array's version does not move. What a callable reaches by
    its closure, its defaults and its bound arguments is found. Yielded is how many were rolled, and
    how many could not be: read-only ones, or where there is no room.

    Args:
        call: the callable.
        wanted: ids of those that are meant, as ``reachable`` names them.
    """
    back: list[Callable[[], object]] = []
    rolled = failed = 0
    try:
        with _writing():
            for value in _held(call, set(), 0):
                try:
                    rolled += _rolled(value, back) if id(value) in wanted else 0
                except Exception:  # noqa: BLE001 (whatever a user's library says no with)
                    failed += 1
        yield rolled, failed
    finally:
        with _writing():
            for undo in reversed(back):
                with contextlib.suppress(Exception):
                    undo()


def _writing() -> contextlib.AbstractContextManager[object]:
    """A context in which a tensor that was made for inference can be written to as any other.

    Elsewhere a write to one raises, and only after it has been done.
    """
    torch = sys.modules.get("torch")
    found: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    return found if torch is None else torch.inference_mode()


def reachable(call: Callable[[], object]) -> dict[int, str]:
    """Digests by id of the arrays and lists of numbers that a callable holds and can be renewed.

    Equal ones on both sides are the same input; a buffer for what is computed is none.
    """
    found: dict[int, str] = {}
    for value in _held(call, set(), 0):
        if len(found) >= _MOST:
            break
        with contextlib.suppress(Exception):
            if _can_roll(value):
                text = _digest(value).encode()
                found[id(value)] = hashlib.blake2b(text, digest_size=16).hexdigest()
    return found


def _digest(value: Any) -> str:  # noqa: ANN401 (of the user's libraries)
    torch = sys.modules.get("torch")
    if isinstance(value, list):
        return repr(value[:_MOST])
    shape = (str(value.dtype), tuple(value.shape))
    if torch is not None and isinstance(value, torch.Tensor):
        dense = _in_memory_order(value.detach())
        return f"{shape}{dense.stride()}{digest_tensor(dense.reshape(-1), _KEY)}"
    return f"{shape}{digest_array(value.reshape(-1), _KEY)}"


def _in_memory_order(tensor: Any) -> Any:  # noqa: ANN401 (of the user's libraries)
    """A view whose elements come as they lie, so that one of other strides need not be copied."""
    return tensor.permute(sorted(range(tensor.dim()), key=lambda at: -tensor.stride(at)))


def snapshot(call: Callable[[], object]) -> list[list[float]]:
    """Some elements of each array of floats that a callable holds, at even distances."""
    taken: list[list[float]] = []
    for value in _held(call, set(), 0):
        if len(taken) >= _MOST_SHOWN:
            break
        taken.append([])
        with contextlib.suppress(Exception):  # of another layout: then it is not looked at
            taken[-1] = _elements(value)
    return taken


def moved(before: list[list[float]], after: list[list[float]]) -> int:
    """How many arrays differ between two snapshots by more than rounding does."""
    return sum(map(_differ, before, after))


def _differ(before: list[float], after: list[float]) -> bool:
    scale = max((abs(x) for x in before if x - x == 0), default=0.0)
    allowed = _MOVED_SHARE * scale
    # A NaN is near nothing, itself included, so two of them are told by being none.
    return any(
        not abs(x - y) <= allowed and x != y and not (x != x and y != y)  # noqa: PLR0124
        for x, y in zip(before, after, strict=False)
    )


def _elements(value: Any) -> list[float]:  # noqa: ANN401 (of the user's libraries)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point():
        flat = value.detach().view(-1)  # of one that is not contiguous this would be a copy: raises
    elif numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "f":
        flat = value.ravel(order="K")
    else:
        return []
    step = max(1, len(flat) // _LOOKED_AT)
    found: list[float] = flat[::step].tolist()
    return found


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


def _can_roll(value: Any) -> bool:  # noqa: ANN401 (of the user's libraries)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        inexact = value.is_floating_point() or value.is_complex()
        return bool(inexact) and int(value.numel()) >= _FEWEST
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.dtype.kind in "fc" and int(value.size) >= _FEWEST
    return isinstance(value, list) and len(value) >= _FEWEST and _are_data(value)


def _rolled(value: Any, back: list[Callable[[], object]]) -> int:  # noqa: ANN401 (likewise)
    if not _can_roll(value):
        return 0
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        data = _in_memory_order(value.data)
        # Elements of 8 bits and less have few operators, and bytes have all.
        data = data.view(torch.uint8) if data.element_size() == 1 else data
        _roll(data, data.is_contiguous(), (torch.roll, torch.clone), back)
    elif numpy is not None and isinstance(value, numpy.ndarray):
        _roll(value, value.flags.c_contiguous, (numpy.roll, numpy.copy), back)
    else:
        back.append(functools.partial(value.__setitem__, slice(1, -1), value[1:-1]))
        rolled = [value[-2], *value[1:-2]]
        rolled[len(rolled) // 2] = rolled[0]
        value[1:-1] = rolled
    return 1


def _roll(
    array: Any,  # noqa: ANN401
    is_contiguous: bool,  # noqa: FBT001 (each library has a name of its own for it)
    library: tuple[Callable[..., Any], Callable[..., Any]],
    back: list[Callable[[], object]],
) -> None:
    """Roll what lies between an array's first and its last element, in place and piece by piece."""
    roll, copy = library
    flat = array.reshape(-1)
    if not is_contiguous:  # then that was a copy
        back.append(functools.partial(array.__setitem__, ..., copy(array)))
    inner = flat[1:-1]
    for start in range(0, len(inner), _PIECE):
        piece = inner[start : start + _PIECE]
        rolled = roll(piece, 1)
        middle = len(rolled) // 2
        lost = copy(rolled[middle : middle + 1])
        rolled[middle] = rolled[0]
        piece[...] = rolled
        if is_contiguous:
            back.append(functools.partial(_roll_back, piece, middle, lost, roll))
    if not is_contiguous:
        array[...] = flat.reshape(array.shape)


def _roll_back(piece: Any, middle: int, lost: Any, roll: Callable[..., Any]) -> None:  # noqa: ANN401
    piece[middle : middle + 1] = lost
    piece[...] = roll(piece, -1)


def _are_data(values: list[object]) -> bool:
    """Whether these are numbers to work on: a few whole ones may be sizes or dimensions."""
    if all(isinstance(value, float) for value in values[:_MOST]):
        return True
    if len(values) < _FEWEST_WHOLE or not all(type(value) is int for value in values[:_MOST]):
        return False
    # A kernel that is given other offsets may read where nothing is, and its process is lost.
    torch = sys.modules.get("torch")
    return torch is None or not torch.cuda.is_initialized()
