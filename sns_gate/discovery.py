"""The ``@benchmark`` decorator and the cases that files of them define; it times nothing."""

from __future__ import annotations

import fnmatch
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, overload

PATTERN = "bench_*.py"
MODES = ("auto", "cold", "warm")
_NOT_OURS = ("site-packages", "node_modules", "__pycache__")

Setup = Callable[..., Any]
_F = TypeVar("_F", bound=Setup)

#: Benchmarks in the order in which their decorators ran; ``load_file`` takes its share of it.
_registered: list[Benchmark] = []


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
        check: whether both sides' outputs are compared.
        rtol: relative tolerance of that, None for the type's own.
        atol: absolute tolerance, likewise.
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
    check: bool = True
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True)
class Case:
    """A benchmark at one set of parameters, against the other revision or against its reference.

    Attributes:
        benchmark: that it belongs to.
        params: a value for each parameter.
        id: unique in a check.
        reference: name of the reference it is compared with, empty for the other revision.
    """

    benchmark: Benchmark
    params: Mapping[str, Any]
    id: str
    reference: str = ""

    @property
    def digest(self) -> str:
        """What tells two versions of the set-ups apart: their source, empty where it is unknown."""
        setups = [self.benchmark.setup]
        if self.reference and self.benchmark.reference is not None:
            setups.append(self.benchmark.reference)
        try:
            source = "\n".join(inspect.getsource(inspect.unwrap(setup)) for setup in setups)
        except (OSError, TypeError):
            return ""
        return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()

    def build(self, device: str, *, as_reference: bool = False) -> Callable[[], object]:
        """Run the set-up and return the callable to time.

        Args:
            device: handed to a set-up that has a parameter of that name.
            as_reference: run the reference's set-up, if this case is compared with one.

        Raises:
            TypeError: the set-up returned something that cannot be called without arguments.
        """
        setup = self.benchmark.setup
        if as_reference and self.reference and self.benchmark.reference is not None:
            setup = self.benchmark.reference
        arguments = dict(self.params)
        if "device" in inspect.signature(setup).parameters:
            arguments["device"] = device
        call = setup(**arguments)
        if not callable(call):
            raise TypeError(
                f"benchmark '{self.benchmark.name}' returned {type(call).__name__}, so there is "
                f"nothing to time; return a callable that does the work, for example "
                f"lambda: kernel(x)"
            )
        return call  # type: ignore[no-any-return]


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
    check: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
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
    check: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
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
            differs the case is ``wrong``. ``False`` is for work that is random by its nature.
        rtol: relative tolerance of that (default: ``torch.testing``'s for the type).
        atol: absolute tolerance (default: likewise, and at least ``rtol`` times the output's root
            mean square).

    Raises:
        ValueError: an empty parameter, a tolerance outside (0, 1), an unknown mode, ``at_least``
            or ``revisions=False`` without a reference, or ``rtol`` or ``atol`` that is negative.
    """
    _refuse_unclear(reference, at_least, revisions=revisions)
    for far in (rtol, atol):
        if far is not None and not 0 <= far < math.inf:
            raise ValueError(f"rtol and atol are tolerances of outputs, 0 or more, got {far}")
    if tolerance is not None and not 0 < tolerance < 1:
        raise ValueError(f"tolerance must lie between 0 and 1, got {tolerance}")
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    for key, values in (params or {}).items():
        if isinstance(values, str) or not values:
            raise ValueError(f"parameter '{key}' needs a list of values, got {values!r}")

    def register(setup: _F) -> _F:
        code = inspect.unwrap(setup).__code__
        _registered.append(
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


def find_files(folder: Path) -> list[Path]:
    """The benchmark files below a folder, sorted; hidden folders and environments are left out."""
    return sorted(
        path
        for path in folder.rglob(PATTERN)
        if path.is_file() and not _skipped(path.relative_to(folder))
    )


def _skipped(path: Path) -> bool:
    return any(part.startswith(".") or part in _NOT_OURS for part in path.parts[:-1])


def load_file(path: str) -> list[Case]:
    """Execute one benchmark file and return the cases it defines, in order.

    Raises:
        ImportError: the file cannot be found or read as Python.
        BaseException: whatever the file raises.
    """
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    before = len(_registered)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del _registered[before:]
        sys.modules.pop(name, None)
        raise
    return [
        case
        for found in _registered[before:]
        if _is_its_own(found, path)
        for case in cases_of(found)
    ]


def load_functions(candidate: str, baseline: str) -> list[Case]:
    """The cases of a set-up function compared with another, by name.

    Where the candidate's is a benchmark, its parameters and its mode hold for both.

    Args:
        candidate: ``module:function`` or ``file.py:function``.
        baseline: likewise.

    Raises:
        ValueError: a name is of another form, or names nothing that can be called.
        BaseException: whatever importing it raises.
    """
    setup, reference = _named(candidate), _named(baseline)
    code = inspect.unwrap(setup).__code__
    found = Benchmark(
        setup, setup.__name__, {}, None, "auto", code.co_filename, code.co_firstlineno
    )
    found = next((known for known in reversed(_registered) if known.setup is setup), found)
    return cases_of(replace(found, reference=reference, at_least=None, revisions=False))


def _named(name: str) -> Setup:
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ValueError(f"'{name}' is no module:function and no file.py:function")
    if place.endswith(".py"):
        load_file(os.path.abspath(place))  # noqa: PTH100 (load_file takes a string)
        module = sys.modules[_module_name(os.path.abspath(place))]  # noqa: PTH100
    else:
        module = importlib.import_module(place)
    found = getattr(module, attribute, None)
    if not inspect.isfunction(found):
        raise ValueError(
            f"'{attribute}' in {place} is no function, so there is no set-up to run; name a "
            f"function that builds inputs and returns the callable to time"
        )
    return found


def _module_name(path: str) -> str:
    return f"_sns_gate_{Path(path).stem}_{abs(hash(path)):x}"


def _is_its_own(found: Benchmark, path: str) -> bool:
    """A benchmark of another benchmark file that this one imports is counted there."""
    return found.file == path or not fnmatch.fnmatch(Path(found.file).name, PATTERN)


def cases_of(found: Benchmark) -> list[Case]:
    """The cases of one benchmark: the product of its parameters, last one fastest.

    Where it has a reference, the case against it follows the one against the other revision.
    """
    names = list(found.params)
    labels = [_labels(found.params[name]) for name in names]
    cases = []
    for choice in itertools.product(*(range(len(found.params[name])) for name in names)):
        values = {name: found.params[name][i] for name, i in zip(names, choice, strict=True)}
        shown = ",".join(
            f"{n}={labels[k][i]}" for k, (n, i) in enumerate(zip(names, choice, strict=True))
        )
        id_ = f"{found.name}[{shown}]" if shown else found.name
        if found.revisions:
            cases.append(Case(found, values, id_))
        if found.reference is not None:
            reference = getattr(found.reference, "__name__", "reference")
            cases.append(Case(found, values, f"{id_} vs {reference}", reference))
    return cases


def repeated_ids(ids: Iterable[str]) -> list[str]:
    """The ids that stand more than once, each named once."""
    counts: dict[str, int] = {}
    for id_ in ids:
        counts[id_] = counts.get(id_, 0) + 1
    return [id_ for id_, count in counts.items() if count > 1]


def _labels(values: Sequence[Any]) -> list[str]:
    """A short and stable text for each value of a parameter, all different."""
    labels = _short_labels(values)
    return labels if len(set(labels)) == len(labels) else [f"{v!r}" for v in values]


def _short_labels(values: Sequence[Any]) -> list[str]:
    labels = []
    for index, value in enumerate(values):
        if isinstance(value, (str, int, float, bool, tuple, type(None))):
            labels.append(str(value).replace(" ", ""))
        elif hasattr(value, "__name__"):
            labels.append(str(value.__name__))
        elif type(value).__module__ == "torch":
            labels.append(str(value).rpartition(".")[2])
        else:
            labels.append(f"{type(value).__name__}{index}")
    return labels
