import gpukit
import torch

from sns_gate import benchmark

ROOM = gpukit.ELEMENTS * 21 // 20
BF16 = torch.bfloat16


@benchmark
def add(device):
    x, y, out = (torch.randn(ROOM, device=device, dtype=BF16) for _ in range(3))
    return lambda: gpukit.add(x, y, out)


@benchmark(params={"n": [4096]})
def softmax(n, device):
    x = torch.randn(n, n, device=device, dtype=BF16)
    return lambda: gpukit.softmax(x)


@benchmark(params={"n": [2048, 4096, 8192]})
def matmul(n, device):
    a, b = (torch.randn(n, n, device=device, dtype=BF16) for _ in range(2))
    return lambda: gpukit.matmul(a, b)


@benchmark
def matmul_inner(device):
    a = torch.randn(4096, 4352, device=device, dtype=BF16)
    b = torch.randn(4352, 4096, device=device, dtype=BF16)
    b[4096:] = 0  # so that a longer sum is the same one
    return lambda: gpukit.matmul_inner(a, b)


@benchmark(params={"rows": [512]})
def layer_norm(rows, device):
    x = torch.randn(rows, 1024, device=device, dtype=BF16)
    weight, bias = (torch.randn(1024, device=device, dtype=BF16) for _ in range(2))
    return lambda: gpukit.layer_norm(x, weight, bias)


@benchmark(params={"length": [2048]})
def attention(length, device):
    q, k, v = (torch.randn(4, 16, length, 128, device=device, dtype=BF16) for _ in range(3))
    return lambda: gpukit.attention(q, k, v)


@benchmark
def mlp(device):
    x = torch.randn(2048, 4096, device=device, dtype=BF16)
    up = torch.randn(4096, 11008, device=device, dtype=BF16)
    down = torch.randn(11008, 4096, device=device, dtype=BF16)
    return lambda: gpukit.mlp(x, up, down)


@benchmark
def scale(device):
    x, out = (torch.randn(ROOM, device=device, dtype=BF16) for _ in range(2))
    return lambda: gpukit.scale(x, out)


@benchmark
def axpy(device):
    x, y, out = (torch.randn(ROOM, device=device, dtype=BF16) for _ in range(3))
    return lambda: gpukit.axpy(x, y, out)
