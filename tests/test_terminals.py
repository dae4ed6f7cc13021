"""A terminal is closed, a shell killed: the check ends or goes on, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import QUICK, WORK, check, clean_environment, commit, new_repository
from tests.leftovers import left_behind, processes_in
from tests.moments import ended, held_cases, wait_until_held

BENCH = """
from sns_gate import benchmark
from pkg import work

@benchmark(params={"n": [500, 501]})
def square(n):
    return lambda: work(n)
"""
COMMAND = [sys.executable, "-m", "sns_gate", "check", *QUICK, "--baseline", "HEAD~1"]
ENDS_WITHIN_S = 120


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository beside a folder for temporary files, ``tmp``."""
    (tmp_path / "tmp").mkdir()
    files = {"pkg/__init__.py": WORK, "benchmarks/bench_square.py": BENCH,
             ".gitignore": "result.json\n"}  # fmt: skip
    repository = new_repository(tmp_path / "repository", files)
    commit(repository, {"README": "the same"})
    return repository


@pytest.mark.parametrize("ignored", [False, True])
def test_a_check_whose_terminal_is_closed_ends_by_it_and_keeps_what_it_measured(
    repository: Path, *, ignored: bool
) -> None:
    tmp, held = repository.parent / "tmp", repository.parent / "held"
    held.touch()
    commit(repository, {"benchmarks/bench_square.py": held_cases(held, count=2)})
    commit(repository, {"README": "the same code"})
    (ours, its), closing = pty.openpty(), os.pipe()

    def read_until_closed() -> None:
        while closing[0] not in select.select([ours, closing[0]], [], [])[0]:
            os.read(ours, 1 << 12)
        os.close(ours)

    def take_terminal() -> None:
        os.setsid()
        # A test run under nohup hands an ignored SIGHUP down; a user's terminal does not.
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    gate = subprocess.Popen(
        COMMAND, cwd=repository, env=clean_environment(TMPDIR=str(tmp), TERM="xterm"), text=True,
        stdin=its, stdout=its, stderr=its, preexec_fn=take_terminal,  # noqa: PLW1509 (a terminal's first process does so)
    )  # fmt: skip
    with ended(gate):
        os.close(its)
        reads = threading.Thread(target=read_until_closed)
        reads.start()
        wait_until_held(held, gate)  # so that the first is kept
        os.write(closing[1], b"!")
        reads.join()
        os.close(closing[0])
        os.close(closing[1])
        if ignored:  # then it sees at its next word that nobody hears it
            held.unlink()
        assert gate.wait(ENDS_WITHIN_S) == 128 + signal.SIGTERM
    kept = json.loads((repository / "result.json").read_text())
    cases = [(case["id"], case["verdict"], case["reasons"]) for case in kept["cases"]]
    assert ignored or (len(cases), kept["complete"]) == (1, False), cases
    assert not left_behind(repository, tmp)
    held.unlink(missing_ok=True)
    again = check(repository, TMPDIR=str(tmp))
    assert len(again.verdicts) == 2


def test_a_check_whose_shell_is_killed_goes_on_and_leaves_its_result(repository: Path) -> None:
    tmp, log = repository.parent / "tmp", repository.parent / "log"
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["sh", "-c", f"{shlex.join(COMMAND)}; true"], cwd=repository,
            env=clean_environment(TMPDIR=str(tmp)), stdout=output, stderr=output,
        )  # fmt: skip
    deadline_s = time.monotonic() + ENDS_WITHIN_S
    while "starting" not in log.read_text() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    shell.kill()
    shell.wait()
    deadline_s = time.monotonic() + ENDS_WITHIN_S
    while processes_in(tmp) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    kept = json.loads((repository / "result.json").read_text())
    assert (len(kept["cases"]), kept["complete"]) == (2, True), log.read_text()
    assert not left_behind(repository, tmp)


def test_a_check_whose_reader_leaves_goes_on_and_ends_as_it_found(repository: Path) -> None:
    tmp = repository.parent / "tmp"
    gate = subprocess.Popen(
        [*COMMAND, "--filter", "n=500"], cwd=repository,
        env=clean_environment(TMPDIR=str(tmp)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert gate.stdout is not None
    gate.stdout.readline()
    gate.stdout.close()
    _, err = gate.communicate(timeout=ENDS_WITHIN_S)
    assert err == b""
    kept = json.loads((repository / "result.json").read_text())
    assert (len(kept["cases"]), kept["complete"]) == (1, True)
    assert gate.returncode == kept["exit_code"]
    assert not left_behind(repository, tmp)
