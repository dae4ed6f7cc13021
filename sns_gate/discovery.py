"""The cases that files of benchmarks define; it times nothing."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sns_gate.benchmarks import Benchmark, Setup, registered

PATTERN = "bench_*.py"
_NOT_OURS = ("site-packages", "node_modules", "__pycache__")


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

    @property
    def comparator_digest(self) -> str:
        """What tells two versions of the benchmark's own comparator apart; empty without one.

        It goes by the whole files of the benchmark and of what else is loaded from its folder: a
        comparator may lean on any line of them.
        """
        if isinstance(self.benchmark.check, bool):
            return ""
        folder = Path(self.benchmark.file).parent
        found = hashlib.blake2b(digest_size=16)
        for file in sorted({Path(self.benchmark.file), *_helpers(folder)}):
            found.update(str(file.relative_to(folder)).encode("utf-8", "replace"))
            with contextlib.suppress(OSError):
                found.update(file.read_bytes())
        return found.hexdigest()

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


def _helpers(folder: Path) -> Iterator[Path]:
    """Loaded modules below a folder that are no benchmark files."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not fnmatch.fnmatch(Path(file).name, PATTERN):
            path = Path(file)
            if folder in path.parents and not _skipped(path.relative_to(folder)):
                yield path


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
    before = len(registered)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del registered[before:]
        sys.modules.pop(name, None)
        raise
    return [
        case
        for found in registered[before:]
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
    found = next((known for known in reversed(registered) if known.setup is setup), found)
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
