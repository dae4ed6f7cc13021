"""One part of a kernel's work in some 60 more is a slowdown of 1.5%, one in some 300 of 0.3%."""

import torch
import triton  # noqa: F401 (here all workers import it at once, in a set-up one after the other)
import zoo

from sns_gate import benchmark

ROUNDS = {"round": [0, 1, 2, 3, 4]}
KINDS = {"kind": ["memory", "compute", "short"]}
BLOCK = 64


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def memory(parts, elements):
    x, y, out = (randn(parts + 1, elements) for _ in range(3))
    return lambda: zoo.added(x, y, out)


def compute(parts):
    a, b = randn(2048, BLOCK * (parts + 1)), randn(BLOCK * (parts + 1), 2048)
    a[:, -BLOCK:] = 0
    b[-BLOCK:] = 0
    out = randn(2048, 2048)
    return lambda: zoo.contracted(a, b, out, BLOCK)


def short(parts, steps):
    x, out = (randn(128 * 132, dtype=torch.float32) for _ in range(2))
    run = zoo.spun()
    return lambda: run(x, out, parts, steps)


# Of a short kernel and of a matmul a share of the time is not in its parts, so they have fewer.
# With fewer steps a round its rounds are unrolled, and one more of them is another loop.
@benchmark(params={**KINDS, **ROUNDS}, tolerance=0.005)
def seen(kind, round):
    made = {
        "memory": lambda: memory(66, 1 << 19),
        "compute": lambda: compute(61),
        "short": lambda: short(55, 64),
    }
    return made[kind]()


@benchmark(params={**KINDS, **ROUNDS}, tolerance=0.01)
def within(kind, round):
    made = {
        "memory": lambda: memory(333, 1 << 17),
        "compute": lambda: compute(323),
        "short": lambda: short(279, 26),
    }
    return made[kind]()
