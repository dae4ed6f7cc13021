"""One line that says on what a study ran."""

from __future__ import annotations

import subprocess
import sys


def describe() -> str:
    """GPU, driver, toolchain and date, read by another process.

    This one must not hold the GPU while a check runs, which would rightly refuse to judge.
    """
    done = subprocess.run(
        [sys.executable, "-m", "studies.machine"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _described() -> str:
    from datetime import UTC, datetime

    from sns_gate.env import capture_fingerprint

    found = capture_fingerprint()
    parts = (
        found.gpu_name or found.cpu_model,
        found.driver_version and f"driver {found.driver_version}",
        found.torch_version and f"torch {found.torch_version}",
        found.triton_version and f"triton {found.triton_version}",
        f"{datetime.now(UTC):%Y-%m-%d}",
    )
    return ", ".join(part for part in parts if part)


if __name__ == "__main__":
    print(_described())
