"""The writes to one GPU: by NVML as root, else through the root-owned helper; nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from sns_gate.errors import ClockLockError, ClockRefused

HELPER = Path("/usr/local/sbin/sns-gate-clocks")
_HELPER_TIMEOUT_S = 30.0


class ClockWriter(Protocol):
    """Changes one GPU; every call raises ClockLockError where the driver says no.

    That a call returns proves nothing: a driver can refuse and report success.
    """

    def lock_sm(self, mhz: int) -> None:
        """Pin the SM clock."""

    def lock_memory(self, mhz: int) -> None:
        """Pin the memory clock."""

    def set_power_w(self, watts: float) -> None:
        """Set the power limit."""

    def reset_sm(self) -> None:
        """Unpin the SM clock."""

    def reset_memory(self) -> None:
        """Unpin the memory clock."""


def writer_for(
    uuid: str, helper: Sequence[str] | None = None, lifeline: int | None = None
) -> ClockWriter:
    """How this user can change this GPU.

    Args:
        uuid: of the GPU.
        helper: command of the helper, None for sudo and its installed place.
        lifeline: of a supervisor, which is not to act before a helper that this process leaves
            behind has ended.

    Raises:
        ClockLockError: not root, and no helper is installed.
    """
    if helper is not None:
        return HelperWriter(uuid, helper, lifeline)
    if os.geteuid() == 0:
        return NvmlWriter(uuid)
    if HELPER.is_file():
        return HelperWriter(uuid, ("sudo", "-n", str(HELPER)), lifeline)
    raise ClockLockError(
        f"only root may change the clocks of {uuid} and no helper is at {HELPER}, so they stay "
        f"as they are; 'sns-gate doctor' prints how to install it"
    )


class NvmlWriter:
    """Writes through NVML in this process."""

    def __init__(self, uuid: str) -> None:
        import pynvml

        self._library, self._uuid = pynvml, uuid
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError as error:
            raise ClockLockError(f"{uuid} cannot be opened: {error}") from None

    def lock_sm(self, mhz: int) -> None:
        """Pin the SM clock."""
        self._call("nvmlDeviceSetGpuLockedClocks", mhz, mhz)

    def lock_memory(self, mhz: int) -> None:
        """Pin the memory clock."""
        self._call("nvmlDeviceSetMemoryLockedClocks", mhz, mhz)

    def set_power_w(self, watts: float) -> None:
        """Set the power limit."""
        self._call("nvmlDeviceSetPowerManagementLimit", round(1000 * watts))

    def reset_sm(self) -> None:
        """Unpin the SM clock."""
        self._call("nvmlDeviceResetGpuLockedClocks")

    def reset_memory(self) -> None:
        """Unpin the memory clock."""
        self._call("nvmlDeviceResetMemoryLockedClocks")

    def _call(self, name: str, *values: int) -> None:
        try:
            getattr(self._library, name)(self._handle, *values)
        except self._library.NVMLError as error:
            raise ClockRefused(
                f"the driver refused {name} on {self._uuid}: {error}; 'sns-gate doctor' says what "
                f"this user may do"
            ) from None


class HelperWriter:
    """Writes through the helper that root has installed."""

    def __init__(self, uuid: str, command: Sequence[str], lifeline: int | None = None) -> None:
        self._uuid, self._command = uuid, tuple(command)
        # As its input, since sudo closes every other descriptor; nothing is read from it.
        self._input = subprocess.DEVNULL if lifeline is None else lifeline

    def lock_sm(self, mhz: int) -> None:
        """Pin the SM clock."""
        self._call("lock-sm", str(mhz))

    def lock_memory(self, mhz: int) -> None:
        """Pin the memory clock."""
        self._call("lock-memory", str(mhz))

    def set_power_w(self, watts: float) -> None:
        """Set the power limit; the helper takes whole watts."""
        self._call("power", str(round(watts)))

    def reset_sm(self) -> None:
        """Unpin the SM clock."""
        self._call("reset-sm")

    def reset_memory(self) -> None:
        """Unpin the memory clock."""
        self._call("reset-memory")

    def _call(self, *words: str) -> None:
        command = [*self._command, self._uuid, *words]
        try:
            done = subprocess.run(  # noqa: S603 (one UUID and one number)
                command, stdin=self._input, capture_output=True, text=True,
                timeout=_HELPER_TIMEOUT_S, check=False,
            )  # fmt: skip
        except OSError as error:
            raise ClockRefused(f"{self._command[-1]} could not run: {error}") from None
        except subprocess.TimeoutExpired:
            raise ClockLockError(
                f"{self._command[-1]} gave no answer to '{' '.join(words)}' in "
                f"{_HELPER_TIMEOUT_S:.0f} s, so it is not known what it did"
            ) from None
        if done.returncode:
            raise ClockRefused(
                f"{self._command[-1]} refused '{' '.join(words)}': {done.stderr.strip()}; "
                f"'sns-gate doctor' prints the line that lets this user run it"
            )
