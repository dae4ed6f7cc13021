"""Which code this worker may import and which it did; it removes what serves the other side."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from typing import Any

from sns_gate.adapters import adapted
from sns_gate.protocol import Hello, Proven

_STANDARD_FINDERS = (BuiltinImporter, FrozenImporter, PathFinder)
_MODULE_ENDINGS = (".py", ".so", ".abi3.so")
_MAX_NAMED = 50


def disarm(hello: Hello) -> tuple[str, ...]:
    """Take out of the import system whatever would serve the other revision's code.

    Path entries under the other side's roots go. Finders (editable installs put them there) go
    where they answer for a package of this side from the other side's tree, or, where a build
    made this side's packages, where they answer for them at all.

    Returns:
        A text for each thing that was removed.
    """
    removed = []
    for entry in list(sys.path):
        if entry and _owner(entry, hello) == "foreign":
            sys.path.remove(entry)
            removed.append(f"path entry {entry}")
    names = sorted(set(_top_level_names(hello.own_roots)))
    for finder in list(sys.meta_path):
        if finder in _STANDARD_FINDERS or type(finder).__module__.startswith("importlib"):
            continue
        served = _served(finder, names, hello)
        if served:
            sys.meta_path.remove(finder)
            removed.append(f"{_finder_name(finder)}, which served {served}")
    return tuple(removed)


def is_foreign(path: str, hello: Hello) -> bool:
    """Whether a path belongs to the other side."""
    return _owner(path, hello) == "foreign"


def prove(hello: Hello) -> Proven:
    """The files of the code under test that this process has loaded, by whose tree holds them."""
    own, foreign = set(), set()
    for file in _loaded_files():
        owner = _owner(file, hello)
        if owner == "own":
            own.add(_real(file))
        elif owner == "foreign":
            foreign.add(_real(file))
    return Proven(tuple(sorted(own)[:_MAX_NAMED]), tuple(sorted(foreign)[:_MAX_NAMED]))


def _served(finder: Any, names: Iterable[str], hello: Hello) -> str:  # noqa: ANN401 (finders have no common type)
    for name in names:
        spec = None
        with contextlib.suppress(Exception):
            spec = finder.find_spec(name, None)
        if spec is None:
            continue
        places = [spec.origin or "", *(spec.submodule_search_locations or ())]
        if not hello.keep_editable or any(_owner(p, hello) == "foreign" for p in places):
            return f"'{name}' from {places[-1]}"
    return ""


def _finder_name(finder: Any) -> str:  # noqa: ANN401 (finders have no common type)
    kind = finder if isinstance(finder, type) else type(finder)
    return f"import finder {kind.__module__}.{kind.__qualname__}"


def _top_level_names(roots: Iterable[str]) -> Iterator[str]:
    """Names that a statement ``import name`` would find in these folders."""
    for root in roots:
        with contextlib.suppress(OSError), os.scandir(root) as entries:
            for entry in entries:
                stem = entry.name.split(".")[0]
                package = entry.is_dir() and os.path.isfile(  # noqa: PTH113 (hot enough as strings)
                    os.path.join(entry.path, "__init__.py")  # noqa: PTH118
                )
                if stem.isidentifier() and (package or entry.name.endswith(_MODULE_ENDINGS)):
                    yield stem


def _loaded_files() -> set[str]:
    files = set()
    for module in list(sys.modules.values()):
        file = None
        with contextlib.suppress(Exception):  # a lazy module may raise anything
            file = getattr(module, "__file__", None)
        # A module made by hand may name any text; relative to our folder it would seem ours.
        if isinstance(file, str) and os.path.isabs(file):  # noqa: PTH117 (strings from sys.modules)
            files.add(file)
    files -= {file for file in files if _real(file) in adapted}
    # Libraries loaded by torch.ops or ctypes are in no module.
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:  # noqa: PTH123
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if ".so" in path:
                files.add("/" + path)
    return files


@functools.cache
def _real(path: str) -> str:
    """Where a path leads; asked of every loaded file after each case, so found out once."""
    return os.path.realpath(path)


@functools.cache
def _owner(path: str, hello: Hello) -> str:
    """Whose tree holds a path, by the deepest root around it; empty where nobody's does.

    The interpreter's own folders are nobody's, even inside a revision (``.venv``), and so are
    benchmarks, which both sides share.
    """
    real = _real(path)
    if os.path.basename(real).startswith("bench_"):  # noqa: PTH119 (strings from sys.modules)
        return ""
    paths = sysconfig.get_paths()
    roots = {
        "": (sys.prefix, sys.base_prefix, paths["purelib"], paths["platlib"]),
        "shared": hello.benchmark_roots,
        "own": hello.own_roots,
        "foreign": hello.foreign_roots,
    }
    deepest, owner = 0, ""
    for name, folders in roots.items():
        for folder in map(os.path.realpath, folders):
            around = real == folder or real.startswith(folder.rstrip("/") + "/")
            if around and len(folder) >= deepest:
                deepest, owner = len(folder), name
    return owner
