"""Takes benchmarks that were written for other tools as they are; it times nothing."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from sns_gate.benchmarks import benchmark

#: Functions of ``triton.testing`` that a benchmark hands its work to.
_TIMERS = ("do_bench", "do_bench_cudagraph")


#: Test files taken as benchmarks: like those, they come from the candidate and run on both sides.
adapted: set[str] = set()


class _Captured(BaseException):
    """Carries the work out of another tool's benchmark, past whatever it catches itself."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self.call = call


# ------------------------------------------------------------------ triton.testing.perf_report


def perf_report(
    mark: Any,  # noqa: ANN401 (triton's own type, which need not be installed here)
    *,
    providers: Sequence[Any] | None = None,
    **options: Any,  # noqa: ANN401 (as @benchmark takes them)
) -> None:
    """Make cases of a function under ``@triton.testing.perf_report``.

    Each point of its plots is a case, for each line of them. What the function hands to
    ``triton.testing.do_bench`` is what is timed.

    Args:
        mark: what the decorator returned.
        providers: lines to take (default: all ``line_vals``), your own kernel's for instance.
        options: of ``@benchmark``, such as ``tolerance``.

    Raises:
        TypeError: it is no such thing.
    """
    found = getattr(mark, "benchmarks", None)
    function = getattr(mark, "fn", None)
    if found is None or not callable(function):
        raise TypeError(
            f"{type(mark).__name__} is no benchmark of triton.testing; give what the decorator "
            f"@triton.testing.perf_report returned"
        )
    for one in [found] if hasattr(found, "x_names") else found:
        wanted = list(one.line_vals) if providers is None else list(providers)
        _register_plot(function, one, wanted, options)


def _register_plot(
    function: Callable[..., object],
    plot: Any,  # noqa: ANN401
    lines: list[Any],
    options: Mapping[str, Any],
) -> None:
    names = list(plot.x_names)
    points = [_Values(x if isinstance(x, (list, tuple)) else [x] * len(names)) for x in plot.x_vals]
    shared = dict(plot.args)

    def setup(**chosen: object) -> Callable[[], object]:
        return _captured_from_triton(functools.partial(function, **_unpacked(chosen), **shared))

    name = str(plot.plot_name or getattr(function, "__name__", "plot"))
    _register(setup, function, name, {",".join(names): points, plot.line_arg: lines}, options)


class _Values(tuple[Any, ...]):  # noqa: SLOT001 (it holds its number)
    """Values of several parameters at once; their text stands in the case's id."""

    number = 0

    def __str__(self) -> str:
        return "x".join(self._text(value) for value in self)

    def __repr__(self) -> str:
        return f"{self}#{self.number}"

    def _text(self, value: object) -> str:
        """A value's text, the same in every process: an address is not."""
        text = str(getattr(value, "__name__", value))
        return f"{type(value).__name__}{self.number}" if " at 0x" in text else text


def _unpacked(chosen: Mapping[str, object]) -> dict[str, Any]:
    """Each parameter by its own name, where several stand under one key."""
    arguments: dict[str, Any] = {}
    for key, value in chosen.items():
        if isinstance(value, _Values):
            arguments.update(zip(key.split(","), value, strict=True))
        else:
            arguments[key] = value
    return arguments


def _register(
    setup: Callable[..., Callable[[], object]],
    function: Callable[..., object],
    name: str,
    params: Mapping[str, Sequence[Any]],
    options: Mapping[str, Any],
) -> None:
    """Register a set-up whose file, line and source are the user's function's."""
    setup.__wrapped__ = function  # type: ignore[attr-defined]
    setup.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    benchmark(name=name, params=params, **options)(setup)


