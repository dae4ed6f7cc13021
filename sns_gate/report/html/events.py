"""What happened around a block besides the work: clock events, throttling, switches."""

from __future__ import annotations

from collections.abc import Iterator

from sns_gate.tiers import reason_names
from sns_gate.types import Block, CpuEvidence, GpuEvidence, Record

#: NVML's counters by the names that results have; a name from elsewhere is not repeated.
_COUNTERS = {
    "sw_power_cap": "software power cap",
    "sync_boost": "sync boost",
    "sw_thermal": "software thermal slowdown",
    "hw_thermal": "hardware thermal slowdown",
    "power_brake": "hardware power brake",
}
_OTHER = "other counter"


class Happening(Record):
    """One kind of event around one block.

    Attributes:
        kind: what it is, the same words for every block.
        amount: how much, above 0, in the kind's own unit; null where there is no amount.
        text: both, for a reader.
    """

    kind: str
    amount: float | None
    text: str


def happenings(block: Block) -> tuple[Happening, ...]:
    """What happened around a block, empty where nothing did."""
    return (
        *(_of_gpu(block.gpu) if block.gpu else ()),
        *(_of_cpu(block.cpu) if block.cpu else ()),
    )


def _of_gpu(gpu: GpuEvidence) -> Iterator[Happening]:
    for name in reason_names(gpu.reasons):
        yield Happening(kind=name, amount=None, text=name)
    for counter, advanced_ms in gpu.counters_ms.items():
        if advanced_ms > 0:
            name = _COUNTERS.get(counter, _OTHER)
            yield _happening(f"{name}, counted", advanced_ms, f"{advanced_ms:.1f} ms")
    if gpu.other_processes:
        yield _happening("other processes", gpu.other_processes, f"{gpu.other_processes}")


def _of_cpu(cpu: CpuEvidence) -> Iterator[Happening]:
    amounts = (
        ("time stolen", cpu.steal_pct, f"{cpu.steal_pct:.1f}%"),
        ("throttled by quota", cpu.throttled_ms, f"{cpu.throttled_ms:.1f} ms"),
        ("involuntary switches", cpu.involuntary_switches, f"{cpu.involuntary_switches}"),
    )
    for kind, amount, text in amounts:
        if amount > 0:
            yield _happening(kind, amount, text)
    if cpu.pressure_ms is not None and cpu.pressure_ms > 0:
        yield _happening("waits for a CPU", cpu.pressure_ms, f"{cpu.pressure_ms:.1f} ms")
    if cpu.other_load_pct is not None and cpu.other_load_pct > 0:
        yield _happening("load of others", cpu.other_load_pct, f"{cpu.other_load_pct:.0f}%")


def _happening(kind: str, amount: float, text: str) -> Happening:
    return Happening(kind=kind, amount=round(amount, 3), text=f"{kind} {text}")
