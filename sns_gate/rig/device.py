"""The device that a check runs on: which one, and keeping other checks off it meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sns_gate.config import Settings
from sns_gate.errors import RefusedRun
from sns_gate.locking import hold, hold_some
from sns_gate.stats import MIN_CLUSTERS
from sns_gate.telemetry import Census, list_gpus, nvidia_driver_present, open_gpu, take, uuid_of


class Device:
    """One GPU, or some CPU cores.

    Args:
        settings: which device is asked for, and where locks are.
        environment: the gate's own variables, by which CUDA orders its devices.

    Attributes:
        name: ``cpu`` or ``cuda:N``.
        cores: CPU cores that are kept for the workers, empty on a GPU.
        before: who used the GPU before our workers started.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self.name = _name(settings)
        self.cores: tuple[int, ...] = ()
        self.before = Census(None, None, None)
        self._settings = settings
        self._environment = environment

    @property
    def on_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.name != "cpu"

    @contextmanager
    def to_itself(self, stage: Callable[[str], None]) -> Iterator[None]:
        """Keep other checks off the GPU, or off the CPU cores, while this one runs.

        Where CUDA's order of devices cannot be known from here, all GPUs are kept.
        """
        settings = self._settings
        keep = (settings.state_dir, stage, settings.lock_timeout)
        if not self.on_gpu:
            cores = [f"cpu-{core}" for core in sorted(os.sched_getaffinity(0), reverse=True)]
            with hold_some(cores, min(settings.cpus, len(cores)), *keep) as held:
                self.cores = tuple(sorted(int(name.partition("-")[2]) for name in held))
                yield
            return
        uuid = uuid_of(int(self.name.partition(":")[2]), self._environment)
        gpu = open_gpu(uuid) if uuid else None
        names = [uuid] if uuid else [listed.uuid for listed in list_gpus()]
        with hold(names, *keep):
            if gpu is not None and gpu.one_process_only():
                raise RefusedRun(
                    "exclusive-process",
                    f"{self.name} is in an exclusive compute mode, so at most one worker could "
                    f"use it, and a verdict needs {2 * MIN_CLUSTERS}; its owner can allow more "
                    f"with 'nvidia-smi -i {uuid} -c DEFAULT'",
                )
            self.before = take(gpu)
            yield


def _name(settings: Settings) -> str:
    if settings.device != "auto":
        return "cuda:0" if settings.device == "cuda" else settings.device
    return "cuda:0" if nvidia_driver_present() else "cpu"
