"""Builds a small repository with planted changes, gates it, and checks that each was seen.

Run by ``make demo``: on the GPU if there is one, else on the CPU. Leaves ``result.json``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "demo"
CPU_TOLERANCE = "10%"
#: Half of the 3% that are planted.
GPU_TOLERANCE = "1.5%"
#: What the candidate really does, case by case.
PLANTED = {
    "cpu": {
        "checksum[kib=64]": "unchanged",
        "count_words[count=500]": "unchanged",
        "count_words[count=4000]": "unchanged",
        "squeeze[count=2000]": "slower",
        "longest[count=1000]": "faster",
        "initials[count=1000]": "wrong",
    },
    "gpu": {
        "add": "slower",
        "softmax[n=4096]": "unchanged",
        "matmul[n=2048]": "unchanged",
        "matmul[n=4096]": "unchanged",
        "matmul[n=8192]": "unchanged",
        "matmul_inner": "slower",
        "layer_norm[rows=512]": "unchanged",
        "attention[length=2048]": "unchanged",
        "mlp": "faster",
        "scale": "slower",
        "axpy": "unchanged",
    },
}


def main() -> int:
    """Build, gate, compare with what was planted; 0 where every verdict is the planted one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default="result.json", metavar="FILE", help="result file")
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto")
    options, further = parser.parse_known_args()
    device = options.device
    if device == "auto":
        device = "gpu" if shutil.which("nvidia-smi") else "cpu"
    result = Path(options.json).absolute()
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        repository = Path(folder)
        build_repository(repository)
        code = gate(repository, device, result, further)
    print(f"\nsns-gate check ended with exit code {code}; its result is in {options.json}")
    return compare(result, PLANTED[device])


def build_repository(folder: Path) -> None:
    """A repository of two commits: the baseline, and the candidate with its planted changes."""
    git = ["git", "-C", str(folder), "-c", "user.name=demo", "-c", "user.email=demo@example.org",
           "-c", "commit.gpgsign=false"]  # fmt: skip
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    for name in ("baseline", "candidate"):
        shutil.copytree(HERE / name, folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", name], check=True)


def gate(repository: Path, device: str, result: Path, further: list[str]) -> int:
    """Run ``sns-gate check`` as a user would, and show the command."""
    options = ["check", "--baseline", "HEAD~1", "--benchmarks", f"benchmarks/{device}"]
    if device == "cpu":
        options += ["--device", "cpu", "--tolerance", CPU_TOLERANCE]
    else:
        options += ["--tolerance", GPU_TOLERANCE]
    options += [*further, "--json", str(result)]
    print(f"$ sns-gate {' '.join(options)}", flush=True)
    command = [sys.executable, "-m", "sns_gate", *options]
    return subprocess.run(command, cwd=repository, check=False).returncode


def compare(result: Path, planted: dict[str, str]) -> int:
    """Hold the verdicts against what was planted; 0 where they agree."""
    cases = json.loads(result.read_text(encoding="utf-8"))["cases"]
    found = {case["id"]: case["verdict"] for case in cases}
    for case in sorted(planted.keys() | found.keys()):
        if planted.get(case) != found.get(case):
            print(f"{case}: planted {planted.get(case)}, but the gate says {found.get(case)}")
    agree = found == planted
    print(f"Every verdict is the planted one: {'yes' if agree else 'NO'}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
