"""How a case is measured: recipe, blocks, rotation, stopping; it starts no process."""

from sns_gate.session.blocks import Observer, Worker
from sns_gate.session.deadlines import Deadlines
from sns_gate.session.explaining import explain_case, with_explanation
from sns_gate.session.ledger import Ledger
from sns_gate.session.measuring import (
    BrokenCase,
    CaseRun,
    Measured,
    Progress,
    Standing,
    broken_by,
    measure_case,
)
from sns_gate.session.roster import PlannedCase, Policy, Roster, agree, outputs_asked
from sns_gate.session.summary import (
    CaseOutcome,
    Expected,
    confirmed,
    refuse_code,
    refuse_unlike,
    summarise,
    unconfirmed,
    without_place,
)

__all__ = [
    "BrokenCase",
    "CaseOutcome",
    "CaseRun",
    "Deadlines",
    "Expected",
    "Ledger",
    "Measured",
    "Observer",
    "PlannedCase",
    "Policy",
    "Progress",
    "Roster",
    "Standing",
    "Worker",
    "agree",
    "broken_by",
    "confirmed",
    "explain_case",
    "measure_case",
    "outputs_asked",
    "refuse_code",
    "refuse_unlike",
    "summarise",
    "unconfirmed",
    "with_explanation",
    "without_place",
]
