"""When a check ends, everything that its benchmarks started is dead, however it went away."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import QUICK, WORK, commit, new_repository, sns_gate

BENCH = """
import os
import signal
import subprocess
import sys
import time

from sns_gate import benchmark
from pkg import work

FOREVER = (
    "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "open(os.path.join(sys.argv[1], str(os.getpid())), 'w').close(); time.sleep(300)"
)

def started(environment, session):
    command = [sys.executable, "-c", "import sys; " + FOREVER, os.environ["LEDGER"]]
    subprocess.Popen(command, env=environment, start_new_session=session)

def twice_forked(environment):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            started(environment, True)
        os._exit(0)
    os.waitpid(pid, 0)

WAYS = {
    "child": lambda: started(None, False),
    "own session": lambda: started(None, True),
    "forked twice": lambda: twice_forked(None),
    "forked twice without variables": lambda: twice_forked({}),
}

done = []

@benchmark(params={"n": [2000]})
def square(n):
    if not done:
        done.append(WAYS["WAY"]())
        time.sleep(0.3)
        if "ENDS" == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
    return lambda: work(n)
"""


def running(ledger: Path) -> list[int]:
    """Of the processes that wrote their number down, those that live."""
    found = []
    for entry in ledger.iterdir():
        try:
            alive = psutil.Process(int(entry.name)).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            continue
        found += [int(entry.name)] if alive else []
    return found


#: Whoever drops every trace and ends its own worker is found by nobody (SECURITY.md).
@pytest.mark.parametrize(
    ("way", "ends"),
    [
        (way, ends)
        for way in ("child", "own session", "forked twice", "forked twice without variables")
        for ends in ("lives", "dies")
    ][:-1],
)
def test_nothing_outlives_the_check(tmp_path: Path, way: str, ends: str) -> None:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    bench = BENCH.replace('"WAY"', f'"{way}"').replace('"ENDS"', f'"{ends}"')
    repository = new_repository(
        tmp_path / "repository", {"pkg/__init__.py": WORK, "benchmarks/bench_square.py": bench}
    )
    commit(repository, {"README": "the same"})
    ran = sns_gate(
        repository, "check", *QUICK, "--baseline", "HEAD~1", "--pass-env", "LEDGER",
        LEDGER=str(ledger),
    )  # fmt: skip
    assert ran.code == (0 if ends == "lives" else 3), ran.out + ran.err
    assert len(list(ledger.iterdir())) >= 2, "they did run"
    deadline_s = time.monotonic() + 2
    while running(ledger) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not running(ledger)
