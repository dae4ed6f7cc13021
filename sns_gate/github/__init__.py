"""GitHub: what happened there, and telling people there what a check found."""

from sns_gate.github.acceptance import find_accepted
from sns_gate.github.binding import require_bound
from sns_gate.github.client import Client
from sns_gate.github.event import Event, Target, read_event
from sns_gate.github.marker import is_name
from sns_gate.github.message import Message, of_no_result, of_result
from sns_gate.github.post import Posted, Wanted, post
from sns_gate.github.pulls import locate

__all__ = [
    "Client",
    "Event",
    "Message",
    "Posted",
    "Target",
    "Wanted",
    "find_accepted",
    "is_name",
    "locate",
    "of_no_result",
    "of_result",
    "post",
    "read_event",
    "require_bound",
]
