"""Bisections of histories with one planted regression and broken commits: is the right one found?

``python -m studies.bisecting FILE [RECORDED] [LIVE] [GPU]``: so many histories with recorded
workers and a regression of 2%, so many with real work on the CPU and one of 30%, and so many, none
unless asked for, with a kernel on a GPU and one of 2%.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.launches import own_path
from studies.machine import describe

COMMITS, BROKEN = 64, 3
RECORDED, LIVE = 20, 5
_WORKER = Path(__file__).resolve().parents[1] / "tests" / "recorded_worker.py"
_ON_CPU = ("--device", "cpu", "--placements", "2")
_BENCH = """from pkg import work
from sns_gate import benchmark


@benchmark
def case0():
    return work
"""
_WORK = """import time


def work():
    until = time.perf_counter_ns() + {ns}
    while time.perf_counter_ns() < until:
        pass
    return True
"""
_KERNEL = """import torch

arrays = []


def work():
    if not arrays:
        arrays.extend(torch.ones({size}, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x, out = arrays
    return torch.add(x, x, out=out)[:1000]
"""
_FOUND = re.compile(r"^(\w+) step (\d+) made case0 slower\.$", re.MULTILINE)


def main() -> None:
    """Run all kinds and keep each outcome beside those that the file holds."""
    file = Path(sys.argv[1])
    counts = [int(text) for text in sys.argv[2:]] or [RECORDED, LIVE]
    kept: dict[str, Any] = {"machine": describe(), "commits": COMMITS, "broken": BROKEN, "runs": []}
    if file.exists():
        kept["runs"] = json.loads(file.read_text(encoding="utf-8"))["runs"]
    there = {(one["kind"], one["seed"]) for one in kept["runs"]}
    kinds = {"recorded": _recorded, "live": _live, "gpu": _on_gpu}
    for (kind, run), count in zip(kinds.items(), counts, strict=False):
        for seed in range(count):
            if (kind, seed) in there:
                continue
            with tempfile.TemporaryDirectory() as folder:
                kept["runs"].append({"kind": kind, "seed": seed, **run(Path(folder), seed)})
            print(kept["runs"][-1], flush=True)
            file.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def _recorded(folder: Path, seed: int) -> dict[str, Any]:
    (folder / "mhz").write_text("1500", encoding="utf-8")
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {_WORKER}\n", encoding="utf-8")
    python.chmod(0o755)
    options = (*_ON_CPU, "--processes", "4", "--tolerance", "1%", "--python", str(python),
               "--pass-env", "RECORDED_MHZ", "--pass-env", "RECORDED_FACTOR")  # fmt: skip
    variables = {"RECORDED_MHZ": str(folder / "mhz"), "RECORDED_FACTOR": "factor"}
    return _run(folder, seed, _factors(seed, 1.02), options, variables)


def _live(folder: Path, seed: int) -> dict[str, Any]:
    options = (*_ON_CPU, "--processes", "3", "--tolerance", "10%")
    return _run(folder, seed, _factors(seed, 1.3), options, {}, _written_work)


def _on_gpu(folder: Path, seed: int) -> dict[str, Any]:
    options = ("--device", "cuda:0", "--tolerance", "1%")
    return _run(folder, seed, _factors(seed, 1.02), options, {}, _written_kernel)


def _factors(seed: int, slower: float) -> tuple[int, list[str]]:
    """The number of the culprit, and a factor a commit; a broken one has none."""
    rng = random.Random(seed)
    culprit = rng.randrange(1, COMMITS)
    factors = [str(slower if n >= culprit else 1.0) for n in range(1, COMMITS + 1)]
    # Were the commit before it broken, no measurement could tell the two apart.
    others = [n for n in range(COMMITS - 1) if n + 1 not in (culprit - 1, culprit)]
    for number in rng.sample(others, BROKEN):
        factors[number] = "broken"
    return culprit, factors


def _written_work(factor: str) -> dict[str, str]:
    if factor == "broken":
        return {"pkg.py": "raise ImportError('broken on purpose')\n"}
    return {"pkg.py": _WORK.format(ns=int(200_000 * float(factor)))}


def _written_kernel(factor: str) -> dict[str, str]:
    if factor == "broken":
        return {"pkg.py": "raise ImportError('broken on purpose')\n"}
    return {"pkg.py": _KERNEL.format(size=int((64 << 20) * float(factor)))}


def _run(
    folder: Path,
    seed: int,
    planted: tuple[int, list[str]],
    options: tuple[str, ...],
    variables: dict[str, str],
    written: Callable[[str], dict[str, str]] = lambda factor: {"factor": factor},
) -> dict[str, Any]:
    culprit, factors = planted
    repository = folder / "repo"
    _commit(repository, {"benchmarks/bench_x.py": _BENCH, "pkg.py": "", **written("1")}, "good")
    for number, factor in enumerate(factors, 1):
        _commit(repository, {"number": str(number), **written(factor)}, f"step {number}")
    start_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "sns_gate", "bisect", f"HEAD~{COMMITS}", "HEAD", "--case", "case0",
         "--state", str(folder / "state.json"), "--seed", str(seed), *options],
        cwd=repository, env={**os.environ, "PYTHONPATH": own_path(), **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = _FOUND.search(done.stdout)
    tried = json.loads((folder / "state.json").read_text(encoding="utf-8"))["tried"]
    skipped = sum(one["fate"] == "skipped" for one in tried)
    return {
        "right": said is not None and int(said[2]) == culprit,
        "checks": 1 + len(tried) - skipped,
        "skipped": skipped,
        "seconds": round(time.monotonic() - start_s, 1),
        "said": "" if said else (done.stdout + done.stderr)[-500:],
    }


def _commit(repository: Path, files: dict[str, str], message: str) -> None:
    git = ("git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org")
    for name, text in files.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text, encoding="utf-8")
    if not (repository / ".git").exists():
        subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", message], check=True)


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    rows = []
    kinds = {"recorded": "recorded workers, 2%", "live": "real work on the CPU, 30%",
             "gpu": "a kernel on the GPU, 2%"}  # fmt: skip
    for kind, what in kinds.items():
        runs = [run for run in kept["runs"] if run["kind"] == kind]
        if runs:
            right, most = sum(run["right"] for run in runs), max(run["checks"] for run in runs)
            seconds = sorted(run["seconds"] for run in runs)[len(runs) // 2]
            rows.append(f"| {what} | {right} of {len(runs)} | {most} | {seconds:.0f} s |")
    return [
        "## Bisection\n",
        f"{kept['machine']}. Histories of {kept['commits']} commits with one planted regression "
        f"and {kept['broken']} commits that cannot be measured, at random places but not just "
        f"before it.\n",
        "| | right commit | checks besides broken ones, at most | median time |",
        "|---|--:|--:|--:|",
        *rows,
        "",
    ]


if __name__ == "__main__":
    main()
