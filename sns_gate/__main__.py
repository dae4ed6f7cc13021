"""Runs the command line as ``python -m sns_gate``."""

from sns_gate.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
