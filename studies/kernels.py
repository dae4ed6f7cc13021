"""The kernels that the studies time: set-ups under ``build``, by the names of the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tensors = tuple[Any, ...]


def _randn(*shape: int) -> Any:  # noqa: ANN401 (torch is imported by those who use it alone)
    import torch

    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def _add() -> Tensors:
    return _randn(64 << 20), _randn(64 << 20), _randn(64 << 20)


def _square(n: int) -> Callable[[], Tensors]:
    return lambda: (_randn(n, n), _randn(n, n), _randn(n, n))


def _run_add(x: Any, y: Any, out: Any) -> object:  # noqa: ANN401
    import torch

    return torch.add(x, y, out=out)


def _run_matmul(a: Any, b: Any, out: Any) -> object:  # noqa: ANN401
    import torch

    return torch.matmul(a, b, out=out)


def _run_softmax(x: Any) -> object:  # noqa: ANN401
    import torch

    return torch.softmax(x, -1)


def _run_layer_norm(x: Any, weight: Any, bias: Any) -> object:  # noqa: ANN401
    import torch

    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias)


def _run_attention(q: Any, k: Any, v: Any) -> object:  # noqa: ANN401
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _run_mlp(x: Any, up: Any, down: Any) -> object:  # noqa: ANN401
    import torch

    return torch.nn.functional.gelu(x @ up) @ down


#: Name: the set-up, and what is called with what it returns.
KERNELS: dict[str, tuple[Callable[[], Tensors], Callable[..., object]]] = {
    "add 64 Mi": (_add, _run_add),
    "softmax 4096²": (lambda: (_randn(4096, 4096),), _run_softmax),
    "layer norm 512 by 1024": (
        lambda: (_randn(512, 1024), _randn(1024), _randn(1024)),
        _run_layer_norm,
    ),
    "matmul 1024": (_square(1024), _run_matmul),
    "matmul 2048": (_square(2048), _run_matmul),
    "matmul 4096": (_square(4096), _run_matmul),
    "attention 2048": (lambda: tuple(_randn(4, 16, 2048, 128) for _ in range(3)), _run_attention),
    "MLP": (
        lambda: (_randn(2048, 4096), _randn(4096, 11008), _randn(11008, 4096)),
        _run_mlp,
    ),
}
