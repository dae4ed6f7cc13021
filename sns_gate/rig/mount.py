"""Two revisions made ready to be measured: built, with their import paths and their workers."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from sns_gate import protocol
from sns_gate.accounts import OWN, Account
from sns_gate.config import Layers, Settings
from sns_gate.discovery import PATTERN, find_files
from sns_gate.errors import ConfigError, NothingCompared, UsageError, WorkerError
from sns_gate.revisions import Revision, build, build_once, import_paths
from sns_gate.rig.device import Device, Devices
from sns_gate.rig.launching import Code, Launching
from sns_gate.rig.sides import benchmark_folders, same_files
from sns_gate.session import Policy, Roster, agree
from sns_gate.types import SIDES, Side
from sns_gate.workers import WorkerPool, WorkerProcess

BUILD_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class CheckRequest:
    """What is asked of one check.

    Attributes:
        folder: any folder inside the repository.
        baseline: reference of the baseline, None for the merge base with the default branch.
        candidate: reference of the candidate, None for the working tree as it is.
        layers: settings above the configuration file.
        environment: the gate's own variables.
        kept_builds: folder of earlier builds to take from and add to, None to build anew.
        outputs: files that this run writes, absolute.
    """

    folder: Path
    baseline: str | None
    candidate: str | None
    layers: Layers
    environment: Mapping[str, str]
    kept_builds: Path | None = None
    outputs: tuple[Path, ...] = ()


class Rig:
    """Two revisions made ready to be measured: where their code is and how workers start.

    Args:
        settings: that hold.
        sides: both revisions.
        scratch: for the private package, caches and logs.
        environment: the gate's own variables.
        kept_builds: folder of earlier builds to take from and add to, None to build anew.

    Attributes:
        settings: that hold.
        sides: both revisions.
        folders: of each side's benchmarks.
        kept_builds: as given.
    """

    def __init__(
        self,
        settings: Settings,
        sides: Mapping[Side, Revision],
        scratch: Path,
        environment: Mapping[str, str],
        kept_builds: Path | None = None,
    ) -> None:
        self.settings = settings
        self.sides = sides
        self._scratch, self._environment = scratch, environment
        _refuse_inside(scratch, sides)
        self.kept_builds = kept_builds
        self.folders = benchmark_folders(settings.benchmarks, sides)
        self._files = find_files(self.folders["candidate"])
        if not self._files:
            raise NothingCompared(
                f"no file {PATTERN} is below {self.folders['candidate']}, so there is nothing to "
                f"compare; write a benchmark there or name another folder with --benchmarks DIR"
            )

    @cached_property
    def devices(self) -> Devices:
        """To measure on; this machine's, so that nobody asks where launchers lead elsewhere."""
        return Devices(self.settings, self._environment)

    @cached_property
    def _launching(self) -> Launching:
        home = self.sides["candidate"].repository
        return Launching(self.settings, self._environment, self._scratch, home)

    @property
    def roots(self) -> dict[Side, Path]:
        """Where each side's files are."""
        return {side: revision.root for side, revision in self.sides.items()}

    def build(self, stage: Callable[[str], None], sides: Sequence[Side] = SIDES) -> None:
        """Run the build commands of these sides, saying so first."""
        python = self._launching.python  # refused before anything waits for a device
        for side in sides if self.settings.build else ():
            stage(f"building the {side}")
            asked = (
                self.sides[side],
                self.settings.build,
                python,
                self._launching.variables(side, "build", ()),
                BUILD_TIMEOUT_S,
            )
            account = self._launching.account
            if self.kept_builds is None or account is not OWN:
                _hand_over(self.sides[side], account)
                build(*asked, account)
            else:
                self.sides = {**self.sides, side: build_once(*asked, kept=self.kept_builds)}

    def pool(self, name: str, processes: int, device: Device) -> WorkerPool:
        """So many workers a side; each name has compiler and tuning caches of its own."""
        self._require_paths()
        fallbacks = tuple(self._fallback(file) for file in self._files)
        files = tuple(map(str, self._files))
        loads: dict[Side, protocol.Load] = {
            "baseline": protocol.Load(files, fallbacks),
            "candidate": protocol.Load(files, (None,) * len(files)),
        }
        launches = {
            side: self._launching.launch(side, name, self._code(side), loads[side], device)
            for side in SIDES
        }
        return WorkerPool(launches, processes, self.settings.start_timeout)

    def reference_pool(self, name: str, processes: int, device: Device) -> WorkerPool:
        """Workers that all run the candidate's code, the baseline's side its references."""
        files = tuple(map(str, self._files))
        launches = {
            side: self._launching.launch(
                side,
                f"{name}-references",
                self._code("candidate"),
                protocol.Load(files, (None,) * len(files), as_reference=side == "baseline"),
                device,
            )
            for side in SIDES
        }
        return WorkerPool(launches, processes, self.settings.start_timeout)

    @contextmanager
    def baseline_cases(self) -> Iterator[Callable[[], protocol.Loaded | None]]:
        """The baseline's own cases on its own code, listed while the workers start.

        None where its benchmarks are the candidate's, so that the workers' list will do.
        """
        own = find_files(self.folders["baseline"])
        if same_files(own, self.folders["baseline"], self._files, self.folders["candidate"]):
            yield lambda: None
            return
        with self._lister("baseline", own) as listed:
            yield listed

    def candidate_cases(self) -> protocol.Loaded:
        """The candidate's cases, listed by one worker that needs no device."""
        with self._lister("candidate", self._files) as listed:
            return listed()

    @contextmanager
    def _lister(self, side: Side, files: Sequence[Path]) -> Iterator[Callable[[], protocol.Loaded]]:
        load = protocol.Load(tuple(map(str, files)), (None,) * len(files))
        launch = self._launching.listing(side, self._code(side), load)
        lister = WorkerProcess(launch, 0)
        timeout_s = self.settings.start_timeout

        def listed() -> protocol.Loaded:
            lister.ask(launch.hello, protocol.Ready, timeout_s)
            found = lister.ask(load, protocol.Loaded, timeout_s)
            lister.kill()
            return found

        try:
            yield listed
        finally:
            lister.kill()

    def roster(
        self,
        loaded: Mapping[Side, protocol.Loaded | None],
        own: Callable[[], protocol.Loaded | None],
    ) -> Roster:
        """Agree on the cases of both sides."""
        baseline, candidate = loaded["baseline"], loaded["candidate"]
        if baseline is None or candidate is None:
            raise WorkerError("a worker", "has not loaded its benchmarks")
        policy = Policy(
            self.settings.tolerance,
            self.settings.policy_from == "baseline",
            self.settings.memory_tolerance,
        )
        wanted = partial(is_wanted, filters=self.settings.filter)
        own_files = own()
        folders = (self.folders["candidate"], self.folders["baseline"])
        roster = agree(candidate, baseline, own_files or baseline, policy, wanted, folders)
        if not (roster.order or roster.decided):
            refuse_filter(self.settings.filter, candidate.cases)
        if self.settings.shard is None:
            return roster
        part = roster.part(*self.settings.part)
        if not (part.order or part.decided):
            count = len(roster.order) + len(roster.decided)
            raise NothingCompared(
                f"shard {self.settings.shard} holds no case, as there are {count} in all; use at "
                f"most so many shards"
            )
        return part

    def _require_paths(self) -> None:
        """A configured folder that neither side has is misspelt; one side alone may lack it."""
        if self.settings.build:  # which may make it
            return
        for entry in self.settings.pythonpath or ():
            if not any((root / entry).is_dir() for root in self.roots.values()):
                raise ConfigError(
                    f"pythonpath entry '{entry}' is a folder of neither revision, so nothing could "
                    f"be imported from it; name one relative to the repository's root"
                )

    def _fallback(self, file: Path) -> str | None:
        own = self.folders["baseline"] / file.relative_to(self.folders["candidate"])
        return str(own) if own != file and own.is_file() else None

    def _code(self, side: Side) -> Code:
        other: Side = "candidate" if side == "baseline" else "baseline"
        revision = self.sides[side]
        return Code(
            root=revision.root,
            paths=import_paths(revision, self.settings.pythonpath),
            foreign=_foreign_roots(revision, self.sides[other]),
            shared=tuple({str(folder) for folder in self._shared_folders()}),
            keep_editable=not self.settings.build,
        )

    def _shared_folders(self) -> list[Path]:
        """Folders of benchmarks, unless the code under test lies inside them."""
        roots = [
            path
            for side in SIDES
            for path in import_paths(self.sides[side], self.settings.pythonpath)
        ]
        return [
            folder
            for folder in self.folders.values()
            if not any(root.is_relative_to(folder) for root in roots)
        ]


