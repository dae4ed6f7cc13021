"""Clock policies: pinning one GPU's clocks, proving it, and always giving them back."""

from sns_gate.clocks.journal import ClockJournal, journals
from sns_gate.clocks.policies import (
    ClockPolicy,
    Confirming,
    LockedClockPolicy,
    UnlockedClockPolicy,
)
from sns_gate.clocks.undo import undo
from sns_gate.clocks.writer import HELPER, ClockWriter, writer_for
from sns_gate.config import DEFAULT_STATE_DIR
from sns_gate.errors import ClockLockError
from sns_gate.tiers import assign_tier

__all__ = [
    "DEFAULT_STATE_DIR",
    "HELPER",
    "ClockJournal",
    "ClockLockError",
    "ClockPolicy",
    "ClockWriter",
    "Confirming",
    "LockedClockPolicy",
    "UnlockedClockPolicy",
    "assign_tier",
    "journals",
    "undo",
    "writer_for",
]
