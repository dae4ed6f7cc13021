"""Captures calls in a CUDA graph, and puts right what torch leaves of a capture that failed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from sns_gate.timers.base import Call

#: Closes a graph's pool in torch's allocator, by its present and by its former name.
_CLOSE_POOL = ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool")


def capture(torch: Any, calls: Sequence[Call]) -> Any:  # noqa: ANN401 (torch is the user's)
    """Capture these calls in one graph, in their order.

    After a capture that failed, torch (2.11: ``CUDAGraph::capture_end``) stays on its stream, keeps
    the graph's pool open, so that no cache is emptied any more, and takes the generator for one at
    work in a graph, so that every further random number raises. All of this is undone.

    Raises:
        RuntimeError: a call cannot be captured, because it waits for the device for instance.
        Exception: whatever else a call raises.
    """
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    try:
        _capture(torch, graph, pool, calls)
    except BaseException:
        with contextlib.suppress(RuntimeError):
            _mend(torch, pool)
        raise
    return graph


def _capture(torch: Any, graph: object, pool: object, calls: Sequence[Call]) -> None:  # noqa: ANN401
    # The outer context goes back to the stream also where the inner one raises as it ends.
    with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph, pool=pool):
        for call in calls:
            call()


def _mend(torch: Any, pool: object) -> None:  # noqa: ANN401
    with contextlib.suppress(RuntimeError):  # the error that is left behind
        torch.cuda.synchronize()
    library, device = torch._C, torch.cuda.current_device()  # noqa: SLF001 (there is no other way)
    for close in (getattr(library, name) for name in _CLOSE_POOL if hasattr(library, name)):
        with contextlib.suppress(RuntimeError):  # not open: a call raised, but the capture ended
            close(device, pool)
            library._cuda_releasePool(device, pool)  # noqa: SLF001
    # The end of one that succeeds is what gives the generator back.
    word = torch.empty(1, device="cuda")
    _capture(torch, torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle(), [word.zero_])
