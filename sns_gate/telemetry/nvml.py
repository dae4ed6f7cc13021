"""One GPU through NVML, by its UUID: clocks, event reasons, counters, power, other processes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

#: Since driver 580.82 the thermal and brake counters have other ids (k8s-test-infra#691).
_MOVED_IN = (580, 82)
_SW_POWER_CAP, _SYNC_BOOST = 74, 76
_OLD_IDS = {"sw_thermal": 251, "hw_thermal": 252, "power_brake": 253}
_NEW_IDS = {"sw_thermal": 269, "hw_thermal": 270, "power_brake": 271}
_EXCLUSIVE_PROCESS, _PROHIBITED = 3, 2


class Gpu:
    """A GPU as NVML knows it; every reading is None where NVML does not give it.

    Args:
        library: the ``pynvml`` module, initialised.
        handle: NVML's handle of the device.
    """

    def __init__(self, library: Any, handle: Any) -> None:  # noqa: ANN401 (pynvml is untyped)
        self._library, self._handle = library, handle
        self.driver_version = str(library.nvmlSystemGetDriverVersion())
        ids = _NEW_IDS if _version(self.driver_version) >= _MOVED_IN else _OLD_IDS
        self._counters = {"sw_power_cap": _SW_POWER_CAP, "sync_boost": _SYNC_BOOST, **ids}

    def sm_mhz(self) -> int | None:
        """SM clock in MHz, up to 100 ms old."""
        return _whole(self._ask("nvmlDeviceGetClockInfo", self._library.NVML_CLOCK_SM))

    def memory_mhz(self) -> int | None:
        """Highest memory clock in MHz."""
        return _whole(self._ask("nvmlDeviceGetMaxClockInfo", self._library.NVML_CLOCK_MEM))

    def supported_sm_mhz(self) -> tuple[int, ...]:
        """SM clocks in MHz that can be pinned at the highest memory clock, in any order."""
        memory = self._ask("nvmlDeviceGetSupportedMemoryClocks")
        if not memory:
            return ()
        steps = self._ask("nvmlDeviceGetSupportedGraphicsClocks", max(memory))
        return tuple(int(step) for step in steps or ())

    def power_range_w(self) -> tuple[float, float] | None:
        """Lowest and highest power limit in watts."""
        limits = self._ask("nvmlDeviceGetPowerManagementLimitConstraints")
        return None if limits is None else (limits[0] / 1000, limits[1] / 1000)

    def reasons(self) -> int | None:
        """Clock event reason bits now."""
        return _whole(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons"))

    def power_w(self) -> float | None:
        """Power in watts, an average of about a second."""
        value = self._ask("nvmlDeviceGetPowerUsage")
        return None if value is None else value / 1000

    def power_limit_w(self) -> float | None:
        """Power limit in watts."""
        value = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        return None if value is None else value / 1000

    def temperature_c(self) -> int | None:
        """Temperature of the die in degrees Celsius."""
        return _whole(self._ask("nvmlDeviceGetTemperature", 0))

    def free_bytes(self) -> int | None:
        """Free device memory."""
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        return None if memory is None else int(memory.free)

    def ecc(self) -> bool | None:
        """Whether ECC is on."""
        modes = self._ask("nvmlDeviceGetEccMode")
        return None if modes is None else bool(modes[0])

    def mig(self) -> bool | None:
        """Whether the device is cut into MIG instances."""
        modes = self._ask("nvmlDeviceGetMigMode")
        return None if modes is None else bool(modes[0])

    def persistence(self) -> bool | None:
        """Whether the driver stays loaded without clients."""
        mode = self._ask("nvmlDeviceGetPersistenceMode")
        return None if mode is None else bool(mode)

    def used_bytes(self) -> int | None:
        """Device memory in use by anybody."""
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        return None if memory is None else int(memory.used)

    def utilisation_pct(self) -> int | None:
        """Share of the last moment in which some kernel ran, in percent."""
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        return None if rates is None else int(rates.gpu)

    def one_process_only(self) -> bool:
        """Whether the compute mode keeps a second process out."""
        return self._ask("nvmlDeviceGetComputeMode") in (_EXCLUSIVE_PROCESS, _PROHIBITED)

    def processes(self) -> int | None:
        """Processes with a compute context here, None where they cannot be listed."""
        listed = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return None if listed is None else len(listed)

    def counters_ns(self) -> dict[str, int]:
        """Cumulative event counters in ns, by name; those that do not answer are left out."""
        fields = self._ask("nvmlDeviceGetFieldValues", list(self._counters.values())) or ()
        found = {}
        for name, value in zip(self._counters, fields, strict=False):
            # Each field has its own return code; the call's says nothing of them.
            if value.nvmlReturn == 0:
                found[name] = int(value.value.ullVal)
        return found

    def _ask(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 (pynvml is untyped)
        function = getattr(self._library, name, None)
        if function is None:
            return None
        try:
            return function(self._handle, *arguments)
        except self._library.NVMLError:
            return None


def open_gpu(uuid: str | None) -> Gpu | None:
    """The GPU of this UUID (with or without its prefix), None where NVML does not answer."""
    import pynvml

    try:
        pynvml.nvmlInit()
        if uuid is None:
            return Gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(0))
        full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        return Gpu(pynvml, pynvml.nvmlDeviceGetHandleByUUID(full))
    except pynvml.NVMLError:
        return None


def shut_down() -> None:
    """Give NVML back once; harmless where it never answered."""
    import pynvml

    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


def nvidia_driver_present() -> bool:
    """Whether this machine has an NVIDIA device or driver, usable or not."""
    if any(Path("/dev").glob("nvidia[0-9]*")) or Path("/proc/driver/nvidia/version").exists():
        return True
    return open_gpu(None) is not None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _version(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split(".")[:2]:
        with contextlib.suppress(ValueError):
            numbers.append(int(part))
    return tuple(numbers)
