"""Kernels under study; a candidate revision plants its slowdown by ``EXTRA`` alone."""

import functools

import torch

#: Further parts of work in a planted benchmark, beside those that both revisions do.
EXTRA = 0

softmax = torch.softmax
layer_norm = torch.nn.functional.layer_norm
attention = torch.nn.functional.scaled_dot_product_attention


def add(x, y, out):
    return torch.add(x, y, out=out)


def matmul(a, b, out):
    return torch.matmul(a, b, out=out)


def transpose(x):
    return x.t().contiguous()


def mlp(x, up, down):
    return torch.nn.functional.gelu(x @ up) @ down


@functools.cache
def compiled():
    """A fused residual, tuned to the most."""

    def block(x, weight):
        return torch.nn.functional.silu(x @ weight) * x + x

    return torch.compile(block, mode="max-autotune-no-cudagraphs")


@functools.cache
def autotuned():
    """A scaled sum that triton's own autotuner shapes."""
    import triton
    import triton.language as tl

    configs = [
        triton.Config({"BLOCK": block}, num_warps=warps)
        for block in (1024, 2048, 4096)
        for warps in (4, 8)
    ]

    @triton.autotune(configs=configs, key=["n"])
    @triton.jit
    def axpy(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

    def run(x, y, out):
        n = x.numel()
        axpy[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
        return out

    return run


def added(x, y, out):
    """All rows but the last one, and the planted one."""
    rows = len(x) - 1 + EXTRA
    torch.add(x[:rows], y[:rows], out=out[:rows])
    return out[:-1]


def contracted(a, b, out, block):
    """Over all columns but the last block, which is of zeros, and the planted one."""
    inner = len(b) - block + block * EXTRA
    return torch.matmul(a[:, :inner], b[:inner], out=out)


@functools.cache
def spun():
    """Rounds of a chain of multiplications by one, each waiting for the last, and planted ones."""
    import triton
    import triton.language as tl

    @triton.jit
    def spin(x, out, one, zero, rounds, STEPS: tl.constexpr):
        at = tl.program_id(0) * 128 + tl.arange(0, 128)
        value = tl.load(x + at)
        for _ in range(rounds):
            for _ in tl.static_range(STEPS):
                value = value * one + zero
        tl.store(out + at, value)

    def run(x, out, rounds, steps):
        spin[(x.numel() // 128,)](x, out, 1.0, 0.0, rounds + EXTRA, STEPS=steps)
        return out

    return run
