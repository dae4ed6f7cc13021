"""GitHub: what happened there, and telling people there what a check found."""

from sns_gate.github.acceptance import find_accepted
from sns_gate.github.client import Client
from sns_gate.github.event import Event, Target, read_event
from sns_gate.github.post import Posted, Wanted, post
from sns_gate.github.pulls import locate

__all__ = [
    "Client",
    "Event",
    "Posted",
    "Target",
    "Wanted",
    "find_accepted",
    "locate",
    "post",
    "read_event",
]
