"""The specification's own ``compare``, rebuilt from its description for studies to set beside ours.

The candidate first, then the baseline: 200 warm-ups and 30 flushed samples each, the ratio's
interval a bootstrap over samples. It stands for what is measured, not for what should be.
"""

from __future__ import annotations

from collections.abc import Callable

from sns_gate.stats import percentile, ratio_ci
from sns_gate.timing import DEFAULT_WARMUP, MIN_ITERS

_FLUSH_BYTES = 256 << 20


def sequential_compare(
    candidate: Callable[[], object], baseline: Callable[[], object]
) -> tuple[float, float, float]:
    """Speedup baseline / candidate with its interval: (estimate, low, high)."""
    candidate_ms, baseline_ms = _samples_ms(candidate), _samples_ms(baseline)
    low, high = ratio_ci(candidate_ms, baseline_ms)
    return percentile(baseline_ms, 0.5) / percentile(candidate_ms, 0.5), low, high


def _samples_ms(fn: Callable[[], object]) -> list[float]:
    import torch

    scratch = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(DEFAULT_WARMUP):
        fn()
    torch.cuda.synchronize()
    events = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(MIN_ITERS)
    ]
    for begin, end in events:
        scratch.zero_()
        begin.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [float(begin.elapsed_time(end)) for begin, end in events]
