"""Fixtures and the tiny language in which tests write repositories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sns_gate.types import CaseResult, GateResult, Verdict
from tests.fake_nvml import build

#: What a machine that runs the tests sets to say where it is and how it likes its output; a test
#: that is about one of these sets it itself.
_OF_THE_MACHINE = ("SNS_GATE_", "GITHUB_", "RUNNER_", "TTY_", "CLICOLOR", "RECORDED_", "FAKE_NVML_")
_ALSO = {"CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "GIT_DIR", "GIT_WORK_TREE"}
for _name in list(os.environ):
    if _name.startswith(_OF_THE_MACHINE) or _name in _ALSO:
        del os.environ[_name]

#: Time that passes whatever else the machine does, so that no verdict rests on fine timing.
WORK = """
    import time

    def work(n):
        count = len(range(n))
        time.sleep(count * 5e-7)
        return True
"""
BENCH = """
    from sns_gate import benchmark
    from pkg import work

    @benchmark(params={"n": [2000]})
    def square(n):
        return lambda: work(n)
"""
#: Few and quick blocks: enough for work that differs by half or more.
QUICK = (
    "--device", "cpu", "--processes", "3", "--placements", "2", "--tolerance", "90%",
    "--explain", "none",
)  # fmt: skip

#: Codes of what other work on this machine does to a check, whatever is tested.
BUSY = {"cpu-contended", "cpu-stolen", "cpu-throttled"}


def commit(folder: Path, files: Mapping[str, str], message: str = "change") -> str:
    """Write files (dedented), commit them all, and return the commit."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    """Run real git with an identity of its own, and return what it prints."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, "-c", "protocol.file.allow=always", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def new_repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, files, "baseline")
    return folder


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str
    result: GateResult | None

    def case(self, id_: str) -> Any:  # noqa: ANN401 (tests read any attribute)
        """The case of this id in the result file."""
        assert self.result is not None, self.err
        return next(case for case in self.result.cases if case.id == id_)

    def unchanged(self, id_: str) -> bool:
        """Whether a case is, or only this host's load kept the verdict from it."""
        load = BUSY & {reason.code for reason in self.case(id_).reasons}
        return self.verdicts[id_] == "unchanged" or bool(load)

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdict by case id."""
        assert self.result is not None, self.err + self.out
        return {case.id: case.verdict.value for case in self.result.cases}


def measured(case: Mapping[str, Any]) -> bool:
    """Whether equal code was measured to its end; a loaded machine may keep it from a verdict."""
    return case["speedup"] is not None and case["verdict"] in ("unchanged", "refused")


def clean_environment(**extra: str) -> dict[str, str]:
    """This environment, in which nothing configures the gate, plus some variables."""
    return {**os.environ, **extra}


#: Other load beside which an interval may become too wide.
BUSY_PCT = 10.0
BUSY_TRIES = 4
#: A check on a GPU may compile in each of sixteen workers.
_MOST_S = 600


def sns_gate(folder: Path, *arguments: str, **environment: str) -> Ran:
    """Run the real command in a folder; ``result.json`` there is read if it is written.

    Where this machine was busy and kept a case on its CPU from a verdict, it is run again, a few
    times.
    """
    tries = 1
    while True:
        ran = _run_once(folder, arguments, environment)
        cases = ran.result.cases if ran.result and ran.result.device == "cpu" else ()
        busy = any(map(_was_busy, cases))
        if not busy or tries == BUSY_TRIES:
            return ran
        tries += 1


def _was_busy(case: CaseResult) -> bool:
    if case.note in ("tier C", "unconfirmed"):
        return bool(BUSY & {reason.code for reason in case.reasons})
    loads = [block.cpu.other_load_pct or 0.0 for block in case.blocks if block.cpu is not None]
    wide = case.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_SLOWER)
    return wide and max(loads, default=0.0) > BUSY_PCT


def _run_once(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "sns_gate", *arguments],
        cwd=folder,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=_MOST_S,
        check=False,
    )
    path = folder / "result.json"
    result = None
    if path.exists():
        result = GateResult.model_validate(json.loads(path.read_text(encoding="utf-8")))
    return Ran(done.returncode, done.stdout, done.stderr, result)


def check(folder: Path, *arguments: str, **environment: str) -> Ran:
    """A quick check on the CPU against the commit before the last."""
    return sns_gate(folder, "check", *QUICK, "--baseline", "HEAD~1", *arguments, **environment)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled fake NVML."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one package, one benchmark, and one commit."""
    return new_repository(
        tmp_path / "repo", {"pkg/__init__.py": WORK, "benchmarks/bench_work.py": BENCH,
                            ".gitignore": "result.json\n__pycache__/\n"}
    )  # fmt: skip
