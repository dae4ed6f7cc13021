"""Workers that replay recordings of a real H200 through the session, by the worker's protocol."""

from __future__ import annotations

import gzip
import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from sns_gate import protocol
from sns_gate.protocol import Calibrated, OutputWritten, Placed, Released, Reply, Request, Sampled
from sns_gate.session import Standing
from sns_gate.types import CpuEvidence, GpuEvidence, Side

RECORDINGS = Path(__file__).parent / "recordings"
PROCESSES = 4
SETTLED_AFTER = 4
_R = TypeVar("_R", bound=Reply)


@lru_cache
def held_blocks() -> tuple[dict[str, Any], ...]:
    """All blocks of ``h200_alternating_held``."""
    with gzip.open(RECORDINGS / "h200_alternating_held.json.gz") as file:
        return tuple(json.load(file))


@dataclass(frozen=True)
class Recording:
    """One kernel in one batch: the blocks in which each worker took part, by placement."""

    kernel: str
    candidate_kernel: str
    batch: int

    @property
    def case(self) -> str:
        """Its name as a case."""
        return f"{self.kernel}-{self.candidate_kernel}-{self.batch}"

    def samples(self, side: Side, worker: int, placement: int) -> list[list[float]]:
        """What this worker measured at this placement: ms, device MHz, held ns a sample."""
        for block in held_blocks():
            if (block["kernel"], block["candidate_kernel"], block["batch"]) == (
                self.kernel,
                self.candidate_kernel,
                self.batch,
            ) and (block["placement"], block[f"{side}_process"]) == (placement, worker):
                return list(block[side])
        raise KeyError((side, worker, placement))


class RecordedWorker:
    """Answers the session's requests from a recording."""

    def __init__(self, side: Side, index: int, recording: Recording) -> None:
        self.side: Side = side
        self.index = index
        self.name = f"{side} worker {index}"
        self._recording = recording
        self._placed = 0
        self._recorded: list[list[float]] = []
        self._left: list[list[float]] = []
        self._replies: list[Reply] = []

    def send(self, request: Request) -> None:
        """Queue the reply to a request."""
        self._replies.append(self._answer(request))

    def receive(self, expected: type[_R], timeout_s: float) -> _R:
        """The reply to the last request."""
        del timeout_s
        reply = self._replies.pop(0)
        assert isinstance(reply, expected)
        return reply

    def ask(self, request: Request, expected: type[_R], timeout_s: float) -> _R:
        """Send and receive."""
        self.send(request)
        return self.receive(expected, timeout_s)

    def lent(self, folder: Path) -> AbstractContextManager[None]:
        """Recorded workers write nothing."""
        del folder
        return nullcontext()

    def _answer(self, request: Request) -> Reply:
        match request:
            case protocol.Place():
                if request.recipe is not None:
                    # A rotation's placements stand in the recording in their order.
                    placement = self._placed % PROCESSES
                    self._placed += 1
                    self._recorded = self._recording.samples(self.side, self.index, placement)
                    self._left = list(self._recorded)
                return Placed(0.0, 1)
            case protocol.Calibrate():
                call_ns = 1e6 * self._recording.samples(self.side, self.index, 0)[0][0]
                return Calibrated(call_ns, 1e4, hold_expired=False, capturable=None, empty_ns=1.0,
                                  cache_bytes=1, input_bytes=1, warm_ns=call_ns)  # fmt: skip
            case protocol.WriteOutput(stem):
                Path(f"{stem}.json").write_text('{"kind": "float", "text": "1.0"}')
                return OutputWritten(0)
            case protocol.TakeSample():
                if not self._left:  # the session settled for longer than was recorded
                    self._left = self._recorded[SETTLED_AFTER:]
                ms, mhz, held_ns = self._left.pop(0)
                return Sampled(1e6 * ms, mhz, held_ns, wall_ns=0, involuntary=0)
            case protocol.Release():
                return Released(0)
            case _:
                raise AssertionError(request)


class QuietObserver:
    """Evidence of a GPU on which nothing happens."""

    def before(self) -> None:
        """Nothing to read."""

    def after(self) -> tuple[GpuEvidence | None, CpuEvidence | None]:
        """An idle, healthy device."""
        return GpuEvidence(
            nvml_mhz=(1980, 1980), reasons=0, counters_ms={}, other_processes=0
        ), None


class SilentProgress:
    """Hears and says nothing."""

    def block_done(self, case: str, standing: Standing) -> None:
        """A block is done."""
