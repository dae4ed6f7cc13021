"""Work that loads a GPU as heavy kernels do, for trying clocks; it needs torch."""

from __future__ import annotations

from collections.abc import Callable

_SIZE = 4096


def multiply(device: str) -> Callable[[], object]:
    """Set up a large product of half-precision matrices, which draws as much power as any work."""
    import torch

    x = torch.randn(_SIZE, _SIZE, device=device, dtype=torch.float16)
    return lambda: x @ x
