"""What a check says, as frozen data that any renderer can work from."""

from sns_gate.types.bisection import Bisection, Fate, Found, Tried
from sns_gate.types.blocks import Block, CaseEvidence, CpuEvidence, GpuEvidence
from sns_gate.types.profile import Explanation, Profile, ProfiledPart, ProfileSource
from sns_gate.types.result import (
    CHECKED,
    MORE_MEMORY,
    UNCONFIRMED,
    Acceptance,
    CaseResult,
    GateResult,
    MachineInfo,
    Measurement,
    OutputCheck,
    RevisionInfo,
    Speedup,
)
from sns_gate.types.timings import ComparisonResult, EnvironmentFingerprint, TimingResult
from sns_gate.types.words import (
    SIDES,
    Conclusion,
    MeasurementTier,
    Outcome,
    Reason,
    Record,
    Side,
    Verdict,
)

__all__ = [
    "CHECKED",
    "MORE_MEMORY",
    "SIDES",
    "UNCONFIRMED",
    "Acceptance",
    "Bisection",
    "Block",
    "CaseEvidence",
    "CaseResult",
    "ComparisonResult",
    "Conclusion",
    "CpuEvidence",
    "EnvironmentFingerprint",
    "Explanation",
    "Fate",
    "Found",
    "GateResult",
    "GpuEvidence",
    "MachineInfo",
    "Measurement",
    "MeasurementTier",
    "Outcome",
    "OutputCheck",
    "Profile",
    "ProfileSource",
    "ProfiledPart",
    "Reason",
    "Record",
    "RevisionInfo",
    "Side",
    "Speedup",
    "TimingResult",
    "Tried",
    "Verdict",
]
