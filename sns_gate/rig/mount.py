"""Both sides made ready to be measured: built, with their import paths and their workers."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sns_gate import protocol
from sns_gate.config import Layers, Settings
from sns_gate.discovery import PATTERN, find_files
from sns_gate.errors import ConfigError, NothingCompared, WorkerError
from sns_gate.revisions import Revision, build, import_paths
from sns_gate.rig.device import Device
from sns_gate.rig.sides import benchmark_folders, same_files
from sns_gate.session import Policy, Roster, agree
from sns_gate.types import SIDES, Side
from sns_gate.workers import (
    Launch,
    WorkerPool,
    WorkerProcess,
    private_package,
    worker_environment,
)

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
    """

    folder: Path
    baseline: str | None
    candidate: str | None
    layers: Layers
    environment: Mapping[str, str]


class Rig:
    """Both sides made ready to be measured: where their code is and how workers start."""

    def __init__(
        self,
        request: CheckRequest,
        settings: Settings,
        sides: Mapping[Side, Revision],
        scratch: Path,
    ) -> None:
        self.settings = settings
        self.sides = sides
        self._environment = request.environment
        self._scratch = scratch
        self._python = _interpreter(settings, sides["candidate"].repository)
        self._start = private_package(scratch / "package")
        self.device = Device(settings, request.environment)
        self._folders = benchmark_folders(settings.benchmarks, sides)
        self._files = find_files(self._folders["candidate"])
        if not self._files:
            raise NothingCompared(
                f"no file {PATTERN} is below {self._folders['candidate']}, so there is nothing to "
                f"compare; write a benchmark there or name another folder with --benchmarks DIR"
            )

    def build(self, stage: Callable[[str], None]) -> None:
        """Run the build commands of both sides, saying so first."""
        for side in SIDES if self.settings.build else ():
            stage(f"building the {side}")
            environment = self._variables(side, "build", ())
            build(self.sides[side], self.settings.build, self._python, environment, BUILD_TIMEOUT_S)

    def pool(self, name: str) -> WorkerPool:
        """Workers of both sides; each name has compiler and tuning caches of its own."""
        fallbacks = tuple(self._fallback(file) for file in self._files)
        files = tuple(map(str, self._files))
        launches = {
            "baseline": self._launch("baseline", name, protocol.Load(files, fallbacks)),
            "candidate": self._launch(
                "candidate", name, protocol.Load(files, (None,) * len(files))
            ),
        }
        return WorkerPool(
            {side: launches[side] for side in SIDES},
            self.settings.processes,
            self.settings.timeout,
        )

    @contextmanager
    def baseline_cases(self) -> Iterator[Callable[[], protocol.Loaded | None]]:
        """The baseline's own cases on its own code, listed while the workers start.

        None where its benchmarks are the candidate's, so that the workers' list will do.
        """
        own = find_files(self._folders["baseline"])
        if same_files(own, self._folders["baseline"], self._files, self._folders["candidate"]):
            yield lambda: None
            return
        load = protocol.Load(tuple(map(str, own)), (None,) * len(own))
        launch = self._launch("baseline", "listing", load, device="cpu")
        lister = WorkerProcess(launch, 0)
        timeout_s = self.settings.timeout

        def listed() -> protocol.Loaded:
            lister.ask(launch.hello, protocol.Ready, timeout_s)
            found = lister.ask(load, protocol.Loaded, timeout_s)
            lister.kill()
            return found

        try:
            yield listed
        finally:
            lister.kill()

    def roster(self, pool: WorkerPool, own: Callable[[], protocol.Loaded | None]) -> Roster:
        """Agree on the cases of both sides."""
        loaded = {side: pool.workers(side)[0].loaded for side in SIDES}
        baseline, candidate = loaded["baseline"], loaded["candidate"]
        if baseline is None or candidate is None:
            raise WorkerError("a worker", "has not loaded its benchmarks")
        policy = Policy(self.settings.tolerance, self.settings.policy_from == "baseline")
        own_files = own()
        folders = (self._folders["candidate"], self._folders["baseline"])
        roster = agree(candidate, baseline, own_files or baseline, policy, self._wanted, folders)
        if self.settings.filter and not (roster.planned or roster.decided):
            known = ", ".join(case.id for case in candidate.cases) or "none"
            raise NothingCompared(
                f"no case matches {' or '.join(self.settings.filter)}, so there is nothing to "
                f"compare; the cases are: {known}"
            )
        return roster

    def _wanted(self, id_: str) -> bool:
        filters = self.settings.filter
        return not filters or any(f in id_ or fnmatch.fnmatchcase(id_, f) for f in filters)

    def _fallback(self, file: Path) -> str | None:
        own = self._folders["baseline"] / file.relative_to(self._folders["candidate"])
        return str(own) if own != file and own.is_file() else None

    def _launch(
        self, side: Side, name: str, load: protocol.Load, device: str | None = None
    ) -> Launch:
        other: Side = "candidate" if side == "baseline" else "baseline"
        revision, foreign = self.sides[side], self.sides[other]
        paths = import_paths(revision, self.settings.pythonpath)
        logs = self._scratch / "logs"
        logs.mkdir(exist_ok=True)
        device = device or self.device.name
        hello = protocol.Hello(
            device=device,
            foreign_roots=_foreign_roots(revision, foreign),
            own_roots=(*map(str, paths), str(revision.root)),
            keep_editable=not self.settings.build,
            benchmark_roots=tuple({str(folder) for folder in self._shared_folders()}),
            cpus=self.device.cores if device == "cpu" else (),
        )
        variables = self._variables(side, name, paths)
        if device == "cpu":
            variables.setdefault("OMP_NUM_THREADS", str(self.settings.cpus))
        command = (str(self._python), str(self._start))
        return Launch(side, command, variables, revision.root, logs, hello, load)

    def _variables(self, side: Side, name: str, paths: Sequence[Path]) -> dict[str, str]:
        caches = self._scratch / "caches" / name / side
        return worker_environment(self._environment, self.settings.pass_env, paths, caches)

    def _shared_folders(self) -> list[Path]:
        """Folders of benchmarks, unless the code under test lies inside them."""
        roots = [
            path
            for side in SIDES
            for path in import_paths(self.sides[side], self.settings.pythonpath)
        ]
        return [
            folder
            for folder in self._folders.values()
            if not any(root.is_relative_to(folder) for root in roots)
        ]


def _foreign_roots(own: Revision, other: Revision) -> tuple[str, ...]:
    """Folders that a side must not import from: the other side's, and the user's own tree.

    That tree is nobody's side unless it is measured in place.
    """
    home = set() if own.in_place else {str(own.repository)}
    return tuple(sorted({str(other.root), str(other.prefix)} | home))


def _interpreter(settings: Settings, root: Path) -> Path:
    if settings.python is None:
        return Path(sys.executable)
    python = root / settings.python
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise ConfigError(
            f"{python} is no program that we may run, so there is nothing to run workers "
            f"in; give the path of a Python interpreter with --python FILE"
        )
    return python
