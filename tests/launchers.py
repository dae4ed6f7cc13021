"""Launchers as small scripts: what users have, and what may go wrong with it."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import psutil

from sns_gate import __version__
from sns_gate.outpost.lines import MARK
from sns_gate.outpost.messages import PROTOCOL, Greeting
from sns_gate.types import GateResult
from tests.conftest import Ran, check, clean_environment, commit, new_repository

#: Starts what follows, as ssh and srun do.
PLAIN = 'exec "$@"'
#: As login shells do, with a last line that does not end.
BANNER = (
    'echo "Welcome to node1"; printf "{ \\"kind\\": \\"no answer\\" }\\nLast login: "; exec "$@"'
)
#: The coordinator's folders are not seen: the text in them is asked for in the first line.
ELSEWHERE = 'sed -u \'1s/"text":"[0-9a-f]*"/"text":"another"/\' | "$@"'


BASELINE = """
    import time

    def pace(name, baseline, candidate):
        time.sleep(baseline)
        return name

    def answer():
        return 1

    answer_of = "baseline"
"""
CANDIDATE = BASELINE.replace("sleep(baseline)", "sleep(candidate)").replace("return 1", "return 2")
BENCH = """
    import time
    from sns_gate import benchmark
    from pkg import answer, pace

    @benchmark(check=False)
    def same():
        return lambda: pace("same", 0.002, 0.002)

    @benchmark(check=False)
    def slower():
        return lambda: pace("slower", 0.001, 0.008)

    @benchmark(check=False)
    def faster():
        return lambda: pace("faster", 0.008, 0.001)

    @benchmark
    def wrong():
        return lambda: answer()
"""
PLANTED = {"same": "unchanged", "slower": "slower", "faster": "faster", "wrong": "wrong"}


def planted_repository(folder: Path) -> Path:
    """A repository whose candidate differs from its baseline in known ways."""
    new_repository(
        folder,
        {"pkg/__init__.py": BASELINE, "benchmarks/bench_pace.py": BENCH,
         ".gitignore": "result.json\n__pycache__/\nignored/\n"},
    )  # fmt: skip
    commit(folder, {"pkg/__init__.py": CANDIDATE})
    return folder


class Launchers:
    """Scripts in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def script(self, body: str, name: str = "launch") -> str:
        """A launcher of this body, in words for the command line."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def impostor(self, then: str, **says: object) -> str:
        """One behind which something greets as an outpost does, and then goes another way.

        Args:
            then: what it does, in the shell's words.
            says: in its greeting, in place of what an outpost says or besides.
        """
        usual = Greeting(version=__version__, protocol=PROTOCOL, host="h", pid=1)
        first = MARK.decode() + json.dumps(usual.model_dump() | says)
        file = self.folder / "greeting"
        file.write_text(first + "\n", encoding="utf-8")
        return self.script(f"cat {file}; {then}", "impostor")


def outposts_of(gate_pid: int) -> list[psutil.Process]:
    """The processes that a gate's launchers have become, in the order in which they started."""
    children = psutil.Process(gate_pid).children(recursive=True)
    found = [one for one in children if "sns_gate.outpost" in " ".join(one.cmdline())]
    return sorted(found, key=lambda one: one.pid)


def through(repository: Path, *launchers: str, more: tuple[str, ...] = (), **variables: str) -> Ran:
    """A quick check through these launchers, with locks of its own."""
    there = [word for one in launchers for word in ("--launcher", one)]
    own = ("--state-dir", str(repository.parent / "state"))
    return check(repository, *there, *own, *more, **variables)


DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo.py"


def demo_through(folder: Path, *launchers: str) -> GateResult:
    """The demo's cases, measured where these lead; none is judged against what was planted.

    What a busy machine refuses or leaves open is no contradiction.
    """
    planted = runpy.run_path(str(DEMO))["PLANTED"]["cpu"]
    file = folder / "demo.json"
    there = [word for one in launchers for word in ("--launcher", one)]
    done = subprocess.run(
        [sys.executable, str(DEMO), "--device", "cpu", "--json", str(file), *there,
         "--state-dir", str(folder / "state")],
        env=clean_environment(), capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert file.exists(), done.stdout + done.stderr
    result = GateResult.model_validate_json(file.read_text(encoding="utf-8"))
    found = {case.id: case.verdict.value for case in result.cases}
    assert found.keys() == planted.keys(), done.stdout
    open_ = {"refused", "inconclusive", "not slower"}
    for case, verdict in found.items():
        assert verdict in {planted[case], *open_}, f"{case} is {verdict}\n{done.stdout}"
    assert found["initials[count=1000]"] == "wrong"
    assert result.complete
    return result