def _hand_over(revision: Revision, account: Account) -> None:
    """Let the user that builds run as write where they write, but for the user's working tree."""
    account.hand_over(revision.prefix)
    if not revision.in_place:
        account.hand_over(revision.root)


def _refuse_inside(scratch: Path, sides: Mapping[Side, Revision]) -> None:
    """Refuse temporary files among a revision's own, which would be taken for its code."""
    for side in SIDES:
        home = sides[side].repository
        if scratch.resolve().is_relative_to(home.resolve()):
            raise UsageError(
                f"the folder for temporary files, {scratch.parent}, lies inside the repository "
                f"{home}, so what is kept there could not be told from the {side}'s code; name "
                f"one outside with TMPDIR"
            )


def _foreign_roots(own: Revision, other: Revision) -> tuple[str, ...]:
    """Folders that a side must not import from: the other side's, and the user's own tree.

    That tree is nobody's side unless it is measured in place.
    """
    home = set() if own.in_place else {str(own.repository)}
    return tuple(sorted({str(other.root), str(other.prefix)} | home))


def is_wanted(id_: str, filters: Sequence[str]) -> bool:
    """Whether a case's id holds one of these texts or matches one as a pattern."""
    return not filters or any(f in id_ or fnmatch.fnmatchcase(id_, f) for f in filters)


def refuse_filter(filters: Sequence[str], cases: Sequence[protocol.CaseSpec]) -> None:
    """Say which cases there are where a filter left none.

    Raises:
        NothingCompared: there is a filter.
    """
    if filters:
        known = ", ".join(case.id for case in cases) or "none"
        raise NothingCompared(
            f"no case matches {' or '.join(filters)}, so there is nothing to compare; the cases "
            f"are: {known}"
        )
