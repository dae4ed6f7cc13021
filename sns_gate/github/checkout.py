"""The workflow's checkout: what a baseline needs is fetched, then its credentials are dropped."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import git

from sns_gate.errors import RevisionError
from sns_gate.github.credentials import Credentials
from sns_gate.github.event import Event

_DEEPER = "give actions/checkout 'fetch-depth: 0'"
_FORCED = (
    "no branch may have it any more, as after a forced push; name another one with the input "
    "'baseline', or leave out 'persist-credentials: false' so that it can be asked for, since the "
    "token is dropped before anybody's code runs"
)
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class Checkout:
    """The repository that the workflow checked out.

    Args:
        folder: of its working tree.

    Attributes:
        credentials: that it keeps.

    Raises:
        RevisionError: it is none.
    """

    def __init__(self, folder: Path) -> None:
        try:
            repository = git.Repo(folder, search_parent_directories=True)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError):
            raise RevisionError(
                f"{folder} is no checkout, so there is nothing to judge; run actions/checkout first"
            ) from None
        self._git = repository.git
        self.credentials = Credentials(repository)

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
        """A baseline that the workflow names, fetched: what a runner keeps of it may be old.

        Where the remote cannot be asked, what this checkout has of it, which is said.

        Args:
            ref: commit, branch or tag.

        Raises:
            RevisionError: neither this checkout nor its remote has it.
        """
        if ref.startswith("-"):
            raise RevisionError(f"'{ref}' is no revision; name a commit, a branch or a tag")
        of_this_checkout = ref in ("HEAD", "@") or any(sign in ref for sign in ("^", "~", "@{"))
        if (of_this_checkout or _COMMIT.fullmatch(ref)) and self._knows(ref):
            return ref
        mend = "name a commit, a branch or a tag of this repository"
        try:
            self._fetch(ref, self._shallow_or_whole(), mend)
        except RevisionError as error:
            known = next(filter(self._knows, (f"origin/{ref}", ref)), None)
            if known is None:
                raise
            sys.stderr.write(f"sns-gate: {error}; taken as this checkout has it, {known}\n")
            return known
        return str(self._git.rev_parse("FETCH_HEAD"))

    def fetch(self, event: Event) -> None:
        """Fetch what the baseline needs; a full history is never cut, a shallow one is deepened.

        Raises:
            RevisionError: the remote did not give it.
        """
        wanted = event.baseline
        if wanted is not None and self._knows(wanted):
            return
        mend = _DEEPER if self._shallow else _FORCED
        if wanted is None:
            if self._shallow:
                self._fetch("", ("--unshallow", "--tags"), mend)
        elif wanted.endswith("^1"):
            depth = ("--depth=2",) if self._shallow else ()  # the merge and what it merged
            self._fetch(wanted.removesuffix("^1"), (*depth, "--no-tags"), mend)
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

    @property
    def _shallow(self) -> bool:
        return str(self._git.rev_parse("--is-shallow-repository")) == "true"

    def _knows(self, ref: str) -> bool:
        return bool(
            self._git.rev_parse("--verify", "--quiet", f"{ref}^{{commit}}", with_exceptions=False)
        )
