"""Samples as they were taken, with the evidence beside them."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from sns_gate.types.words import Record, Side


class GpuEvidence(Record):
    """What NVML said around one block."""

    nvml_mhz: tuple[int, int] = Field(description="SM clock before and after, up to 100 ms old")
    reasons: int = Field(description="clock event reason bits seen before or after")
    counters_ms: dict[str, float] = Field(description="advance of each cumulative event counter")
    power_w: float | None = Field(None, description="drawn, after the block")
    temperature_c: int | None = Field(None, description="after the block")
    other_processes: int | None = Field(None, description="null: could not be listed")


class CpuEvidence(Record):
    """What the kernel said around one block."""

    steal_pct: float = Field(description="share of CPU time that the hypervisor took")
    throttled_ms: float = Field(description="time the cgroup's quota stopped us")
    pressure_ms: float | None = Field(None, description="time somebody waited for a CPU")
    other_load_pct: float | None = Field(None, description="CPU use of others, of one core")
    involuntary_switches: int = Field(description="workers' involuntary context switches")


class Block(Record):
    """One baseline worker against one candidate worker at one placement, in time order.

    ``sides``, ``ms``, ``device_mhz`` and ``held_us`` have one entry a sample; the first
    ``settling`` samples are recorded but do not count.
    """

    placement: int = Field(description="its number; more than a rotation has are later rotations")
    baseline_worker: int = Field(description="its number on its side")
    candidate_worker: int = Field(description="likewise")
    settling: int = Field(description="samples at the start that do not count")
    sides: str = Field(description="one letter a sample, b for baseline, c for candidate")
    ms: tuple[float, ...] = Field(description="time a call, milliseconds")
    device_mhz: tuple[float | None, ...] = Field(description="the device's own clock behind it")
    held_us: tuple[float | None, ...] = Field(description="how long the queue was held")
    wall_us: tuple[float, ...] = Field(
        (), description="how long the worker's answer took to come, by the gate's own clock"
    )
    late_us: tuple[float, float] | None = Field(
        None, description="median time the device was busy after the last region, a side"
    )
    log_speedup: float = Field(description="median over pairs of log(baseline / candidate)")
    placing_s: float = Field(0.0, description="seconds to set up, warm up and free both sides")
    settling_s: float = Field(0.0, description="seconds until the counted samples began")
    sampling_s: float = Field(0.0, description="seconds of the counted samples")
    gpu: GpuEvidence | None = Field(None, description="null on the CPU, or where NVML is silent")
    cpu: CpuEvidence | None = Field(None, description="null where it was not read")

    def counted(self, side: Side) -> tuple[float, ...]:
        """The times of one side's samples that count, in time order, milliseconds."""
        return tuple(self.ms[i] for i in self._counted(side))

    def pair_logs(self) -> tuple[float, ...]:
        """log(baseline / candidate) of each counted pair, in time order."""
        pairs = zip(self.counted("baseline"), self.counted("candidate"), strict=True)
        return tuple(math.log(b / c) for b, c in pairs)

    def clocks(self, side: Side) -> tuple[float, ...]:
        """The device clocks read behind one side's counted samples, MHz, in time order."""
        values = (self.device_mhz[i] for i in self._counted(side))
        return tuple(value for value in values if value is not None)

    def _counted(self, side: Side) -> list[int]:
        return [i for i in range(self.settling, len(self.sides)) if self.sides[i] == side[0]]

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        columns = (self.ms, self.device_mhz, self.held_us, self.wall_us or self.sides)
        if any(len(column) != len(self.sides) for column in columns):
            raise ValueError("a block's columns must have one entry a sample")
        return self


class CaseEvidence(Record):
    """A case's evidence over all its blocks."""

    clock_source: Literal["device", "none"] = Field(description="none: no clock can be read")
    clock_mean_mhz: float | None = Field(None, description="of all counted samples")
    clock_cv_pct: float | None = Field(
        None, description="worse side's root mean square of the variation inside blocks"
    )
    clock_range_mhz: float | None = Field(None, description="of means of 8 consecutive readings")
    reasons: tuple[str, ...] = Field((), description="clock event reasons seen, by name")
    counters_ms: dict[str, float] = Field(
        default_factory=dict, description="advance of each event counter over all blocks"
    )
    steal_pct: float | None = Field(None, description="share of CPU time the hypervisor took")
    throttled_ms: float | None = Field(None, description="time the quota stopped us")
