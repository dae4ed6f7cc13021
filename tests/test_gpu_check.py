"""Whole checks on a real CUDA device; nothing here runs without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import commit, new_repository, sns_gate

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def gpu_left_to_the_gate() -> None:
    """A context of the test process itself would rightly be seen as another process's."""
    torch = sys.modules.get("torch")
    assert torch is None or not torch.cuda.is_initialized(), (
        "run this file before the timers' tests"
    )


BENCH = """
    import torch
    from sns_gate import benchmark
    import pkg

    @benchmark
    def compiled(device):
        x = torch.randn(4096, 4096, device=device)
        return lambda: pkg.compiled(x)

    @benchmark
    def waits(device):
        x = torch.randn(2048, 2048, device=device)
        return lambda: pkg.scale(x).sum().item()

    @benchmark
    def too_large(device):
        x = torch.empty(1 << 50, dtype=torch.uint8, device=device)
        return lambda: pkg.scale(x)

    @benchmark
    def crashes(device):
        index = torch.tensor([10**6], device=device)
        x = torch.randn(16, device=device)
        return lambda: pkg.scale(x)[index]

    @benchmark
    def last(device):
        x = torch.randn(4096, 4096, device=device)
        return lambda: pkg.scale(x)
"""
PKG = """
    import torch

    def scale(x):
        return x * 2

    @torch.compile
    def compiled(x):
        return torch.relu(x * 2 + 1)
"""


def test_compiled_waiting_greedy_and_crashing_cases_each_end_rightly(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "r", {"pkg.py": PKG, "benchmarks/bench_gpu.py": BENCH})
    commit(repository, {"README": "the same code"})
    ran = sns_gate(
        repository, "check", "--baseline", "HEAD~1", "--processes", "3", "--tolerance", "10%"
    )
    verdicts = ran.verdicts
    # A call that waits for the device has the host's time in it: wide is honest, slower is not.
    assert verdicts.pop("waits") in ("unchanged", "inconclusive"), ran.out
    assert verdicts == {
        "compiled": "unchanged", "too_large": "broken", "crashes": "broken", "last": "unchanged",
    }, ran.out  # fmt: skip
    assert ran.code == 3
    assert ran.case("too_large").reasons[0].code == "out-of-memory"
    assert "queue-not-held" in [reason.code for reason in ran.case("waits").reasons]
    last = ran.case("last")
    assert (last.tier.value, last.evidence.clock_source) == ("B", "device")
    assert last.blocks[0].gpu is not None
    assert last.blocks[0].gpu.other_processes == 0


def test_the_demos_planted_changes_are_seen(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    result = tmp_path / "result.json"
    command = [sys.executable, "examples/demo.py", "--device", "gpu", "--json", str(result)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = {case["id"]: case for case in json.loads(result.read_text())["cases"]}
    for name in ("add", "scale", "matmul_inner"):
        assert cases[name]["speedup"]["estimate"] == pytest.approx(1 / 1.03, abs=0.008)
