"""A job is cancelled as the runner does it, or its check is killed outright: what stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from tests.conftest import clean_environment, commit, git, measured, new_repository
from tests.moments import wait_for

ROOT = Path(__file__).resolve().parents[1]
STEPS = {
    step["name"]: step["run"]
    for step in YAML(typ="safe").load((ROOT / "action.yml").read_text())["runs"]["steps"]
}
#: The runner interrupts the step's first process, terminates it 7.5 s later, kills all after 2.5 s.
TERMINATED_AFTER_S, KILLED_AFTER_S = 7.5, 10.0
BENCH = """
import subprocess
import sys
import time

import pkg
from sns_gate import benchmark

@benchmark(params={"n": [1, 2]})
def waits(n):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
    def call():
        time.sleep(0.3 if n == 2 else 0.001)
        return pkg.NAME > 0
    return call
"""


class Job:
    """A step of the action in a job, its scripts run as the runner runs them."""

    def __init__(self, folder: Path) -> None:
        self.steps: list[subprocess.Popen[str]] = []
        files = {"pkg.py": "NAME = 1\n", "benchmarks/bench_waits.py": BENCH}
        self.repository = new_repository(folder / "repository", files)
        commit(self.repository, {"pkg.py": "NAME = 2\n"})
        self.home, self.tmp = folder / "home", folder / "tmp"
        for made in (self.home, self.tmp, self.home / "sns-gate" / "bin"):
            made.mkdir(exist_ok=True, parents=True)
        python = self.home / "sns-gate" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        head = git(self.repository, "rev-parse", "HEAD")
        before = git(self.repository, "rev-parse", "HEAD~1")
        (self.home / "event.json").write_text(json.dumps({"before": before}))
        self.environment = clean_environment(
            RUNNER_TEMP=str(self.home), TMPDIR=str(self.tmp), GITHUB_EVENT_NAME="push",
            GITHUB_EVENT_PATH=str(self.home / "event.json"), GITHUB_REPOSITORY="o/r",
            GITHUB_SHA=head, GITHUB_OUTPUT=str(self.home / "output"), GITHUB_RUN_ID="1",
            GATE_INPUT_DEVICE="cpu", GATE_INPUT_PROCESSES="3", GATE_INPUT_PLACEMENTS="2",
            GATE_INPUT_TOLERANCE="90%", GATE_INPUT_STATE_DIR=str(self.home / "state"),
            GATE_INPUT_PYTHON=sys.executable,
        )  # fmt: skip

    def start(self, step: str) -> subprocess.Popen[str]:
        script = self.home / f"{step}.sh"
        script.write_text(STEPS[step])
        started = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.repository, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.steps.append(started)
        return started

    def end(self) -> None:
        """Leave nothing of it behind."""
        for process in self.ours():
            with contextlib.suppress(psutil.Error):
                process.kill()
        for step in self.steps:
            step.kill()
            step.communicate()

    def ours(self) -> list[psutil.Process]:
        """All processes of the job's checks, however far they went from their parents."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(str(self.tmp)):
                    found.append(process)
        return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    made.end()


def worktrees(job: Job) -> int:
    return len(git(job.repository, "worktree", "list").splitlines())


@pytest.mark.parametrize("moment", ["starting", "1/2 waits"])
def test_a_cancelled_job_ends_in_time_and_leaves_its_result(job: Job, moment: str) -> None:
    step = job.start("Measure")
    wait_for(moment, step)
    start = time.monotonic()
    step.send_signal(signal.SIGINT)
    code = step.wait(KILLED_AFTER_S)
    assert time.monotonic() - start < TERMINATED_AFTER_S, "before it is terminated"
    assert code == 130
    result = job.repository / "result.json"
    if "waits" in moment:
        kept = json.loads(result.read_text())
        assert [measured(case) for case in kept["cases"]] == [True]
        assert kept["complete"] is False
    assert worktrees(job) == 1
    assert not list(job.tmp.glob("sns-gate-*"))


def test_what_a_killed_check_leaves_is_taken_away_by_the_next_step(job: Job) -> None:
    step = job.start("Measure")
    wait_for("1/2 waits", step)
    os.kill(step.pid, signal.SIGKILL)
    step.wait()
    assert job.ours()
    cleaning = job.start("Clean up")
    said, _ = cleaning.communicate(timeout=120)
    assert cleaning.returncode == 0, said
    assert not job.ours()
    assert worktrees(job) == 1
    assert not list(job.tmp.glob("sns-gate-*"))
