"""The two sides of a check: their revisions and the folders of their benchmarks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from sns_gate.accounts import remove_marked
from sns_gate.discovery import PATTERN
from sns_gate.errors import UsageError
from sns_gate.revisions import Repository, Revision, check_out, is_left_behind
from sns_gate.types import SIDES, Side


@contextmanager
def both_revisions(
    folder: Path,
    baseline: str | None,
    candidate: str | None,
    scratch: Path,
    outputs: Collection[Path] = (),
) -> Iterator[dict[Side, Revision]]:
    """Check both sides out, and remove their worktrees again.

    Args:
        folder: any folder inside the repository.
        baseline: reference, None for the merge base with the default branch.
        candidate: reference, None for the working tree as it is.
        scratch: for worktrees and build prefixes.
        outputs: files that this run writes, which are no change of the candidate's.

    Raises:
        RevisionError: a reference names no commit, or git refused.
    """
    repository = Repository(folder)
    repository.forget_worktrees(is_left_behind)
    commit = repository.resolve(candidate) if candidate else None
    others: list[str] = []
    if baseline is None:
        ref, (base, *others) = repository.default_baseline(commit or "HEAD")
    else:
        ref, base = baseline, repository.resolve(baseline)
    name = candidate or "working tree"
    with ExitStack() as stack:
        found = stack.enter_context(check_out(repository, "baseline", ref, base, scratch))
        sides: dict[Side, Revision] = {
            "baseline": replace(found, instead=tuple(map(repository.subject, others))),
            "candidate": stack.enter_context(
                check_out(repository, "candidate", name, commit, scratch, outputs)
            ),
        }
        # First of all at the end: git shall not work, with the gate's rights, in another's folders.
        stack.callback(remove_marked, scratch)
        yield sides


def benchmark_folders(asked: Path, sides: Mapping[Side, Revision]) -> dict[Side, Path]:
    """Where each side's benchmarks are: the same folder for both where it lies outside."""
    root, home = sides["candidate"].root, sides["candidate"].repository
    folder = (home / asked).resolve()
    if folder.is_relative_to(home):  # whichever revision is meant, it has a folder of its own
        folder = root / folder.relative_to(home)
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {folder}, so there are no benchmarks; name one with "
            f"--benchmarks DIR, or write {asked}/{PATTERN.replace('*', 'first')}"
        )
    if not folder.is_relative_to(root):
        return dict.fromkeys(SIDES, folder)
    inside = folder.relative_to(root)
    return {"baseline": sides["baseline"].root / inside, "candidate": folder}


def same_files(own: Sequence[Path], own_folder: Path, files: Sequence[Path], folder: Path) -> bool:
    """Whether two folders hold the same benchmark files, by name and content."""
    if own_folder == folder:
        return True
    mine = [(path.relative_to(own_folder), path.read_bytes()) for path in own]
    return mine == [(path.relative_to(folder), path.read_bytes()) for path in files]
