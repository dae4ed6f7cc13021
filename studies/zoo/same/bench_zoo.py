import torch
import zoo

from sns_gate import benchmark

BF16 = torch.bfloat16
ROUNDS = {"round": [0, 1, 2]}


def randn(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


@benchmark(params=ROUNDS)
def add(round):
    x, y, out = (randn(64 << 20) for _ in range(3))
    return lambda: zoo.add(x, y, out)


@benchmark(params=ROUNDS)
def softmax(round):
    x = randn(4096, 4096)
    return lambda: zoo.softmax(x, -1)


@benchmark(params=ROUNDS)
def layer_norm(round):
    x, weight, bias = randn(512, 1024), randn(1024), randn(1024)
    return lambda: zoo.layer_norm(x, (1024,), weight, bias)


@benchmark(params={"n": [1024, 2048, 4096, 8192], **ROUNDS})
def matmul(n, round):
    a, b, out = (randn(n, n) for _ in range(3))
    return lambda: zoo.matmul(a, b, out)


@benchmark(params=ROUNDS)
def attention(round):
    q, k, v = (randn(4, 16, 2048, 128) for _ in range(3))
    return lambda: zoo.attention(q, k, v, is_causal=True)


@benchmark(params=ROUNDS)
def mlp(round):
    x, up, down = randn(2048, 4096), randn(4096, 11008), randn(11008, 4096)
    return lambda: zoo.mlp(x, up, down)


@benchmark(params=ROUNDS)
def transpose(round):
    x = randn(8192, 8192)
    return lambda: zoo.transpose(x)


@benchmark(params=ROUNDS)
def batched(round):
    a, b, out = (randn(512, 256, 256) for _ in range(3))
    return lambda: zoo.matmul(a, b, out)


@benchmark(params=ROUNDS)
def autotuned(round):
    x, y, out = (randn(16 << 20) for _ in range(3))
    run = zoo.autotuned()
    return lambda: run(x, y, out)


@benchmark(params=ROUNDS)
def compiled(round):
    x, weight = randn(2048, 2048), randn(2048, 2048)
    run = zoo.compiled()
    return lambda: run(x, weight)
