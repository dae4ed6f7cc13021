"""Both sides on one device: where their code is, how workers start, what they run on."""

from sns_gate.rig.apart import taken_apart, unexplained
from sns_gate.rig.functions import FunctionsRequest, FunctionsRig
from sns_gate.rig.further import FurtherBaseline, further_baselines
from sns_gate.rig.machine import Machine
from sns_gate.rig.mount import CheckRequest, Rig
from sns_gate.rig.policy import settle
from sns_gate.rig.sides import both_revisions
from sns_gate.rig.stations import Start, Station, spread, stations

__all__ = [
    "CheckRequest",
    "FunctionsRequest",
    "FunctionsRig",
    "FurtherBaseline",
    "Machine",
    "Rig",
    "Start",
    "Station",
    "both_revisions",
    "further_baselines",
    "settle",
    "spread",
    "stations",
    "taken_apart",
    "unexplained",
]
