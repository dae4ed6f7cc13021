"""The command ``sns-gate``, every import of which may be interrupted without a traceback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        from sns_gate.cli.endings import run_command

        return run_command(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # before or after there is anything to clean up
        sys.stderr.write("sns-gate: interrupted\n")
        return 128 + signal.SIGINT
