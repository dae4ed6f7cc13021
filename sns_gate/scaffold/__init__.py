"""What a repository needs to begin with: settings, a first benchmark, workflows."""

from sns_gate.scaffold.workflows import Runner, Visibility
from sns_gate.scaffold.writing import Plan, Written, write

__all__ = ["Plan", "Runner", "Visibility", "Written", "write"]
