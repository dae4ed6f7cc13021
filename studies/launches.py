"""Checks of the zoo in a repository of its own, launch after launch, reduced to what is counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.machine import describe

ZOO = Path(__file__).parent / "zoo"
_KEPT = ("id", "verdict", "note", "tier", "speedup", "half_width_pct", "detectable_pct", "seconds",
         "tolerance", "mode")  # fmt: skip


def launch(benchmarks: str, extra: int, *options: str) -> dict[str, Any]:
    """One check, in new processes with fresh caches; the candidate differs by ``EXTRA`` alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "zoo"
        shutil.copytree(ZOO, folder)
        _git(folder, "init", "--quiet")
        _commit(folder, "baseline")
        source = folder / "zoo" / "__init__.py"
        text = source.read_text(encoding="utf-8").replace("EXTRA = 0", f"EXTRA = {extra}")
        source.write_text(text + "\n# candidate\n", encoding="utf-8")
        _commit(folder, "candidate")
        command = [sys.executable, "-m", "sns_gate", "check", "--baseline", "HEAD~1",
                   "--explain", "none"]  # fmt: skip
        done = subprocess.run(
            [*command, "--candidate", "HEAD", "--benchmarks", benchmarks, *options],
            cwd=folder, env=os.environ | {"PYTHONPATH": own_path()}, check=False, text=True,
            capture_output=True,
        )  # fmt: skip
        result = folder / "result.json"
        if not result.exists():
            raise RuntimeError(done.stdout + done.stderr)
        return _reduced(json.loads(result.read_text(encoding="utf-8")))


def add_launches(
    default: int, once: Callable[[int], dict[str, Any]], say: Callable[[dict[str, Any]], object]
) -> None:
    """The command of a study by launches, ``FILE [LAUNCHES]``; those already in FILE stay.

    Args:
        default: launches to add.
        once: makes the launch of a number, which is its seed.
        say: what to print of it.
    """
    file = Path(sys.argv[1])
    kept: dict[str, Any] = {"machine": describe(), "launches": []}
    if file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else default):  # noqa: PLR2004 (argv)
        found = once(len(kept["launches"]))
        kept["launches"].append(found)
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        print(round(found["seconds"]), "s", say(found), flush=True)


def own_path() -> str:
    """Where programs that a study starts find this package, installed or not."""
    root = str(ZOO.parents[1])
    return os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))


def _reduced(result: dict[str, Any]) -> dict[str, Any]:
    cases = [
        {key: case[key] for key in _KEPT}
        | {
            "first": (case["screening"] or {}).get("speedup"),
            "blocks": len(case["blocks"]),
            "reasons": [reason["code"] for reason in case["reasons"]],
            "spent": _spent(case["blocks"]),
        }
        for case in result["cases"]
    ]
    return {"seconds": result["seconds"], "processes": result["processes"],
            "placements": result["placements"], "cases": cases}  # fmt: skip


def _spent(blocks: list[dict[str, Any]]) -> list[float]:
    keys = ("placing_s", "settling_s", "sampling_s")
    return [round(sum(block[key] for block in blocks), 3) for key in keys]


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "-c", "user.name=study", "-c", "user.email=study@example.org", "commit",
         "--quiet", "--message", message)  # fmt: skip


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)
