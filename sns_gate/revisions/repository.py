"""A git repository and the references in it; it changes nothing but its list of worktrees."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import git

from sns_gate.errors import RevisionError
from sns_gate.signals import to_its_end

#: Git sets these for hooks and aliases; they would lead our worktrees into the user's own index.
_LOCAL_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)  # fmt: skip
_DEFAULT_BRANCHES = ("main", "master", "trunk", "develop")


def root_and_branch(folder: Path) -> tuple[Path, str]:
    """The root of the repository around a folder and its default branch, with or without commits.

    Args:
        folder: any folder inside the working tree.

    Raises:
        RevisionError: there is no repository with a working tree.
    """
    try:
        repo = git.Repo(folder, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        raise RevisionError(
            f"{folder} is in no git repository, so there is none to set up; run 'git init' first"
        ) from None
    if repo.working_tree_dir is None:
        raise RevisionError(f"{folder} is a bare repository without files; work in a clone of it")
    head = repo.git.rev_parse("--abbrev-ref", "origin/HEAD", with_exceptions=False)
    known = str(head).removeprefix("origin/") if head and head != "origin/HEAD" else ""
    current = repo.git.symbolic_ref("--short", "--quiet", "HEAD", with_exceptions=False)
    usual = next(filter(partial(_has_branch, repo), _DEFAULT_BRANCHES), "")
    branch = known or usual or str(current) or _DEFAULT_BRANCHES[0]
    return Path(repo.working_tree_dir).resolve(), branch


def _has_branch(repo: git.Repo, name: str) -> bool:
    refs = (f"refs/remotes/origin/{name}", f"refs/heads/{name}")
    return any(repo.git.show_ref("--verify", ref, with_exceptions=False) for ref in refs)


class Repository:
    """The repository around a folder.

    Args:
        folder: any folder inside the working tree.

    Raises:
        RevisionError: there is no repository, or it has no working tree or no commit.
    """

    def __init__(self, folder: Path) -> None:
        for name in _LOCAL_VARIABLES:
            os.environ.pop(name, None)
        try:
            self._git = git.Repo(folder, search_parent_directories=True)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError):
            raise RevisionError(
                f"{folder} is in no git repository, so there is no baseline to compare with; "
                f"run sns-gate inside one, or 'git init' and commit"
            ) from None
        if self._git.bare or self._git.working_tree_dir is None:
            raise RevisionError(
                f"{folder} is a bare repository without files; run sns-gate in a clone of it"
            )
        self.root = Path(self._git.working_tree_dir).resolve()
        self._require_trust()
        if not self._git.head.is_valid():
            raise RevisionError(
                f"the repository at {self.root} has no commit yet, so there is no baseline; "
                f"commit the state to compare with first"
            )

    def resolve(self, ref: str) -> str:
        """The commit that a reference names.

        Raises:
            RevisionError: it names none; the message says which fetch may mend it.
        """
        try:
            return str(
                self._git.git.rev_parse(
                    "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
                )
            )
        except git.GitCommandError:
            mend = (
                f"this clone is shallow, so 'git fetch --unshallow' or "
                f"'git fetch --depth=1 origin {ref}' may bring it"
                if self.shallow
                else "see 'git branch --all' and 'git tag' for what is there, or fetch it first"
            )
            raise RevisionError(f"'{ref}' names no commit in {self.root}; {mend}") from None

    @property
    def shallow(self) -> bool:
        """Whether history was cut when this repository was cloned."""
        return self._ask("rev-parse", "--is-shallow-repository") == "true"

    def default_baseline(self, candidate: str) -> tuple[str, tuple[str, ...]]:
        """The merge bases of a commit with the remote's default branch: (name, commits).

        Branches that were merged into each other have several; git's own choice is the first.

        Raises:
            RevisionError: no default branch is known, or no common commit is in this clone.
        """
        branch = self._default_branch()
        found = self._git.git.merge_base("--all", candidate, branch, with_exceptions=False)
        bases = tuple(str(found).split())
        if not bases:
            mend = (
                "this clone is shallow: 'git fetch --unshallow origin' brings the history"
                if self.shallow
                else "their histories are unrelated: name a baseline with --baseline REF"
            )
            raise RevisionError(
                f"no common ancestor of the candidate and {branch} is in this clone; {mend}"
            )
        return f"merge base with {branch}", bases

    def commits_between(self, good: str, bad: str) -> tuple[str, ...]:
        """The commits after one up to another, oldest first; of a merge its first parent's side.

        Raises:
            RevisionError: good is no ancestor of bad in this clone.
        """
        commits = self._ask("rev-list", "--first-parent", "--reverse", bad, f"^{good}").split()
        first = self._ask("rev-parse", f"{commits[0]}^") if commits else ""
        if first != good:
            raise RevisionError(
                f"{good[:9]} is not on the line of first parents that leads to {bad[:9]}, so there "
                f"is nothing between them to search; name an older end on that line"
                + (", or fetch it: this clone is shallow" if self.shallow else "")
            )
        return tuple(commits)

    def subject(self, commit: str) -> str:
        """A commit's short name and the first line of its message."""
        return self._ask("log", "-1", "--format=%h %s", commit)

    def last_tag(self, pattern: str, commit: str) -> str:
        """The highest version among the tags of a pattern that a commit's history holds.

        Raises:
            RevisionError: there is none.
        """
        tags = self._ask("tag", "--merged", commit, "--sort=-version:refname", "--list", pattern)
        if not tags:
            mend = (
                "'git fetch --tags' may bring it"
                if not self.shallow
                else ("this clone is shallow, so 'git fetch --unshallow --tags' may bring it")
            )
            raise RevisionError(
                f"no tag like '{pattern}' is in the history of {commit[:9]}, so there is nothing "
                f"further to compare with; {mend}"
            )
        return tags.splitlines()[0]

    def tree(self, commit: str) -> str:
        """The identity of a commit's files."""
        return self._ask("rev-parse", "--verify", f"{commit}^{{tree}}")

    def submodules(self, commit: str) -> tuple[str, ...]:
        """Folders of a commit's submodules, sorted; a checkout leaves them empty."""
        if not self._ask("ls-tree", "--full-tree", commit, "--", ".gitmodules"):
            return ()  # listing the whole tree can take long
        entries = self._ask("ls-tree", "--full-tree", "-r", "-z", commit).split("\0")
        parted = (entry.partition("\t") for entry in entries)
        return tuple(sorted(_text(name) for kind, _, name in parted if " commit " in kind))

    def changed_files(self) -> tuple[str, ...]:
        """Files of the working tree that differ from HEAD or that git does not track, sorted."""
        return self._status("all")

    def changed_tracked(self) -> tuple[str, ...]:
        """Those of them that git tracks, sorted."""
        return self._status("no")

    def _status(self, untracked: str) -> tuple[str, ...]:
        output = self._ask("status", "--porcelain=v1", "-z", f"--untracked-files={untracked}")
        entries = [entry for entry in output.split("\0") if entry]
        names, skip = [], False
        for entry in entries:
            if skip:  # the old name of a renamed file
                skip = False
                continue
            skip = entry[0] in "RC"
            names.append(_text(entry[3:]))
        return tuple(sorted(names))

    @contextmanager
    def worktree(self, commit: str, folder: Path) -> Iterator[Path]:
        """Check a commit out into a new folder, and remove it again.

        Raises:
            RevisionError: git refused, for example because the disk is full.
        """
        # The user's hooks are about their working tree, not about ours.
        command = ["git", "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach",
                   "--force", str(folder), commit]  # fmt: skip
        try:
            # Where this is interrupted, git is ended before what it made is taken away.
            done = subprocess.run(  # noqa: S603 (git's own arguments, and a commit)
                command, cwd=self.root, capture_output=True, text=True, errors="replace",
                check=False,
            )  # fmt: skip
            if done.returncode:
                raise RevisionError(
                    f"git could not check {commit[:9]} out into {folder}: "
                    f"{done.stderr.strip()}; free disk space, or mend what git names"
                )
            yield folder
        finally:
            to_its_end(partial(self._remove_worktree, folder))

    def forget_worktrees(self, ours: Callable[[Path], bool]) -> None:
        """Forget worktrees that killed checks left; the user's, present or away, stay."""
        for line in self._ask("worktree", "list", "--porcelain").splitlines():
            name = line.removeprefix("worktree ")
            if name != line and ours(Path(name)):
                self._remove_worktree(Path(name))

    def _remove_worktree(self, folder: Path) -> None:
        """Remove it, and git's record of it where git was ended before it was whole."""
        self._git.git.worktree("remove", "--force", "--force", str(folder), with_exceptions=False)
        for record in Path(self._git.common_dir).glob("worktrees/*/gitdir"):
            with contextlib.suppress(OSError):
                if record.read_text(encoding="utf-8").strip() == str(folder / ".git"):
                    shutil.rmtree(record.parent)

    def untracked_files(self) -> tuple[str, ...]:
        """Files of the working tree that git neither tracks nor ignores."""
        output = self._ask("ls-files", "--others", "--exclude-standard", "-z")
        return tuple(_text(name) for name in output.split("\0") if name)

    def _ask(self, *words: str) -> str:
        """What git prints.

        Raises:
            RevisionError: it failed, for example because its index is damaged.
        """
        try:
            return str(self._git.git.execute(["git", *words]))
        except git.GitCommandError as error:
            raise RevisionError(
                f"'git {words[0]}' failed in {self.root}, so the revisions there cannot be read: "
                f"{_said(error)}; mend what git names, for which 'git fsck' may say more"
            ) from None

    def _require_trust(self) -> None:
        """Git refuses to work in a folder of somebody else's until it is told to trust it."""
        try:
            self._git.git.rev_parse("--git-dir")
        except git.GitCommandError as error:
            trust = f"git config --global --add safe.directory {self.root}"
            raise RevisionError(
                f"git does not work in {self.root}: {_said(error)}; mend what git names, for a "
                f"folder of another owner with '{trust}'"
            ) from None

    def _default_branch(self) -> str:
        remotes = [remote.name for remote in self._git.remotes]
        ordered = sorted(remotes, key=lambda name: name != "origin")
        heads = [f"refs/remotes/{remote}/HEAD" for remote in ordered]
        named = [f"refs/remotes/{r}/{b}" for r in ordered for b in _DEFAULT_BRANCHES]
        local = [f"refs/heads/{branch}" for branch in _DEFAULT_BRANCHES]
        for ref in (*heads, *named, *local):
            found = self._git.git.rev_parse("--verify", "--quiet", ref, with_exceptions=False)
            if found:
                return self._short(ref)
        raise RevisionError(
            "no default branch is known here (no remote, no main or master), so there is no "
            "baseline to take; name one with --baseline REF"
        )

    def _short(self, ref: str) -> str:
        return str(self._git.git.rev_parse("--abbrev-ref", ref))


def _text(name: str) -> str:
    """A file's name; one that is no UTF-8 must not keep the result from being written."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _said(error: git.GitCommandError) -> str:
    """Git's own words, without those around them."""
    return str(error.stderr).strip().removeprefix("stderr: ").strip("'")
