"""Planted regressions on a real CUDA device: the profile names what was planted."""

from __future__ import annotations

import pytest

from sns_gate.report import inside
from sns_gate.types import Explanation
from tests.conftest import Ran, commit, new_repository, sns_gate
from tests.test_gpu_check import gpu_left_to_the_gate

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]
__all__ = ["gpu_left_to_the_gate"]

PKG = """
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def scale_kernel(x, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)

    BLOCK = 1024

    def scale(x):
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
        return out

    @torch.compile(dynamic=False)
    def fused(x):
        return torch.relu(x * 2.0 + 1.0)

    def twice(x):
        return torch.softmax(x, -1)
"""
BENCH = """
    import torch
    from sns_gate import benchmark
    import pkg

    @benchmark
    def extra_kernel(device):
        x = torch.randn(4096, 4096, device=device)
        return lambda: pkg.twice(x)

    @benchmark
    def slower_configuration(device):
        x = torch.randn(1 << 24, device=device)
        return lambda: pkg.scale(x)

    @benchmark
    def lost_fusion(device):
        x = torch.randn(4096, 4096, device=device)
        return lambda: pkg.fused(x)
"""
SLOWER = (
    PKG.replace("BLOCK = 1024", "BLOCK = 16")
    .replace("return torch.softmax(x, -1)", "return torch.softmax(torch.neg(torch.neg(x)), -1)")
    .replace("    @torch.compile(dynamic=False)\n", "")
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One check of all three, each slower."""
    repository = new_repository(
        tmp_path_factory.mktemp("explain") / "repo",
        {"pkg.py": PKG, "benchmarks/bench_pkg.py": BENCH},
    )
    commit(repository, {"pkg.py": SLOWER})
    return sns_gate(
        repository, "check", "--device", "cuda", "--processes", "3", "--placements", "2",
        "--tolerance", "5%", "--baseline", "HEAD~1",
    )  # fmt: skip


def explained(ran: Ran, case: str) -> tuple[Explanation, str]:
    found = ran.case(case)
    assert found.verdict.value == "slower", ran.out + ran.err
    assert found.explanation is not None, ran.out
    assert found.explanation.candidate.source == "kernels"
    return found.explanation, inside.sentence(found.explanation)


def test_an_extra_kernel_is_named_and_counted(ran: Ran) -> None:
    found, said = explained(ran, "extra_kernel")
    assert "neg" in said, said
    assert "new" in said, said
    assert inside.launches(found) == "3 kernels a call, the baseline 1 kernel"


def test_a_slower_configuration_of_one_kernel_is_that_kernel(ran: Ran) -> None:
    found, said = explained(ran, "slower_configuration")
    assert said.endswith("are in scale_kernel (slower)"), said
    assert inside.launches(found) == "1 kernel a call"


def test_a_lost_fusion_is_a_kernel_gone_and_several_new(ran: Ran) -> None:
    found, said = explained(ran, "lost_fusion")
    rows = {row.name: row.how for row in inside.changes(found)}
    assert any("triton" in name and how == "gone" for name, how in rows.items()), rows
    assert sum(how == "new" for how in rows.values()) >= 2
    assert "new" in said
