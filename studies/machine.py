"""One line that says on what a study ran."""

from __future__ import annotations

from datetime import UTC, datetime


def describe() -> str:
    """GPU, driver, toolchain and date of this process."""
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
