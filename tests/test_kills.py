"""Checks killed at random moments: what was measured is kept, and nothing else is left.

``SNS_KILLS=100 pytest tests/test_kills.py`` kills a hundred by each signal.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import QUICK, WORK, clean_environment, commit, git, new_repository
from tests.leftovers import left_behind

COUNT = int(os.environ.get("SNS_KILLS", "1"))
BENCH = """
from sns_gate import benchmark
from pkg import work

@benchmark(params={"n": [500, 501, 502, 503]})
def square(n):
    return lambda: work(n)
"""
#: A little longer than such a check takes.
LONGEST_S = 4.0


class Place:
    """A repository and a temporary folder of its own, so that what is left can be counted."""

    def __init__(self, folder: Path) -> None:
        self.tmp, self.state = folder / "tmp", folder / "state"
        self.tmp.mkdir()
        files = {"pkg/__init__.py": WORK, "benchmarks/bench_square.py": BENCH,
                 ".gitignore": "result.json\n"}  # fmt: skip
        self.repository = new_repository(folder / "repository", files)
        commit(self.repository, {"README": "the same"})
        self.environment = clean_environment(
            TMPDIR=str(self.tmp), SNS_GATE_STATE_DIR=str(self.state),
            GATE_INPUT_STATE_DIR=str(self.state),
        )  # fmt: skip

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sns_gate", "check", *QUICK, "--baseline", "HEAD~1"],
            cwd=self.repository, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509, E501 (a shell's child has it so)
        )  # fmt: skip

    def clean(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "sns_gate.cli.step", "clean"], cwd=self.repository,
            env=self.environment, check=True, capture_output=True,
        )  # fmt: skip

    def left(self) -> dict[str, object]:
        """Everything that is left, empty where nothing is."""
        found = left_behind(self.repository, self.tmp)
        uncommitted = git(self.repository, "status", "--porcelain")
        return found | ({"uncommitted": uncommitted} if uncommitted else {})


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_check_that_is_killed_leaves_nothing_but_its_result(tmp_path: Path, number: str) -> None:
    place, rng = Place(tmp_path), random.Random(number)
    for attempt in range(COUNT):
        (place.repository / "result.json").unlink(missing_ok=True)
        check = place.start()
        moment_s = rng.uniform(0.05, LONGEST_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            check.wait(moment_s)
        check.send_signal(getattr(signal, number))
        said, _ = check.communicate(timeout=120)
        where = f"attempt {attempt}, after {moment_s:.2f} s:\n{said}"
        if number == "SIGKILL":  # nobody can clean up after that but whoever comes next
            place.clean()
        assert not place.left(), where
        assert "Traceback" not in said, where
        finished = re.findall(r"^\d/4 (\S+)", said, re.MULTILINE)
        if finished:
            kept = json.loads((place.repository / "result.json").read_text())
            measured = {case["id"] for case in kept["cases"]}
            assert set(finished) <= measured, where
    again = place.start()
    said, _ = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert not place.left()


#: Interrupts whoever imports this module of the command.
INTERRUPTED = """
import os, signal, sys
from sns_gate.cli import main

class Finder:
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.exit(main(["schema"]))
"""


@pytest.mark.parametrize("name", ["sns_gate.cli.parser", "sns_gate.errors", "sns_gate.report.json"])
def test_an_interrupt_while_the_command_is_imported_is_said_as_one(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(name=name)],
        capture_output=True, text=True, check=False, env=clean_environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "sns-gate: interrupted\n")
