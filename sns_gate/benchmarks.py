"""The ``@benchmark`` decorator and what it remembers; it runs nothing."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

MODES = ("auto", "cold", "warm")

Setup = Callable[..., Any]
#: Compares what both sides returned: says in a text what differs, returns False, or raises
#: AssertionError; None and True mean that they are alike.
Comparator = Callable[[Any, Any], "bool | str | None"]
#: Ten times as much memory is hardly what anybody lets pass; 10 was meant as 10%.
_MOST_MEMORY = 10.0
_F = TypeVar("_F", bound=Setup)

#: In the order in which their decorators ran; ``discovery.load_file`` takes its share of it.
registered: list[Benchmark] = []


@dataclass(frozen=True)
class Benchmark:
    """A set-up function and the parameters to run it with.

    Attributes:
        setup: builds inputs and returns the callable to time.
        name: what its cases' ids begin with.
        params: one list of values a parameter; the cases are their product.
        tolerance: overrides the configured tolerance, None where it does not.
        mode: ``auto``, ``cold`` (the cache is flushed before each call) or ``warm``.
        file: where it is defined.
        line: the line of its decorator.
        reference: set-up of another implementation to compare with, None where there is none.
        at_least: speedup over the reference that is asked for, None where the tolerance says it.
        revisions: whether the two revisions are compared; without, the reference alone is.
        check: whether both sides' outputs are compared, or the benchmark's own way to do it.
        rtol: relative tolerance of that, None for the type's own.
        atol: absolute tolerance, likewise.
        poison: overwrite what the callable returned before it is called and checked again.
        memory_tolerance: overrides the configured one, None where it does not.
    """

    setup: Setup
    name: str
    params: Mapping[str, Sequence[Any]]
    tolerance: float | None
    mode: str
    file: str
    line: int
    reference: Setup | None = None
    at_least: float | None = None
    revisions: bool = True
    check: bool | Comparator = True
    rtol: float | None = None
    atol: float | None = None
    poison: bool = False
    memory_tolerance: float | None = None


@overload
def benchmark(function: _F, /) -> _F: ...
@overload
def benchmark(
    *,
    params: Mapping[str, Sequence[Any]] | None = None,
    name: str | None = None,
    tolerance: float | None = None,
    mode: str = "auto",
    reference: Setup | None = None,
    at_least: float | None = None,
    revisions: bool = True,
    check: bool | Comparator = True,
    rtol: float | None = None,
    atol: float | None = None,
    poison: bool = False,
    memory_tolerance: float | None = None,
) -> Callable[[_F], _F]: ...


def benchmark(  # noqa: PLR0913 (everything that a benchmark may say, by name alone)
    function: _F | None = None,
    /,
    *,
    params: Mapping[str, Sequence[Any]] | None = None,
    name: str | None = None,
    tolerance: float | None = None,
    mode: str = "auto",
    reference: Setup | None = None,
    at_least: float | None = None,
    revisions: bool = True,
    check: bool | Comparator = True,
    rtol: float | None = None,
    atol: float | None = None,
    poison: bool = False,
    memory_tolerance: float | None = None,
) -> _F | Callable[[_F], _F]:
    """Mark a set-up function as a benchmark.

    The function is the set-up: it is called once a placement, and what it returns is timed. It
    receives its parameters by name and, where it has a parameter ``device``, the device.

    Args:
        function: the set-up, where the decorator is used without parentheses.
        params: values to try, a list a parameter; the cases are their product.
        name: what the cases' ids begin with (default: the function's name).
        tolerance: largest increase in time worth letting pass for these cases.
        mode: ``cold`` flushes the cache before each call, ``warm`` does not, ``auto`` is cold
            wherever a call is long enough.
        reference: set-up of another implementation, with the same parameters. It makes a further
            case: this benchmark against the reference, both on the candidate's code.
        at_least: the speedup over the reference below which that case is slower, 1.2 for a fifth
            faster than it (default: no slower than it by more than the tolerance).
        revisions: whether the two revisions are compared as well; ``False`` leaves the reference.
        check: compare what both sides' callables return for the same seeded inputs; where it
            differs the case is ``wrong``. ``False`` is for work that is random by its nature. A
            function of two arguments, the baseline's output and the candidate's, compares in its
            own way: it returns what differs as a text, returns ``False``, or raises
            ``AssertionError`` as ``torch.testing.assert_close`` does.
        rtol: relative tolerance of that (default: ``torch.testing``'s for the type).
        atol: absolute tolerance (default: likewise, and at least ``rtol`` times the output's root
            mean square).
        poison: before a last check, overwrite the arrays that the callable returned, so that one
            that only returns what it once computed is ``wrong``. Not for a callable that returns
            its own inputs.
        memory_tolerance: largest increase in peak GPU memory to let pass for these cases.

    Raises:
        ValueError: an empty parameter, a tolerance outside (0, 1), an unknown mode, ``at_least``
            or ``revisions=False`` without a reference, ``rtol`` or ``atol`` that is negative or
            stands beside a comparator, or a ``memory_tolerance`` that is negative.
        TypeError: ``check`` is neither a truth value nor a function.
    """
    _refuse_unclear(reference, at_least, revisions=revisions)
    _refuse_unclear_check(check, rtol, atol)
    _refuse_unclear_shares(tolerance, memory_tolerance)
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    for key, values in (params or {}).items():
        _refuse_unclear_values(key, values)

    def register(setup: _F) -> _F:
        code = inspect.unwrap(setup).__code__
        registered.append(
            Benchmark(
                setup=setup,
                name=name or setup.__name__,
                params=dict(params or {}),
                tolerance=tolerance,
                mode=mode,
                file=code.co_filename,
                line=code.co_firstlineno,
                reference=reference,
                at_least=at_least,
                revisions=revisions,
                check=check,
                rtol=rtol,
                atol=atol,
                poison=poison,
                memory_tolerance=memory_tolerance,
            )
        )
        return setup

    return register(function) if function is not None else register


def _refuse_unclear(reference: Setup | None, at_least: float | None, *, revisions: bool) -> None:
    if reference is None and (at_least is not None or not revisions):
        raise ValueError(
            "at_least and revisions=False speak of a comparison with a reference, and there is "
            "none; name the set-up of another implementation with reference="
        )
    if at_least is not None and not 0 < at_least < math.inf:
        raise ValueError(f"at_least is a speedup, such as 1.2, got {at_least}")


def _refuse_unclear_check(
    check: bool | Comparator,  # noqa: FBT001 (as the decorator takes it)
    rtol: float | None,
    atol: float | None,
) -> None:
    if not isinstance(check, bool) and not callable(check):
        raise TypeError(f"check is True, False or a function of both outputs, got {check!r}")
    given = [far for far in (rtol, atol) if far is not None]
    if given and callable(check):
        raise ValueError(
            "rtol and atol are of the gate's own comparison, and check= names another; leave them "
            "to that function"
        )
    for far in given:
        if not 0 <= far < math.inf:
            raise ValueError(f"rtol and atol are tolerances of outputs, 0 or more, got {far}")


def _refuse_unclear_shares(tolerance: object, memory_tolerance: object) -> None:
    for what, share, most in (
        ("tolerance", tolerance, 1.0),
        ("memory_tolerance", memory_tolerance, _MOST_MEMORY),
    ):
        if share is None:
            continue
        if not isinstance(share, (int, float)):
            raise TypeError(f"{what} is a share as a number, such as 0.05 for 5%, got {share!r}")
        if not 0 <= share < most or (most == 1.0 and share == 0):
            raise ValueError(f"{what} is a share below {most:g}, such as 0.05 for 5%, got {share}")


def _refuse_unclear_values(key: str, values: object) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise ValueError(f"parameter '{key}' needs a list of values, got {values!r}")
