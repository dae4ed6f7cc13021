"""The workflow's checkout: what a baseline needs is fetched, then its credentials are dropped."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

import git

from sns_gate.errors import RefusedRun, RevisionError
from sns_gate.github.event import Event

_INCLUDE = re.compile(r"includeif\..*\.path", re.IGNORECASE | re.DOTALL)
_HEADER = re.compile(r"http\..*\.extraheader", re.IGNORECASE | re.DOTALL)


class Checkout:
    """The repository that the workflow checked out.

    Args:
        folder: of its working tree.

    Raises:
        RevisionError: it is none.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._git = git.Repo(folder, search_parent_directories=True).git
        except (git.InvalidGitRepositoryError, git.NoSuchPathError):
            raise RevisionError(
                f"{folder} is no checkout, so there is nothing to judge; run actions/checkout first"
            ) from None

    def baseline(self, event: Event) -> str:
        """What to compare with: the event's baseline, or else the last tag before this commit.

        Raises:
            RevisionError: there is no tag.
        """
        if event.baseline is not None:
            return event.baseline
        found = str(self._git.describe("--tags", "--abbrev=0", "HEAD^", with_exceptions=False))
        if not found:
            raise RevisionError(
                f"a '{event.name}' event has no baseline of its own and no tag is before this "
                f"commit; name one with the input 'baseline'"
            )
        return found

    def named(self, ref: str) -> str:
        """A baseline that the workflow names, fetched where this checkout lacks it.

        Args:
            ref: commit, branch or tag.

        Raises:
            RevisionError: neither this checkout nor its remote has it.
        """
        for known in (ref, f"origin/{ref}"):
            if self._knows(known):
                return known
        if ref.startswith("-"):
            raise RevisionError(f"'{ref}' is no revision; name a commit, a branch or a tag")
        self._fetch(
            ref, self._shallow_or_whole(), "name a commit, a branch or a tag of this repository"
        )
        return str(self._git.rev_parse("FETCH_HEAD"))

    def fetch(self, event: Event) -> None:
        """Fetch what the baseline needs; a full history is never cut, a shallow one is deepened.

        Raises:
            RevisionError: the remote did not give it.
        """
        wanted = event.baseline
        if wanted is not None and self._knows(wanted):
            return
        mend = "give actions/checkout 'fetch-depth: 0'"
        if wanted is None:
            if self._shallow:
                self._fetch("", ("--unshallow", "--tags"), mend)
        elif wanted.endswith("^1"):
            self._fetch(wanted.removesuffix("^1"), ("--depth=2", "--no-tags"), mend)
        else:
            self._fetch(wanted, self._shallow_or_whole(), mend)

    def _shallow_or_whole(self) -> tuple[str, ...]:
        """One commit where the history is shallow, and never less than there is of a full one."""
        return ("--depth=1", "--no-tags") if self._shallow else ("--no-tags",)

    def _fetch(self, ref: str, options: Sequence[str], mend: str) -> None:
        try:
            self._git.fetch(*options, "origin", *([ref] if ref else []))
        except git.GitCommandError as error:
            raise RevisionError(
                f"the baseline {ref or 'tag'} could not be fetched: "
                f"{str(error.stderr).strip()}; {mend}"
            ) from None

    def drop_credentials(self) -> None:
        """Forget the token that the checkout keeps for later fetches, wherever it keeps it."""
        for name, value in self._settings():
            if _HEADER.fullmatch(name):
                self._git.config("--local", "--unset-all", name, with_exceptions=False)
            elif _INCLUDE.fullmatch(name) and "git-credentials" in value:
                self._git.config("--local", "--unset-all", name, with_exceptions=False)
                with contextlib.suppress(OSError):
                    Path(os.path.expandvars(value)).unlink()

    def require_no_credentials(self) -> None:
        """Refuse to run anybody's code while a token lies beside it.

        Raises:
            RefusedRun: git would send one from here.
        """
        kept = [name for name, _ in self._settings() if _HEADER.fullmatch(name)]
        if kept:
            raise RefusedRun(
                "credentials-persist",
                f"the checkout still holds a token ({kept[0]}), which the code under test could "
                f"read, so nothing was run; give actions/checkout 'persist-credentials: false'",
            )

    @property
    def _shallow(self) -> bool:
        return str(self._git.rev_parse("--is-shallow-repository")) == "true"

    def _knows(self, ref: str) -> bool:
        return bool(
            self._git.rev_parse("--verify", "--quiet", f"{ref}^{{commit}}", with_exceptions=False)
        )

    def _settings(self) -> list[tuple[str, str]]:
        output = str(self._git.config("--list", "--null", "--includes"))
        pairs = (entry.partition("\n") for entry in output.split("\0") if entry)
        return [(name, value) for name, _, value in pairs]
