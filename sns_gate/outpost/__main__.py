"""The process that a launcher starts: it measures for a coordinator at its standard streams."""

from __future__ import annotations

import os
import signal
import sys

from sns_gate.errors import Terminated
from sns_gate.outpost.channel import Channel
from sns_gate.outpost.far import FarEnd
from sns_gate.revisions import scratch_folder
from sns_gate.signals import signals_raise
from sns_gate.workers import nothing_left_in


def main() -> int:
    """Serve until the coordinator hangs up; 143 where a signal or a hang-up cut something short."""
    if sys.stdin.isatty():
        sys.stderr.write(
            "sns-gate: this is what a launcher starts, and a terminal is no coordinator; run "
            "'sns-gate check --launcher COMMAND' instead\n"
        )
        return 2
    channel = Channel()
    try:
        with signals_raise(), scratch_folder() as scratch, nothing_left_in(scratch):
            channel.open()
            FarEnd(channel, scratch, dict(os.environ)).serve()
    except (Terminated, KeyboardInterrupt):
        return 128 + signal.SIGTERM
    return 0


if __name__ == "__main__":
    sys.exit(main())
