"""A repository whose commits carry a factor, and recorded workers that are slower by it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conftest import Ran, commit, git, new_repository, sns_gate

#: Where a file holds no number, its revision cannot be measured.
BROKEN = "broken"


class FactorRepository:
    """A repository with one commit of the factor 1.

    Args:
        folder: for it, the clock, and an interpreter that is a recorded worker.
    """

    def __init__(self, folder: Path) -> None:
        self.python, self.clock = folder / "python", folder / "mhz"
        self.clock.write_text("1500")
        worker = Path(__file__).parent / "recorded_worker.py"
        self.python.write_text(f"#!/bin/sh\nexec {sys.executable} {worker}\n")
        self.python.chmod(0o755)
        files = {"pkg.py": "", "factor": "1", "benchmarks/bench_x.py": "",
                 ".gitignore": "result.json\nbisect.json*\n"}  # fmt: skip
        self.root = new_repository(folder / "repo", files)
        self.first = git(self.root, "rev-parse", "HEAD")

    def commit(self, factor: float | str, message: str) -> str:
        """A commit of another factor; two of one factor differ by their message."""
        return commit(self.root, {"factor": str(factor), "message": message}, message)

    def run(self, command: str, *options: str) -> Ran:
        """A command with a tolerance of 1% on recorded workers."""
        return sns_gate(
            self.root, command, *options, "--device", "cpu", "--placements", "2",
            "--tolerance", "1%", "--python", str(self.python),
            "--pass-env", "RECORDED_MHZ", "--pass-env", "RECORDED_FACTOR",
            RECORDED_MHZ=str(self.clock), RECORDED_FACTOR="factor",
        )  # fmt: skip
