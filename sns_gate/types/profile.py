"""What runs inside a call, as a profiler saw it; its times are no part of any estimate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sns_gate.types.words import Record

ProfileSource = Literal["kernels", "operators", "functions"]


class ProfiledPart(Record):
    """A kernel, operator or function inside one call."""

    name: str = Field(description="as the profiler has it")
    calls: float = Field(description="of it, in one call of the case")
    us: float = Field(description="its own time in one call of the case, microseconds")


class Profile(Record):
    """One side's call, taken apart; profiling itself makes it slower."""

    source: ProfileSource = Field(description="kernels on a GPU; operators or functions on the CPU")
    parts: tuple[ProfiledPart, ...] = Field(description="the longest first")
    outside_us: float = Field(
        description="of a call outside of all parts: gaps between kernels, or the host's own work"
    )
    launches: tuple[int, ...] = Field((), description="kernels in each profiled call")
    choices: tuple[str, ...] = Field((), description="configurations that autotuners settled on")


class Explanation(Record):
    """Both sides' calls, taken apart in the same way."""

    baseline: Profile
    candidate: Profile
