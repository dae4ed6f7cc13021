"""How checks end early: killed workers, interruptions, a killed gate; nothing is left or lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import QUICK, check, clean_environment, commit, git, measured
from tests.moments import ended, held_cases, wait_for, wait_until_held


def _start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sns_gate", "check", *QUICK, "--baseline", "HEAD~1", *arguments],
        cwd=folder, env=clean_environment(TMPDIR=str(folder.parent)), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # A test run in the background hands an ignored SIGINT down; a user's shell does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip


def workers_of(gate_pid: int) -> list[int]:
    """The gate's worker processes, in the order in which they were started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == gate_pid and b"start.py" in line:
            found.append(int(entry.name))
    return sorted(found)


@pytest.fixture
def held(repository: Path) -> Path:
    """A file, and a repository whose check stays in its second case until that file goes."""
    file = repository.parent / "held"
    file.touch()
    commit(repository, {"benchmarks/bench_work.py": held_cases(file)})
    commit(repository, {"README": "the same code"})
    return file


def test_a_worker_killed_in_mid_case_breaks_it_and_the_rest_is_judged(
    repository: Path, held: Path
) -> None:
    with ended(_start(repository)) as gate:
        wait_until_held(held, gate)
        os.kill(workers_of(gate.pid)[0], signal.SIGKILL)
        held.unlink()
        out, err = gate.communicate(timeout=120)
    assert gate.returncode in (1, 3), out + err
    result = json.loads((repository / "result.json").read_text())
    verdicts = [case["verdict"] for case in result["cases"]]
    assert verdicts.count("broken") == 1
    assert sum(map(measured, result["cases"])) == 2
    broken = next(case for case in result["cases"] if case["verdict"] == "broken")
    assert broken["reasons"][-1]["code"] == "worker-died"
    assert "was killed by SIGKILL" in broken["reasons"][-1]["text"]
    assert gate.returncode == (1 if broken["broken_sides"] == ["candidate"] else 3)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_check_leaves_nothing_and_keeps_what_it_measured(
    repository: Path, held: Path, number: signal.Signals, code: int
) -> None:
    with ended(_start(repository)) as gate:
        wait_for("1/3", gate)
        workers = workers_of(gate.pid)
        assert len(workers) == 6
        gate.send_signal(number)
        out, err = gate.communicate(timeout=120)
    assert gate.returncode == code, out + err
    result = json.loads((repository / "result.json").read_text())
    assert [measured(case) for case in result["cases"]] == [True]
    assert (result["complete"], result["exit_code"], result["verdict"]) == (False, code, "refused")
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not list(repository.parent.glob("sns-gate-*"))
    assert held.exists()


def test_a_killed_gate_takes_its_workers_along_and_the_next_check_sweeps_up(
    repository: Path, held: Path
) -> None:
    with ended(_start(repository)) as gate:
        wait_for("1/3", gate)
        workers = workers_of(gate.pid)
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert json.loads((repository / "result.json").read_text())["cases"]
    held.unlink()
    ran = check(repository, "--filter", "n=1", TMPDIR=str(repository.parent))
    assert ran.unchanged("stays[n=1]")
    assert not list(repository.parent.glob("sns-gate-*"))
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_worker_that_ends_once_while_it_loads_is_replaced_and_named(repository: Path) -> None:
    once = repository.parent / "once"
    once.touch()
    ends = (
        f"import os\ntry:\n    os.unlink({str(once)!r})\nexcept OSError:\n    pass\n"
        f"else:\n    os._exit(9)\n"
    )
    commit(repository, {"pkg/__init__.py": ends + (repository / "pkg/__init__.py").read_text()})
    commit(repository, {"README": "the same code"})
    ran = check(repository)
    assert ran.code == 0, ran.out + ran.err
    assert "a worker started in its place did not [worker-restarted]" in ran.out


def test_a_side_whose_workers_all_end_between_two_cases_breaks_those_alone(
    repository: Path,
) -> None:
    """Nor can they be started again: each ends soon after it has loaded the code."""
    gone = repository.parent / "gone"
    bench = f"""
        import pathlib, time
        from sns_gate import benchmark
        import pkg

        @benchmark(params={{"n": [1, 2, 3]}}, check=False)
        def f(n):
            if n == 2:
                pathlib.Path({str(gone)!r}).touch()
            return lambda: time.sleep(0.001 * pkg.ONE)
    """
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": "ONE = 1\n"})
    commit(repository, {"pkg/__init__.py": f"""
        import os, threading, time
        ONE = 1
        def end():
            while not os.path.exists({str(gone)!r}):
                time.sleep(0.01)
            time.sleep(0.2)
            os._exit(9)
        threading.Thread(target=end, daemon=True).start()
    """})  # fmt: skip
    ran = check(repository)
    assert ran.code == 1, ran.out + ran.err
    assert list(ran.verdicts.values()) == ["unchanged", "broken", "broken"]
    assert ran.case("f[n=3]").broken_sides == ("candidate",)


def test_code_that_changes_while_it_is_measured_is_said_and_takes_no_verdict_away(
    repository: Path,
) -> None:
    """A change may not keep itself from being slower by writing to a file of its own."""
    bench = f"""
        import pathlib, time
        from sns_gate import benchmark
        import pkg

        @benchmark(check=False)
        def f():
            pathlib.Path({str(repository / "pkg/data.txt")!r}).write_text(str(time.time()))
            return lambda: time.sleep(pkg.work(0.001))
    """
    files = {"benchmarks/bench_work.py": bench, "pkg/__init__.py": "def work(s):\n    return s\n",
             "pkg/data.txt": ""}  # fmt: skip
    commit(repository, files)
    commit(repository, {"pkg/__init__.py": "def work(s):\n    return 3 * s\n"})
    ran = check(repository)
    assert ran.verdicts == {"f": "slower"}, ran.out
    assert "changed while it was measured (pkg/data.txt)" in ran.out
    git(repository, "checkout", "--quiet", ".")
    assert "changed-meanwhile" not in check(repository, "--candidate", "HEAD").out