def _captured_from_triton(run: Callable[[], object]) -> Callable[[], object]:
    testing = importlib.import_module("triton.testing")
    kept = {name: getattr(testing, name) for name in _TIMERS if hasattr(testing, name)}

    def capture(fn: Callable[[], object], *_: object, **__: object) -> float:
        raise _Captured(fn)

    for name in kept:
        setattr(testing, name, capture)
    try:
        run()
    except _Captured as captured:
        return captured.call
    finally:
        for name, timer in kept.items():
            setattr(testing, name, timer)
    raise TypeError(
        "the function under perf_report handed nothing to triton.testing.do_bench, so there is "
        "nothing to time; call it as triton.testing.do_bench, not under a name imported from it"
    )


# ------------------------------------------------------------------ pytest-benchmark


def pytest_benchmarks(
    *files: str,
    names: Sequence[str] = (),
    without: Sequence[str] = (),
    **options: Any,  # noqa: ANN401 (as @benchmark takes them)
) -> None:
    """Make cases of the tests in these files that have pytest-benchmark's ``benchmark`` fixture.

    ``@pytest.mark.parametrize`` gives parameters. Fixtures of the file itself, and of a
    ``conftest.py`` beside it, are made where they take no parameters; what a test hands to
    ``benchmark`` is what is timed, and its assertions are not run. Tests marked ``skip``, and
    tests in classes, are left out. A test that needs what only pytest has, such as ``tmp_path``, is
    one case that is broken and says so; the others are taken.

    Args:
        files: paths, relative to the benchmark file that calls this.
        names: of tests to take (default: all).
        without: names of tests to leave out.
        options: of ``@benchmark``, such as ``tolerance``.

    Raises:
        ValueError: no such test is in the files.
    """
    caller = inspect.stack()[1].filename
    folder = os.path.dirname(os.path.abspath(caller))  # noqa: PTH100, PTH120 (strings, as sys.path has)
    count, taken_names = 0, set[str]()
    for file in files:
        module = _loaded(os.path.normpath(os.path.join(folder, file)))  # noqa: PTH118
        fixtures = _fixtures(module)
        for name, test in list(vars(module).items()):
            taken = name.startswith("test") and (not names or name in names) and name not in without
            skipped = any(mark.name == "skip" for mark in getattr(test, "pytestmark", []))
            if skipped:
                continue
            if taken and inspect.isfunction(test) and "benchmark" in _parameters(test):
                _register_test(test, fixtures, options)
                taken_names.add(name)
                count += 1
    unknown = sorted(set(names) - taken_names)
    if unknown:
        raise ValueError(
            f"{', '.join(files)} hold no test '{unknown[0]}' with a 'benchmark' fixture outside of "
            f"a class, so it would be missing; see names="
        )
    if not count:
        raise ValueError(
            f"{', '.join(files)} hold no test with a 'benchmark' fixture, so there is no case"
        )


def _loaded(path: str) -> ModuleType:
    """A test file as a module, with its folder importable as pytest would have it."""
    folder = os.path.dirname(path)  # noqa: PTH120
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if name == "conftest" or name.startswith("test_") or name.endswith("_test"):
        adapted.add(os.path.realpath(path))
    spec.loader.exec_module(module)
    return module


