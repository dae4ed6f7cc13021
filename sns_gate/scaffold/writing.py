"""Writes what is missing and never over what is there, and says where that is not what is asked."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from sns_gate.config import FILE
from sns_gate.scaffold.workflows import Runner, Visibility, workflows

#: Folders and modules that are no project's own code.
_NOT_OWN = frozenset(
    ("benchmarks", "build", "conftest", "dist", "docs", "examples", "noxfile", "scripts", "setup",
     "test", "tests", "tools")
)  # fmt: skip
_KERNELS, _IGNORED, _WORKFLOWS = "kernels", ".gitignore", ".github/workflows"


@dataclass(frozen=True)
class Plan:
    """What is wanted.

    Attributes:
        visibility: of the repository, None for no workflow.
        runners: kinds of runners.
        device: ``cpu`` to begin without a GPU, else empty.
        branch: the default branch.
    """

    visibility: Visibility | None
    runners: Sequence[Runner]
    device: Literal["", "cpu"]
    branch: str


@dataclass(frozen=True)
class Written:
    """What became of one file.

    Attributes:
        name: relative to the repository.
        new: it was written; else it was there and stays.
        what: it is.
        difference: of a file that stays, how it would have to change for what is asked, a line of
            text each; empty where it need not.
    """

    name: str
    new: bool
    what: str
    difference: tuple[str, ...] = ()


def write(root: Path, plan: Plan) -> list[Written]:
    """Write what is missing; what is there stays as it is.

    Args:
        root: of the repository.
        plan: what is wanted.

    Raises:
        UsageError: the runners cannot be told apart.
        OSError: a file cannot be written.
    """
    return [*(_written(root, *file) for file in _files(root, plan)), *_unwanted(root, plan)]


def _files(root: Path, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Name, text and what it is, of every file that a repository begins with."""
    kind = plan.device or "cuda"
    if _has_table(root / "pyproject.toml"):
        yield "pyproject.toml", "", "settings"
    else:
        yield FILE, _template(FILE), "settings"
    yield (
        _IGNORED,
        "result.json*\nbisect.json*\n",
        "what stays out of git, such as a check's result",
    )
    package = _own_package(root)
    if not list(root.glob("benchmarks/bench_*.py")):
        call = {"cuda": "torch.softmax(x, -1)", "cpu": "sum(x)"}[kind]
        imported = f"{package}  # noqa: F401 (what is timed has to load your code)"
        if package is None:
            yield f"{_KERNELS}.py", _template(f"kernel-{kind}.py.in"), "a stand-in for your code"
            imported, call = _KERNELS, f"{_KERNELS}.work(x)"
        bench = _template(f"bench-{kind}.py.in").replace("<PACKAGE>", imported)
        yield "benchmarks/bench_first.py", bench.replace("<CALL>", call), "a first benchmark"
    if plan.visibility is not None:
        made = workflows(plan.visibility, plan.runners, plan.device, plan.branch)
        for name, text in made.items():
            yield f"{_WORKFLOWS}/{name}", text, "a workflow"


def _written(root: Path, name: str, text: str, what: str) -> Written:
    path = root / name
    if path.exists():
        return Written(name, new=False, what=what, difference=_difference(name, text, path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Written(name, new=True, what=what)


def _difference(name: str, text: str, path: Path) -> tuple[str, ...]:
    """Of what options decide every change, of a list what is missing; all else is the user's."""
    there = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if name == _IGNORED:
        return tuple(f"+{line}" for line in text.splitlines() if line not in there)
    if not name.startswith(_WORKFLOWS):
        return ()
    return tuple(
        difflib.unified_diff(there, text.splitlines(), "there", "asked for", lineterm="", n=1)
    )


def _unwanted(root: Path, plan: Plan) -> Iterator[Written]:
    """Workflows of an earlier plan that this one does without, and that run all the same."""
    if plan.visibility is None:
        return
    known, wanted = (
        set(workflows(visibility, plan.runners, plan.device, plan.branch))
        for visibility in ("public", plan.visibility)
    )
    for name in sorted(known - wanted):
        if (root / _WORKFLOWS / name).exists():
            what = "a workflow that these options do without; remove it"
            yield Written(f"{_WORKFLOWS}/{name}", new=False, what=what)


def _template(name: str) -> str:
    return files("sns_gate.scaffold").joinpath("templates", name).read_text(encoding="utf-8")


def _has_table(file: Path) -> bool:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError):
        return False
    return isinstance(tool, dict) and "sns-gate" in tool


def _own_package(root: Path) -> str | None:
    """The first package or module of the project, None where there is none."""
    for folder in (root / "src", root):
        packages = (init.parent.name for init in folder.glob("*/__init__.py"))
        modules = (module.stem for module in folder.glob("*.py"))
        for names in (packages, modules):
            own = sorted(name for name in names if name.isidentifier() and name not in _NOT_OWN)
            if own:
                return own[0]
    return None
