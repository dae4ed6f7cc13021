"""Whose processes and files: the gate's own user, or another that code under test runs as."""

from sns_gate.accounts.account import OWN, Account, Streams
from sns_gate.accounts.choice import account_for, end_marked, remove_marked

__all__ = ["OWN", "Account", "Streams", "account_for", "end_marked", "remove_marked"]
