"""One side's files: a worktree or the working tree, built, with its import path."""

from __future__ import annotations

import shlex
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sns_gate.accounts import Account, Streams
from sns_gate.errors import BuildError, ConfigError
from sns_gate.revisions.outputs import is_output
from sns_gate.revisions.repository import Repository
from sns_gate.types import Side

_LOG_TAIL = 3000
#: Endings of files that can change what runs.
_CODE = frozenset(
    (".py", ".pyx", ".pyi", ".so", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".ptx",
     ".cubin", ".toml", ".cfg", ".cmake", ".pth")
)  # fmt: skip


@dataclass(frozen=True)
class Revision:
    """One side's code as a folder.

    Attributes:
        side: baseline or candidate.
        ref: as asked for, or as found.
        commit: the commit checked out; for the working tree, the one it stands on.
        tree: identity of the commit's files.
        root: folder of the files.
        prefix: folder for what ``build`` commands install.
        repository: the user's working tree, whichever revision this is.
        in_place: it is that working tree itself.
        changed_files: uncommitted changes, empty unless in place.
        untracked_files: of those, the ones that git does not track.
        submodules: folders of the commit's submodules.
        instead: other commits that were as good a baseline, each with its subject.
    """

    side: Side
    ref: str
    commit: str
    tree: str
    root: Path
    prefix: Path
    repository: Path
    in_place: bool
    changed_files: tuple[str, ...] = ()
    untracked_files: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    @property
    def dirty(self) -> bool:
        """Whether the files differ from the commit's."""
        return bool(self.changed_files)

    @property
    def runs_other_code(self) -> bool:
        """Whether a change could matter: to a tracked file, or a new file that may be code."""
        tracked = set(self.changed_files) - set(self.untracked_files)
        return bool(tracked) or any(Path(f).suffix in _CODE for f in self.untracked_files)

    @property
    def empty_submodules(self) -> tuple[str, ...]:
        """Those whose folder is there and has nothing in it, now."""
        folders = {name: self.root / name for name in self.submodules}
        return tuple(n for n, at in folders.items() if at.is_dir() and not any(at.iterdir()))


@contextmanager
def check_out(
    repository: Repository,
    side: Side,
    ref: str,
    commit: str | None,
    folder: Path,
    outputs: Collection[Path] = (),
) -> Iterator[Revision]:
    """Bring one side's files into a folder; without a commit, use the working tree as it is.

    Args:
        repository: where the commit is.
        side: baseline or candidate.
        ref: what to call it.
        commit: the commit to check out, None for the working tree.
        folder: for the worktree and the build prefix; removed by whoever made it.
        outputs: files that this run writes, which are no change of the working tree.
    """
    prefix = folder / f"{side}-prefix"
    prefix.mkdir(parents=True)
    home = repository.root
    if commit is None:
        head = repository.resolve("HEAD")
        tree = repository.tree(head)
        changed = [f for f in repository.changed_files() if not is_output(home / f, outputs)]
        untracked = set(repository.untracked_files())
        yield Revision(
            side, ref, head, tree, home, prefix, home, in_place=True,
            changed_files=tuple(changed),
            untracked_files=tuple(f for f in changed if f in untracked),
            submodules=repository.submodules(head),
        )  # fmt: skip
        return
    with repository.worktree(commit, folder / side) as root:
        yield Revision(
            side, ref, commit, repository.tree(commit), root.resolve(), prefix, home,
            in_place=False, submodules=repository.submodules(commit),
        )  # fmt: skip


def build(
    revision: Revision,
    commands: Sequence[str],
    python: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    account: Account,
) -> None:
    """Run the build commands in a revision, each without a shell.

    Args:
        revision: to build.
        commands: of it.
        python: that they may name.
        environment: of the commands.
        timeout_s: for each.
        account: the user that they run as.

    Raises:
        ConfigError: a command names an unknown placeholder or is not closed.
        RevisionError: a command failed; the message ends with its output.
    """
    places = {"worktree": revision.root, "prefix": revision.prefix, "python": python}
    for command in commands:
        words = _words(command, places)
        code, output = _run(words, revision, environment, timeout_s, account)
        if code:
            said = output[-_LOG_TAIL:].strip() or "it said nothing"
            raise BuildError(
                revision.side,
                f"build of the {revision.side} failed, so it cannot be measured: "
                f"{shlex.join(words)} ended with {code}; run it by hand in a fresh checkout of "
                f"{revision.ref}\n{said}",
            )


def _run(
    words: Sequence[str],
    revision: Revision,
    environment: Mapping[str, str],
    timeout_s: float,
    account: Account,
) -> tuple[int, str]:
    """Run one command in a session of its own, which ends with it; a file takes the output.

    A pipe would stay open for as long as anything that the command left behind.
    """
    with tempfile.TemporaryFile() as log:
        try:
            streams = Streams(subprocess.DEVNULL, log, subprocess.STDOUT)
            process = account.start(words, revision.root, environment, streams)
            try:
                code = process.wait(timeout_s)
            finally:
                account.signal(signal.SIGKILL, [-process.pid])
                process.wait()
        except OSError as error:
            raise BuildError(
                revision.side,
                f"build of the {revision.side} could not run: {words[0]} ({error.strerror}); "
                f"commands run without a shell, so name a program, or write sh -c '...'",
            ) from None
        except subprocess.TimeoutExpired:
            raise BuildError(
                revision.side,
                f"build of the {revision.side} did not end within {timeout_s:.0f} s and was "
                f"killed: {shlex.join(words)}; make it quicker, or build before the check",
            ) from None
        log.seek(0)
        return code, log.read().decode(errors="replace")


def import_paths(revision: Revision, pythonpath: Sequence[str] | None) -> tuple[Path, ...]:
    """Folders to import this side's code from: what was built first, then its sources.

    Raises:
        ConfigError: a configured folder lies outside the revision.
    """
    built = [revision.prefix] if any(revision.prefix.iterdir()) else []
    installed = sorted(revision.prefix.glob("lib*/python*/*-packages"))
    if pythonpath is None:
        sources = [revision.root / "src"] if _is_src_layout(revision.root) else []
        return (*installed, *built, *sources, revision.root)
    folders = []
    for entry in pythonpath:
        folder = (revision.root / entry).resolve()
        if not folder.is_relative_to(revision.root):
            raise ConfigError(
                f"pythonpath entry '{entry}' leads outside the revision, so both sides would "
                f"import the same code from it; name a folder inside the repository"
            )
        folders.append(folder)
    return (*installed, *built, *folders)


def _is_src_layout(root: Path) -> bool:
    source = root / "src"
    return source.is_dir() and any(
        entry.suffix in (".py", ".so") or (entry / "__init__.py").is_file()
        for entry in source.iterdir()
    )


def _words(command: str, places: Mapping[str, Path]) -> list[str]:
    try:
        return [
            word.format_map({k: str(v) for k, v in places.items()}) for word in shlex.split(command)
        ]
    except KeyError as error:
        raise ConfigError(
            f"build command {command!r} names {{{error.args[0]}}}; known are "
            f"{', '.join(f'{{{name}}}' for name in places)}"
        ) from None
    except (ValueError, IndexError) as error:
        raise ConfigError(
            f"build command {command!r} cannot be read: {error}; double a brace to keep it"
        ) from None
