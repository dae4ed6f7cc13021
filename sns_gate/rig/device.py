"""The devices that a check runs on: which ones, and keeping other checks off them meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sns_gate.config import Settings
from sns_gate.errors import RefusedRun
from sns_gate.locking import hold, hold_some
from sns_gate.stats import MIN_CLUSTERS
from sns_gate.telemetry import (
    Census,
    list_gpus,
    nvidia_driver_present,
    open_gpu,
    take,
    uuid_of,
    visible_uuids,
)


class Device:
    """One GPU, or some CPU cores.

    Args:
        name: ``cpu`` or ``cuda:N``.
        uuid: of the GPU, None where it cannot be known from here.
        cores: CPU cores for its workers, empty for all.
        alone: the other GPUs are hidden from its workers, which know it as ``cuda:0``.

    Attributes:
        name: ``cpu`` or ``cuda:N``.
        cores: CPU cores that are kept for the workers, empty for all.
        before: who used the GPU before our workers started.
    """

    def __init__(
        self,
        name: str,
        uuid: str | None = None,
        cores: tuple[int, ...] = (),
        *,
        alone: bool = False,
    ) -> None:
        self.name = name
        self._alone = alone and uuid is not None
        self.uuid = uuid
        self.cores = cores
        self.before = Census(None, None, None)

    @property
    def on_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.name != "cpu"

    @property
    def for_workers(self) -> str:
        """Its name for its workers."""
        return "cuda:0" if self._alone else self.name

    @property
    def variables(self) -> dict[str, str]:
        """What hides the other GPUs, so that no benchmark works on one that nobody watches."""
        return {"CUDA_VISIBLE_DEVICES": self.uuid} if self._alone and self.uuid else {}

    def look_around(self) -> None:
        """See who else uses the GPU, before our own workers do.

        Raises:
            RefusedRun: it takes one process alone.
        """
        gpu = open_gpu(self.uuid) if self.uuid else None
        if gpu is not None and gpu.one_process_only():
            raise RefusedRun(
                "exclusive-process",
                f"{self.name} is in an exclusive compute mode, so at most one worker could "
                f"use it, and a verdict needs {2 * MIN_CLUSTERS}; its owner can allow more "
                f"with 'nvidia-smi -i {self.uuid} -c DEFAULT'",
            )
        self.before = take(gpu)


class Devices:
    """All devices of a check: several GPUs, one, or some CPU cores.

    Args:
        settings: which devices are asked for, and where locks are.
        environment: the gate's own variables, by which CUDA orders its devices.

    Attributes:
        each: of them, in CUDA's order.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        names = _names(settings, environment)
        self._settings = settings
        shares = _shares(len(names))
        self.each = tuple(
            Device(name, _uuid(name, environment), cores, alone=len(names) > 1)
            for name, cores in zip(names, shares, strict=True)
        )

    @property
    def first(self) -> Device:
        """The one that whatever needs no more than one is done on."""
        return self.each[0]

    @property
    def name(self) -> str:
        """All of them as ``--device`` names them."""
        numbers = ",".join(device.name.partition(":")[2] for device in self.each)
        return f"cuda:{numbers}" if self.first.on_gpu else self.first.name

    @contextmanager
    def to_themselves(self, stage: Callable[[str], None], check: str = "") -> Iterator[None]:
        """Keep other checks off the GPUs, or off the CPU cores, while this one runs.

        Where CUDA's order of devices cannot be known from here, all GPUs are kept.
        """
        settings = self._settings
        keep = (settings.state_dir, stage, settings.lock_timeout, check)
        if not self.first.on_gpu:
            cores = [f"cpu-{core}" for core in sorted(os.sched_getaffinity(0), reverse=True)]
            with hold_some(cores, min(settings.cpus, len(cores)), *keep) as held:
                self.first.cores = tuple(sorted(int(name.partition("-")[2]) for name in held))
                yield
            return
        known = [device.uuid for device in self.each if device.uuid is not None]
        everyone = [listed.uuid for listed in list_gpus()]
        with hold(known if len(known) == len(self.each) else everyone, *keep):
            for device in self.each:
                device.look_around()
            yield


def _names(settings: Settings, environment: Mapping[str, str]) -> list[str]:
    """The devices that are asked for, each once, in CUDA's order."""
    asked = settings.device
    if asked == "auto":
        return ["cuda:0" if nvidia_driver_present() else "cpu"]
    if asked in ("cpu", "cuda"):
        return ["cuda:0" if asked == "cuda" else "cpu"]
    which = asked.partition(":")[2]
    if which == "all":
        visible = visible_uuids(environment, list_gpus())
        return [f"cuda:{number}" for number in range(len(visible or list_gpus()) or 1)]
    return [f"cuda:{number}" for number in sorted({int(part) for part in which.split(",")})]


def _uuid(name: str, environment: Mapping[str, str]) -> str | None:
    return None if name == "cpu" else uuid_of(int(name.partition(":")[2]), environment)


def _shares(count: int) -> list[tuple[int, ...]]:
    """CPU cores for each of several GPUs' workers, so that none disturbs another's launches."""
    cores = sorted(os.sched_getaffinity(0))
    if count == 1 or len(cores) < count:
        return [()] * count
    size = len(cores) // count
    return [tuple(cores[n * size : (n + 1) * size]) for n in range(count)]
