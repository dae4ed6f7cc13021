"""Measuring elsewhere: what launchers start there, and how the coordinator speaks with it."""

from sns_gate.outpost.places import Outposts, outposts

__all__ = ["Outposts", "outposts"]
