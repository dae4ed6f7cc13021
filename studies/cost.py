"""What a check costs the gate itself, by the number of its cases; workers replay and need no time.

``python -m studies.cost FILE [CASES...]`` needs no GPU: whole checks against workers that answer at
once, so that what is left is the gate's own time, memory and disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.machine import describe

CASES = (10, 100, 1000, 2000)
OPTIONS = ("--device", "cpu", "--processes", "6", "--placements", "3", "--tolerance", "2%")
_WORKER = Path(__file__).resolve().parents[1] / "tests" / "recorded_worker.py"
_LIMIT_S = 3600
#: Runs one command in this process and says what it took of it, children left out.
_COUNTED = """
import json, resource, sys
from sns_gate.cli import main
code = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print("\\n" + json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def main() -> None:
    """Run a check of each size and keep what it took after each."""
    file = Path(sys.argv[1])
    sizes = [int(text) for text in sys.argv[2:]] or list(CASES)
    kept: dict[str, Any] = {"machine": describe(), "options": OPTIONS, "rows": []}
    for cases in sizes:
        with tempfile.TemporaryDirectory() as folder:
            row = _measured(Path(folder), cases)
        kept["rows"].append(row)
        print(" ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def _measured(folder: Path, cases: int) -> dict[str, float]:
    environment = _lab(folder, cases)
    start_s = time.monotonic()
    check = ("check", *OPTIONS, "--baseline", "HEAD~1", "--python", str(folder / "python"))
    passed = [f"--pass-env={name}" for name in ("RECORDED_CASES", "RECORDED_MHZ")]
    code, cpu_s, peak_mib = _counted(folder, environment, (*check, *passed))
    took_s = time.monotonic() - start_s
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    if code not in (0, 3, 4) or len(result["cases"]) != cases:
        raise SystemExit(f"a check of {cases} cases ended with {code}")
    samples = sum(len(block["sides"]) for case in result["cases"] for block in case["blocks"])
    page = ("report", "result.json", "--html", "page.html", "--quiet")
    _, page_cpu_s, page_mib = _counted(folder, environment, page)
    _, report_cpu_s, _ = _counted(folder, environment, ("report", "result.json", "--quiet"))
    return {
        "cases": cases,
        "seconds": took_s,
        "cpu_s": cpu_s,
        "samples": samples,
        "peak_mib": peak_mib,
        "result_bytes": (folder / "result.json").stat().st_size,
        "report_s": report_cpu_s,
        "page_s": page_cpu_s,
        "page_mib": page_mib,
        "page_bytes": (folder / "page.html").stat().st_size,
    }


def _lab(folder: Path, cases: int) -> dict[str, str]:
    """A repository of two commits, and an interpreter that is a recorded worker."""
    files = {"pkg.py": "", "benchmarks/bench_x.py": "", "mhz": "1500", ".gitignore": "*\n"}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {_WORKER}\n", encoding="utf-8")
    python.chmod(0o755)
    git = ("git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--force", "pkg.py", "benchmarks", ".gitignore"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "a"], check=True)
    (folder / "pkg.py").write_text("changed = 1\n", encoding="utf-8")
    subprocess.run([*git, "commit", "--quiet", "--all", "--message", "b"], check=True)
    (folder / "tmp").mkdir()
    return {
        **os.environ, "RECORDED_CASES": str(cases), "RECORDED_MHZ": str(folder / "mhz"),
        "TMPDIR": str(folder / "tmp"), "SNS_GATE_STATE_DIR": str(folder / "state"),
    }  # fmt: skip


def _counted(
    folder: Path, environment: dict[str, str], arguments: Sequence[str]
) -> tuple[int, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _COUNTED, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False,
    )  # fmt: skip
    last = done.stdout.strip().splitlines()[-1:] or [""]
    try:
        code, cpu_s, peak_mib = json.loads(last[0])
    except ValueError:
        raise SystemExit(f"{arguments[0]} said nothing to count: {done.stderr[-2000:]}") from None
    return int(code), float(cpu_s), float(peak_mib)


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    rows = kept["rows"]
    return [
        "## What a check costs the gate itself\n",
        f"{kept['machine']}. Whole checks against workers that replay at once, "
        f"`{' '.join(kept['options'])}`: CPU time and memory of the gate's own process.\n",
        "| cases | CPU | a case | a sample | peak memory | result file | `report` "
        "| `report --html` | page |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {row['cases']} | {row['cpu_s']:.1f} s | {1e3 * row['cpu_s'] / row['cases']:.0f} ms "
            f"| {1e6 * row['cpu_s'] / row['samples']:.0f} µs | {row['peak_mib']:.0f} MiB "
            f"| {row['result_bytes'] / 1e6:.1f} MB | {row['report_s']:.1f} s "
            f"| {row['page_s']:.1f} s | {row['page_bytes'] / 1e6:.1f} MB |"
            for row in rows
        ),
        "",
        _growth(rows),
    ]


def _growth(rows: Sequence[dict[str, float]]) -> str:
    """How much more the last thousand cases cost than their share of the first thousand."""
    big = [row for row in rows if row["cases"] >= 1000]  # noqa: PLR2004 (where growth would show)
    if len(big) < 2:  # noqa: PLR2004 (two ends)
        return ""
    first, last = big[0], big[-1]
    per = {row["cases"]: row["cpu_s"] / row["cases"] for row in (first, last)}
    share = 100 * (per[last["cases"]] / per[first["cases"]] - 1)
    return (
        f"From {first['cases']:.0f} to {last['cases']:.0f} cases the CPU time a case changes by "
        f"{share:+.0f}%.\n"
    )


if __name__ == "__main__":
    main()
