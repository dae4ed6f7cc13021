"""What a repository on GitHub remembers, as plain records that a test seeds, reads and changes."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

ACTIONS = "github-actions[bot]"
WRITERS = ("admin", "maintain", "write")
DEFAULT_BRANCH = "main"

Level = Literal["admin", "maintain", "write", "triage", "read", "none"]


@dataclass
class Comment:
    """A comment on an issue or pull request."""

    id: int
    number: int
    author: str
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass
class CheckRun:
    """A check run; annotations of all its updates, oldest first."""

    id: int
    name: str
    head_sha: str
    app: str
    started_at: str
    status: str = "queued"
    conclusion: str | None = None
    completed_at: str | None = None
    details_url: str | None = None
    external_id: str = ""
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Status:
    """A commit status."""

    id: int
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    creator: str
    created_at: datetime


@dataclass
class LabelEvent:
    """Who set a label or took it off, or put a head in another's place, and when."""

    id: int
    number: int
    event: Literal["labeled", "unlabeled", "head_ref_force_pushed"]
    actor: str
    label: str
    created_at: datetime


@dataclass
class Commit:
    """A commit; the author is a login, or None when no account has the author's address.

    Files are texts by their paths: all that the commit has, whatever its parents have.
    """

    sha: str
    message: str
    author: str | None
    committed_at: datetime
    parents: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class Pull:
    """A pull request; commits oldest first; a deleted fork leaves no head repository."""

    number: int
    author: str
    head_sha: str
    base_sha: str
    head_ref: str
    base_ref: str
    head_repo: str | None
    merge_commit_sha: str
    created_at: datetime
    updated_at: datetime
    title: str
    labels: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    state: Literal["open", "closed"] = "open"
    merged: bool = False


class Repository:
    """One public repository and all that was posted to it.

    ``now`` moves on by a second with everything that is added, so that the order of creation is
    the order of time; a test may set it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.owner = name.split("/", maxsplit=1)[0]
        self.now = datetime(2026, 1, 5, 9, tzinfo=UTC)
        self.pulls: dict[int, Pull] = {}
        self.comments: dict[int, Comment] = {}
        self.check_runs: dict[int, CheckRun] = {}
        self.statuses: list[Status] = []
        self.events: list[LabelEvent] = []
        self.commits: dict[str, Commit] = {}
        self.branches: dict[str, str] = {}
        self.users: dict[str, Level] = {self.owner: "admin"}
        # Beyond 32 bits, as GitHub's own are.
        self._ids = itertools.count(5_000_000_001)

    def add_pull(
        self,
        number: int,
        head_sha: str,
        base_sha: str,
        author: str,
        head_repo: str | None = None,
        labels: Sequence[str] = (),
    ) -> Pull:
        """An open pull request of one commit against main.

        Args:
            number: its number.
            head_sha: its commit, whose message says nothing.
            base_sha: main's commit from now on.
            author: who opened it and wrote its commit.
            head_repo: ``owner/name`` of the fork that it comes from; None for this repository.
            labels: set by the author when opening it.
        """
        self._meet(author)
        self.branches[DEFAULT_BRANCH] = base_sha
        if base_sha not in self.commits:
            self.add_commit(base_sha, "baseline", self.owner)
        now = self.tick()
        pull = Pull(
            number=number,
            author=author,
            head_sha=base_sha,
            base_sha=base_sha,
            head_ref=f"change-{number}",
            base_ref=DEFAULT_BRANCH,
            head_repo=head_repo or self.name,
            merge_commit_sha="",
            created_at=now,
            updated_at=now,
            title=f"Change {number}",
        )
        self.pulls[number] = pull
        self.push(number, head_sha)
        for name in labels:
            self.label(number, name, author)
        return pull

    def push(
        self,
        number: int,
        new_head_sha: str,
        message: str = "change",
        author: str | None = None,
        *,
        force: bool = False,
    ) -> Commit:
        """Put a commit on a pull request's head, or by force instead of all that it had."""
        pull = self.pulls[number]
        parent = pull.base_sha if force else pull.head_sha
        commit = self.add_commit(new_head_sha, message, author or pull.author, [parent])
        pull.commits = [*([] if force else pull.commits), new_head_sha]
        pull.head_sha = new_head_sha
        if force:
            self._labelled(number, "head_ref_force_pushed", "", commit.author or pull.author)
        pull.updated_at = commit.committed_at
        merged = hashlib.sha1(f"{pull.base_sha} {new_head_sha}".encode(), usedforsecurity=False)
        pull.merge_commit_sha = merged.hexdigest()
        title = f"Merge {new_head_sha} into {pull.base_sha}"
        self.add_commit(pull.merge_commit_sha, title, author, [pull.base_sha, new_head_sha])
        if pull.head_repo == self.name:
            self.branches[pull.head_ref] = new_head_sha
        return commit

    def add_commit(
        self, sha: str, message: str, author: str | None = None, parents: Sequence[str] = ()
    ) -> Commit:
        """A commit that the API can be asked for, in place of one of that SHA."""
        if author:
            self._meet(author)
        self.commits[sha] = Commit(sha, message, author, self.tick(), list(parents))
        return self.commits[sha]

    def add_file(self, ref: str, path: str, text: str) -> None:
        """Put a file into a commit, named by its SHA or as a branch's, and into no other."""
        self.commits[self.branches.get(ref, ref)].files[path] = text

    def add_comment(self, number: int, author: str, body: str) -> Comment:
        """A comment by anybody, whatever they may do."""
        self._meet(author)
        now = self.tick()
        comment = Comment(next(self._ids), number, author, body, now, now)
        self.comments[comment.id] = comment
        return comment

    def add_comments(self, number: int, count: int, author: str) -> list[Comment]:
        """That many comments, "comment 1" first."""
        return [self.add_comment(number, author, f"comment {i + 1}") for i in range(count)]

    def comments_on(self, number: int) -> list[Comment]:
        """The comments of one issue or pull request, oldest first."""
        return [comment for comment in self.comments.values() if comment.number == number]

    def label(self, number: int, name: str, by: str) -> LabelEvent:
        """Somebody sets a label."""
        pull = self.pulls[number]
        if name not in pull.labels:
            pull.labels.append(name)
        return self._labelled(number, "labeled", name, by)

    def unlabel(self, number: int, name: str, by: str) -> LabelEvent:
        """Somebody takes a label off."""
        self.pulls[number].labels.remove(name)
        return self._labelled(number, "unlabeled", name, by)

    def permission(self, user: str, level: Level) -> None:
        """What a user may do here from now on; a user met without this may read."""
        self.users[user] = level

    def next_id(self) -> int:
        """An identifier that nothing has."""
        return next(self._ids)

    def tick(self) -> datetime:
        """The time of what is added next."""
        self.now += timedelta(seconds=1)
        return self.now

    def _labelled(
        self,
        number: int,
        event: Literal["labeled", "unlabeled", "head_ref_force_pushed"],
        name: str,
        by: str,
    ) -> LabelEvent:
        self._meet(by)
        told = LabelEvent(next(self._ids), number, event, by, name, self.tick())
        self.events.append(told)
        return told

    def _meet(self, login: str) -> None:
        if not login.endswith("[bot]"):
            self.users.setdefault(login, "read")
