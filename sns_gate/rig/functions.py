"""Two set-up functions made ready to be measured where they are, without any repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sns_gate import protocol
from sns_gate.config import Layers, Settings
from sns_gate.errors import UsageError, WorkerError
from sns_gate.rig.device import Device, Devices
from sns_gate.rig.launching import Code, Launching
from sns_gate.rig.mount import is_wanted, refuse_filter
from sns_gate.session import PlannedCase, Roster, outputs_asked
from sns_gate.types import SIDES, Side
from sns_gate.workers import WorkerPool


@dataclass(frozen=True)
class FunctionsRequest:
    """What is asked of a comparison of two set-up functions.

    Attributes:
        folder: to import from, the user's own.
        candidate: ``module:function`` or ``file.py:function``.
        baseline: likewise.
        at_least: speedup that is asked for, None where the tolerance says it.
        layers: settings above the configuration file.
        environment: the gate's own variables.
    """

    folder: Path
    candidate: str
    baseline: str
    at_least: float | None
    layers: Layers
    environment: Mapping[str, str]


class FunctionsRig:
    """Two set-up functions in one folder; both sides' workers run the same code.

    Attributes:
        settings: that hold.
        devices: to measure on.
        roots: where each side's files are, one folder.
    """

    def __init__(self, request: FunctionsRequest, settings: Settings, scratch: Path) -> None:
        self.settings = settings
        self.devices = Devices(settings, request.environment)
        self.roots: dict[Side, Path] = dict.fromkeys(SIDES, request.folder)
        self._request = request
        self._launching = Launching(settings, request.environment, scratch, request.folder)

    def build(self, stage: Callable[[str], None]) -> None:
        """There is nothing to build: both run what lies there."""
        del stage

    def pool(self, name: str, processes: int, device: Device) -> WorkerPool:
        """So many workers a side; each name has compiler and tuning caches of its own."""
        folder, request = self._request.folder, self._request
        paths = tuple(folder / entry for entry in self.settings.pythonpath or _found(folder))
        launches = {
            side: self._launching.launch(
                side,
                name,
                Code(root=folder, paths=paths),
                protocol.Load(
                    files=(),
                    fallbacks=(),
                    as_reference=side == "baseline",
                    functions=(request.candidate, request.baseline),
                ),
                device,
            )
            for side in SIDES
        }
        return WorkerPool(launches, processes, self.settings.start_timeout)

    reference_pool = pool

    @contextmanager
    def baseline_cases(self) -> Iterator[Callable[[], protocol.Loaded | None]]:
        """There is no other revision whose cases would have to be listed."""
        yield lambda: None

    def roster(
        self,
        loaded: Mapping[Side, protocol.Loaded | None],
        own: Callable[[], protocol.Loaded | None],
    ) -> Roster:
        """The cases that the functions define.

        Raises:
            UsageError: a function cannot be found or imported.
        """
        del own
        found = loaded["candidate"]
        if found is None:
            raise WorkerError("a worker", "has not loaded the functions")
        if found.failures:
            failure = found.failures[0]
            raise UsageError(
                f"{failure.file} cannot be loaded, so there is nothing to compare: "
                f"{failure.error}; name each as module:function or file.py:function, to be "
                f"imported from {self._request.folder} or --pythonpath\n{failure.traceback}"
            )
        wanted = partial(is_wanted, filters=self.settings.filter)
        planned = [
            PlannedCase(
                spec,
                self.settings.tolerance if spec.tolerance is None else spec.tolerance,
                at_least=self._request.at_least,
                proven=(),
                outputs=outputs_asked(spec),
                memory_tolerance=(
                    self.settings.memory_tolerance
                    if spec.memory_tolerance is None
                    else spec.memory_tolerance
                ),
            )
            for spec in found.cases
            if wanted(spec.id)
        ]
        if not planned:
            refuse_filter(self.settings.filter, found.cases)
        return Roster(tuple(planned), ())


def _found(folder: Path) -> tuple[str, ...]:
    return ("src", ".") if (folder / "src").is_dir() else (".",)
