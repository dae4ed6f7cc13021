"""Keeps what builds installed, by the tree that they built, so that no tree is built twice."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sns_gate.accounts import OWN
from sns_gate.revisions.checkout import Revision, build


def build_once(
    revision: Revision,
    commands: Sequence[str],
    python: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    kept: Path,
) -> Revision:
    """Build a revision as ``build`` does, into a prefix that stays and serves its tree again.

    What is built may name its prefix, so that is never copied. Where commands leave anything else,
    in the worktree, every build is done again.

    Args:
        revision: to build.
        commands: of it.
        python: that they may name.
        environment: of the commands.
        timeout_s: for each.
        kept: folder of earlier builds.

    Returns:
        The revision with the prefix that stays.
    """
    prefix = kept / _key(revision, commands, python)
    whole = prefix.with_suffix(".whole")
    there = replace(revision, prefix=prefix)
    if not whole.exists():
        prefix.mkdir(parents=True, exist_ok=True)
        build(there, commands, python, environment, timeout_s, OWN)
        if not revision.in_place and not _left_in_worktree(revision):
            whole.touch()
    return there


def _key(revision: Revision, commands: Sequence[str], python: Path) -> str:
    text = "\0".join([revision.tree, str(python), *commands])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _left_in_worktree(revision: Revision) -> bool:
    """Whether a build left more than its prefix; where git cannot say, it counts as left."""
    done = subprocess.run(
        ["git", "status", "--porcelain", "--ignored", "--untracked-files=all"],  # noqa: S607 (the user's git)
        cwd=revision.root, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode != 0 or bool(done.stdout.strip())
