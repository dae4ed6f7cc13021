"""How this check's workers start: interpreter, private package, variables, whose code is whose."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sns_gate import protocol
from sns_gate.accounts import account_for
from sns_gate.config import Settings
from sns_gate.errors import ConfigError
from sns_gate.rig.device import Device
from sns_gate.types import Side
from sns_gate.workers import Launch, private_package, worker_environment


@dataclass(frozen=True)
class Code:
    """One side's code as its workers see it.

    Attributes:
        root: their working directory.
        paths: folders to import from, first to last.
        foreign: folders that they must not import from.
        shared: folders of benchmarks, which both sides use.
        keep_editable: finders of editable installs that serve this side's own tree may stay.
    """

    root: Path
    paths: tuple[Path, ...]
    foreign: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    keep_editable: bool = True


class Launching:
    """Starts of workers.

    Args:
        settings: interpreter, cores and variables to hand on.
        environment: the gate's own variables.
        scratch: for the private package, caches and logs.
        home: folder that the interpreter's path is relative to.

    Attributes:
        python: the workers' interpreter.
        account: the user that builds and workers run as.

    Raises:
        ConfigError: the interpreter, or the user that is asked for, cannot be had.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        scratch: Path,
        home: Path,
    ) -> None:
        self.python = _interpreter(settings, home)
        self._settings = settings
        self._environment, self._scratch = environment, scratch
        self.account = account_for(settings.worker_user, self.python, scratch)
        self._start = private_package(scratch / "package")
        self.account.show(scratch / "package")
        self._logs = scratch / "logs"
        self._logs.mkdir(mode=0o700)

    def launch(
        self, side: Side, name: str, code: Code, load: protocol.Load, device: Device
    ) -> Launch:
        """The start of one side's workers.

        Args:
            side: whose they are.
            name: of the pool; each has compiler and tuning caches of its own.
            code: that they run.
            load: the benchmarks.
            device: that they open.

        Raises:
            RevisionError: the user that they run as may not read what they need.
        """
        self.account.show(code.root)
        self.account.require([code.root, *code.paths, *map(Path, load.files)])
        hello = protocol.Hello(
            device=device.for_workers,
            foreign_roots=code.foreign,
            own_roots=(*map(str, code.paths), str(code.root)),
            keep_editable=code.keep_editable,
            benchmark_roots=code.shared,
            cpus=device.cores,
        )
        return Launch(
            side=side,
            title="reference" if load.as_reference else side,
            command=(str(self.python), str(self._start)),
            environment=self._on_device(device, self.variables(side, name, code.paths)),
            folder=code.root,
            logs=self._logs,
            hello=hello,
            load=load,
            account=self.account,
        )

    def listing(self, side: Side, code: Code, load: protocol.Load) -> Launch:
        """The start of one worker that lists cases and needs no device for it."""
        return self.launch(side, "listing", code, load, Device("cpu"))

    def variables(self, side: Side, name: str, paths: tuple[Path, ...]) -> dict[str, str]:
        """The environment of a build or a worker."""
        caches = self._scratch / "caches" / name / side
        new = not caches.exists()
        found = worker_environment(self._environment, self._settings.pass_env, paths, caches)
        if new:
            self.account.hand_over(caches)
        return found | self.account.variables(caches)

    def _on_device(self, device: Device, variables: dict[str, str]) -> dict[str, str]:
        threads = {} if device.on_gpu else {"OMP_NUM_THREADS": str(self._settings.cpus)}
        return threads | variables | device.variables


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
