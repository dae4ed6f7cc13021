"""Keeps what builds installed, by the tree that they built, so that no tree is built twice."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from sns_gate.revisions.checkout import Revision, build


def build_once(
    revision: Revision,
    commands: Sequence[str],
    python: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    kept: Path,
) -> None:
    """Build a revision as ``build`` does, or bring back what an earlier build of its tree made.

    Kept is the prefix alone: where commands leave anything else, in the worktree, every build is
    done again.

    Args:
        revision: to build.
        commands: of it.
        python: that they may name.
        environment: of the commands.
        timeout_s: for each.
        kept: folder of earlier builds.
    """
    place = kept / _key(revision, commands, python)
    if place.is_dir():
        shutil.copytree(place, revision.prefix, symlinks=True, dirs_exist_ok=True)
        return
    build(revision, commands, python, environment, timeout_s)
    if revision.in_place or _left_in_worktree(revision):
        return
    kept.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(revision.prefix, partial, symlinks=True)
    partial.rename(place)


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
