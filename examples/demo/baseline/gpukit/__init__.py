"""GPU kernels: some of torch's, some in Triton."""

import torch
import triton
import triton.language as tl

#: Elements that each call works through, of buffers that hold more.
ELEMENTS = 64 * 1024 * 1024
INNER = 4096


def add(x, y, out):
    return torch.add(x[:ELEMENTS], y[:ELEMENTS], out=out[:ELEMENTS])


def softmax(x):
    return torch.softmax(x, dim=-1)


def matmul(a, b):
    return a @ b


def matmul_inner(a, b):
    return a[:, :INNER] @ b[:INNER, :]


def layer_norm(x, weight, bias):
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def mlp(x, up, down):
    hidden = (x @ up).float()
    return torch.nn.functional.gelu(hidden).to(x.dtype) @ down


@triton.jit
def _scale_kernel(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) * 1.5, mask=mask)


def scale(x, out):
    _scale_kernel[(triton.cdiv(ELEMENTS, 1024),)](x, out, ELEMENTS, BLOCK=1024)
    return out[:ELEMENTS]


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (512, 1024, 4096) for w in (4, 8)],
    key=["n"],
)
@triton.jit
def _axpy_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) * 0.5 + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)


def axpy(x, y, out):
    _axpy_kernel[lambda meta: (triton.cdiv(ELEMENTS, meta["BLOCK"]),)](x, y, out, ELEMENTS)
    return out[:ELEMENTS]
