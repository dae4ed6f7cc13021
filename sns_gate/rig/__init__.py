"""Both sides on one device: where their code is, how workers start, what they run on."""

from sns_gate.rig.functions import FunctionsRequest, FunctionsRig
from sns_gate.rig.further import FurtherBaseline, further_baselines
from sns_gate.rig.here import Here, require_here, unexplained
from sns_gate.rig.machine import Machine
from sns_gate.rig.mount import CheckRequest, Rig
from sns_gate.rig.policy import settle
from sns_gate.rig.sides import both_revisions
from sns_gate.rig.stations import (
    Infos,
    Places,
    Stage,
    Station,
    Team,
    all_at_once,
    refuse_unlike,
    spread,
)

__all__ = [
    "CheckRequest",
    "FunctionsRequest",
    "FunctionsRig",
    "FurtherBaseline",
    "Here",
    "Infos",
    "Machine",
    "Places",
    "Rig",
    "Stage",
    "Station",
    "Team",
    "all_at_once",
    "both_revisions",
    "further_baselines",
    "refuse_unlike",
    "require_here",
    "settle",
    "spread",
    "unexplained",
]