def _fixtures(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Functions under ``@pytest.fixture`` of a test file and of a conftest.py beside it."""
    path = os.path.join(os.path.dirname(module.__file__ or ""), "conftest.py")  # noqa: PTH118, PTH120
    modules = [_loaded(path)] if os.path.exists(path) else []  # noqa: PTH110
    found: dict[str, Callable[..., Any]] = {}
    for one in (*modules, module):
        for name, value in vars(one).items():
            function = _fixture_function(value)
            if function is not None:
                marker = getattr(value, "_fixture_function_marker", None)
                found[getattr(marker, "name", None) or name] = function
    return found


def _fixture_function(value: Any) -> Callable[..., Any] | None:  # noqa: ANN401
    """The function under ``@pytest.fixture``, which pytest has kept in several ways."""
    kept = getattr(value, "_fixture_function", None) or getattr(value, "__pytest_wrapped__", None)
    if kept is None:
        return None
    function = getattr(kept, "obj", kept)
    return function if inspect.isfunction(function) else None


def _register_test(
    test: Callable[..., Any], fixtures: Mapping[str, Callable[..., Any]], options: Mapping[str, Any]
) -> None:
    marks = getattr(test, "pytestmark", [])
    try:
        params = dict(_parameter_set(mark) for mark in marks if mark.name == "parametrize")
        known = {name for key in params for name in key.split(",")} | {"benchmark"}
        _require_fixtures(test, known, fixtures)
    except (ValueError, TypeError, LookupError) as error:
        _register_broken(test, error, options)
        return

    def setup(**chosen: object) -> Callable[[], object]:
        return _captured_from_test(test, _unpacked(chosen), fixtures)

    _register(setup, test, test.__name__, params, options)


def _register_broken(
    test: Callable[..., Any], error: Exception, options: Mapping[str, Any]
) -> None:
    """One case of a test that cannot be taken, so that the others can and it is not left unseen."""
    text = (
        f"{test.__name__} cannot be taken from pytest: {error}; leave it out with "
        f"without=['{test.__name__}'], and write that case with @sns_gate.benchmark"
    )

    def setup() -> Callable[[], object]:
        raise ValueError(text)

    _register(setup, test, test.__name__, {}, options)


def _require_fixtures(
    function: Callable[..., Any], known: set[str], fixtures: Mapping[str, Callable[..., Any]]
) -> None:
    """Refuse a test, or a fixture that it needs, whose own fixtures cannot be made.

    Raises:
        ValueError: one is defined in no file that is read.
    """
    for name in _parameters(function):
        if name in known:
            continue
        if name not in fixtures:
            raise ValueError(
                f"{function.__name__} needs the fixture '{name}', which neither its file nor the "
                f"conftest.py beside it defines"
            )
        _require_fixtures(fixtures[name], known | {name}, fixtures)


def _parameter_set(mark: Any) -> tuple[str, list[_Values]]:  # noqa: ANN401
    """The names of one ``parametrize`` and the values of each of its sets."""
    names, values = (
        mark.args[place] if len(mark.args) > place else mark.kwargs[key]
        for place, key in enumerate(("argnames", "argvalues"))
    )
    split = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    if mark.kwargs.get("indirect"):
        raise ValueError(
            f"'{names}' is parametrized indirectly, through fixtures, which only pytest itself does"
        )
    rows = []
    for number, value in enumerate(values):
        row = value.values if hasattr(value, "marks") else value  # pytest.param
        made = _Values([row] if len(split) == 1 and row is value else row)
        made.number = number
        rows.append(made)
    return ",".join(split), rows


class _Recorder:
    """Stands where pytest-benchmark's fixture would, and keeps what it is to time."""

    def __call__(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        raise _Captured(functools.partial(function, *args, **kwargs))

    def pedantic(
        self,
        target: Callable[..., object],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        **_: object,
    ) -> None:
        """As pytest-benchmark's; a set-up that makes the arguments is run once."""
        made = setup() if setup is not None else None
        if made is not None:
            args, kwargs = made
        raise _Captured(functools.partial(target, *args, **dict(kwargs or {})))


def _captured_from_test(
    test: Callable[..., Any], given: Mapping[str, Any], fixtures: Mapping[str, Callable[..., Any]]
) -> Callable[[], object]:
    made: dict[str, Any] = {**given, "benchmark": _Recorder()}
    alive: list[Iterator[Any]] = []

    def value(name: str) -> Any:  # noqa: ANN401
        if name not in made:
            function = fixtures[name]
            result = function(**{inner: value(inner) for inner in _parameters(function)})
            if inspect.isgenerator(result):
                alive.append(result)  # torn down with the process: its work is still to come
                result = next(result)
            made[name] = result
        return made[name]

    try:
        test(**{name: value(name) for name in _parameters(test)})
    except _Captured as captured:
        captured.call.fixtures = alive  # type: ignore[attr-defined]  # live as long as the work
        return captured.call
    raise TypeError(f"{test.__name__} handed nothing to its benchmark fixture: nothing to time")


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


__all__ = ["perf_report", "pytest_benchmarks"]
