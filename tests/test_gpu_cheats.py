"""Candidates that need a GPU to pretend, and their honest twins, on a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import commit, new_repository, sns_gate
from tests.test_gpu_check import gpu_left_to_the_gate

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]
__all__ = ["gpu_left_to_the_gate"]

HONEST = """
    import torch

    def work(x):
        return torch.softmax(x, -1)
"""
CHEATS = {
    "a side stream that nobody waits for": """
        import torch
        side = torch.cuda.Stream()

        def work(x):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                return torch.softmax(x, -1)
    """,
    "a tensor that is computed when it is read": """
        import torch

        class Late(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                plain = [torch.softmax(a.as_subclass(torch.Tensor), -1)
                         if isinstance(a, Late) else a for a in args]
                return func(*plain, **(kwargs or {}))

        def work(x):
            return x.as_subclass(Late)
    """,
    "events that say less": """
        import torch
        real = torch.cuda.Event.elapsed_time
        torch.cuda.Event.elapsed_time = lambda self, other: 0.5 * real(self, other)

        def work(x):
            return torch.softmax(x, -1)
    """,
    "a device that nobody waits for": """
        import torch
        torch.cuda.synchronize = lambda *a, **k: None
        side = torch.cuda.Stream()

        def work(x):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                return torch.softmax(x, -1)
    """,
    "an answer that was kept": """
        import torch
        kept = {}

        def work(x):
            if x.data_ptr() not in kept:
                kept[x.data_ptr()] = torch.softmax(x, -1)
            return kept[x.data_ptr()]
    """,
    "half of the rows": """
        import torch

        def work(x):
            out = torch.empty_like(x)
            torch.softmax(x[: len(x) // 2], -1, out=out[: len(x) // 2])
            return out
    """,
}
TWINS = {
    "a side stream that is waited for": """
        import torch
        side = torch.cuda.Stream()

        def work(x):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                out = torch.softmax(x, -1)
            torch.cuda.current_stream().wait_stream(side)
            return out
    """,
    "a buffer that is written anew": """
        import torch
        kept = {}

        def work(x):
            out = kept.setdefault(x.shape, torch.empty_like(x))
            return torch.softmax(x, -1, out=out)
    """,
    "a nondeterministic sum beside it": """
        import torch

        def work(x):
            total = torch.zeros(1, device=x.device)
            total.index_add_(0, torch.zeros(64, dtype=torch.long, device=x.device), x[0, :64])
            return torch.softmax(x, -1)
    """,
}
#: What these put in the place of ours is not what we use.
WITHOUT_EFFECT = ("events that say less",)


def judged(folder: Path, candidates: dict[str, str]) -> tuple[dict[str, str], str]:
    """Verdicts and output of one check of an honest module a case against these."""
    names = {f"pkg{n}": name for n, name in enumerate(candidates)}
    bench = """
        import torch
        from sns_gate import benchmark
        import {0}

        @benchmark
        def {0}_case(device):
            x = torch.randn(4096, 4096, device=device)
            return lambda: {0}.work(x)
    """
    files = {f"{module}.py": HONEST for module in names}
    files |= {f"benchmarks/bench_{module}.py": bench.format(module) for module in names}
    repository = new_repository(folder / "repo", files)
    commit(repository, {f"{module}.py": candidates[name] for module, name in names.items()})
    ran = sns_gate(
        repository, "check", "--device", "cuda", "--processes", "3", "--placements", "2",
        "--tolerance", "20%", "--baseline", "HEAD~1",
    )  # fmt: skip
    assert ran.result is not None, ran.out + ran.err
    found = {names[id_.partition("_")[0]]: verdict for id_, verdict in ran.verdicts.items()}
    return found, ran.out


@pytest.mark.parametrize("cheat", CHEATS)
def test_who_cheats_on_a_gpu_is_not_faster(tmp_path: Path, cheat: str) -> None:
    found, out = judged(tmp_path, {cheat: CHEATS[cheat]})
    if cheat in WITHOUT_EFFECT:
        assert found[cheat] in ("unchanged", "refused"), out
    else:
        assert found[cheat] in ("wrong", "refused", "broken"), out


def test_who_is_honest_on_a_gpu_is_judged(tmp_path: Path) -> None:
    found, out = judged(tmp_path, TWINS)
    assert len(found) == len(TWINS), out
    assert found["a side stream that is waited for"] in ("unchanged", "slower", "inconclusive")
    assert found["a buffer that is written anew"] in ("unchanged", "faster", "inconclusive")
    assert found["a nondeterministic sum beside it"] in ("unchanged", "slower", "inconclusive")
