"""A finished result as one page that needs no network; it decides nothing."""

from sns_gate.report.html.page import render

__all__ = ["render"]
