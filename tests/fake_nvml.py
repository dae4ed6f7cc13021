"""The outside of the fake NVML: builds its library, and reads and writes its GPUs' shared file."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import fcntl
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

LIBRARY = "libnvidia-ml.so.1"
MAX_GPUS, MAX_PROCESSES, MAX_WRITES = 4, 16, 256
_SOURCE = Path(__file__).with_name("fake_nvml.c")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")
_MAGIC = 0x4C4D564E
_MIB, _GIB = 1 << 20, 1 << 30

T = TypeVar("T")


class Switch(enum.IntFlag):
    """What can be wrong with a GPU, or switched on in it."""

    REFUSE_SILENTLY = 1 << 0
    NO_PERMISSION = 1 << 1
    UNSUPPORTED_FIELDS = 1 << 2
    STUCK_SW_THERMAL = 1 << 3
    HW_SLOWDOWN = 1 << 4
    DRIFT = 1 << 5
    RUNS_LOW = 1 << 6
    GPU_LOST = 1 << 7
    NO_SMI_PROCESSES = 1 << 8
    MIG = 1 << 9
    ECC = 1 << 10
    PERSISTENCE = 1 << 11


class Operation(enum.IntEnum):
    """What a logged call asked for."""

    SET_SM_LOCK = 1
    RESET_SM_LOCK = 2
    SET_MEMORY_LOCK = 3
    RESET_MEMORY_LOCK = 4
    SET_POWER_LIMIT = 5


@dataclass(frozen=True)
class Write:
    """One set or reset call, as it was asked for: MHz, or mW in ``a`` for the power limit."""

    operation: Operation
    gpu: int
    a: int
    b: int
    pid: int
    result: int
    applied: bool


class _Context(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("used_bytes", ctypes.c_uint64),
    )


class _Written(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint32)
        for name in ("operation", "gpu", "a", "b", "pid", "result", "applied", "reserved")
    )


class _Gpu(ctypes.Structure):
    _fields_ = (
        ("uuid", ctypes.c_char * 96),
        ("name", ctypes.c_char * 96),
        ("load", ctypes.c_double),
        ("dynamic_w", ctypes.c_double),
        ("settled_ns", ctypes.c_uint64),
        ("latched_ns", ctypes.c_uint64),
        ("sw_power_cap_ns", ctypes.c_uint64),
        ("sync_boost_ns", ctypes.c_uint64),
        ("sw_thermal_ns", ctypes.c_uint64),
        ("hw_thermal_ns", ctypes.c_uint64),
        ("power_brake_ns", ctypes.c_uint64),
        ("memory_bytes", ctypes.c_uint64),
        ("reserved_bytes", ctypes.c_uint64),
        ("calls", ctypes.c_uint64),
        ("fail_after_calls", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("compute_mode", ctypes.c_uint32),
        ("temperature_c", ctypes.c_uint32),
        ("torch_index", ctypes.c_uint32),
        ("pci_bus", ctypes.c_uint32),
        ("locked_min_mhz", ctypes.c_uint32),
        ("locked_max_mhz", ctypes.c_uint32),
        ("mem_locked_min_mhz", ctypes.c_uint32),
        ("mem_locked_max_mhz", ctypes.c_uint32),
        ("power_limit_mw", ctypes.c_uint32),
        ("default_power_limit_mw", ctypes.c_uint32),
        ("min_power_limit_mw", ctypes.c_uint32),
        ("max_power_limit_mw", ctypes.c_uint32),
        ("latched_sm_mhz", ctypes.c_uint32),
        ("latched_memory_mhz", ctypes.c_uint32),
        ("latched_power_mw", ctypes.c_uint32),
        ("process_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("processes", _Context * MAX_PROCESSES),
    )


class _State(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("gpu_count", ctypes.c_uint32),
        ("driver_not_loaded", ctypes.c_uint32),
        ("cuda_version", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
        ("driver_version", ctypes.c_char * 80),
        ("nvml_version", ctypes.c_char * 80),
        ("write_count", ctypes.c_uint64),
        ("writes", _Written * MAX_WRITES),
        ("gpus", _Gpu * MAX_GPUS),
    )


class _Field(Generic[T]):
    """An attribute that lives in the shared file."""

    def __init__(self, kind: Callable[[Any], T]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type[object], name: str) -> None:
        self._name = name

    def __get__(self, of: FakeGpu | FakeNvml, owner: type[object] | None = None) -> T:
        with of._settled() as raw:
            value = getattr(raw, self._name)
        return self._kind(value.decode() if isinstance(value, bytes) else value)

    def __set__(self, of: FakeGpu | FakeNvml, value: T) -> None:
        with of._settled() as raw:
            setattr(raw, self._name, value.encode() if isinstance(value, str) else value)


class FakeGpu:
    """One GPU seen from outside; time that passed before a change keeps what held then.

    ``fail_after_calls`` is how many calls on the device still succeed before it is lost, and -1
    for no end; a reading of a list takes two calls. A lock of 0 is no lock.
    """

    uuid = _Field(str)
    name = _Field(str)
    load = _Field(float)
    dynamic_w = _Field(float)
    flags = _Field(Switch)
    compute_mode = _Field(int)
    temperature_c = _Field(int)
    torch_index = _Field(int)
    locked_min_mhz = _Field(int)
    locked_max_mhz = _Field(int)
    mem_locked_min_mhz = _Field(int)
    mem_locked_max_mhz = _Field(int)
    power_limit_mw = _Field(int)
    default_power_limit_mw = _Field(int)
    min_power_limit_mw = _Field(int)
    max_power_limit_mw = _Field(int)
    sw_power_cap_ns = _Field(int)
    sync_boost_ns = _Field(int)
    sw_thermal_ns = _Field(int)
    hw_thermal_ns = _Field(int)
    power_brake_ns = _Field(int)
    memory_bytes = _Field(int)
    calls = _Field(int)
    fail_after_calls = _Field(int)

    def __init__(self, fake: FakeNvml, index: int) -> None:
        self._fake, self._index = fake, index

    @property
    def processes(self) -> tuple[tuple[int, int], ...]:
        """Process id and used bytes of every compute context."""
        with self._settled() as raw:
            listed = raw.processes[: raw.process_count]
            return tuple((one.pid, one.used_bytes) for one in listed)

    @processes.setter
    def processes(self, contexts: Sequence[tuple[int, int]]) -> None:
        with self._settled() as raw:
            for i, (pid, used_bytes) in enumerate(contexts):
                raw.processes[i] = _Context(pid=pid, used_bytes=used_bytes)
            raw.process_count = len(contexts)

    @contextlib.contextmanager
    def _settled(self) -> Iterator[Any]:
        with self._fake._settled() as state:
            yield state.gpus[self._index]


class FakeNvml:
    """A machine with GPUs that the library in a folder shows to every process that is told of it.

    Args:
        folder: where the library is, or is built; the file with the state is put there too.
        gpus: how many GPUs, in NVML's order; torch is meant to see them in the reverse one.
    """

    driver_version = _Field(str)
    nvml_version = _Field(str)
    cuda_version = _Field(int)
    driver_not_loaded = _Field(bool)
    write_count = _Field(int)

    def __init__(self, folder: Path, gpus: int = 1) -> None:
        if not 1 <= gpus <= MAX_GPUS:
            raise ValueError(f"gpus must be from 1 to {MAX_GPUS}, not {gpus}")
        self._folder = build(folder)
        self._model = ctypes.CDLL(str(self._folder / LIBRARY))
        if self._model.fake_nvml_state_size() != ctypes.sizeof(_State):
            raise RuntimeError("fake_nvml.c and fake_nvml.py lay the state out differently")
        file, path = tempfile.mkstemp(prefix="state-", dir=self._folder)
        try:
            os.truncate(file, ctypes.sizeof(_State))
            self._state = _State.from_buffer(mmap.mmap(file, ctypes.sizeof(_State)))
        finally:
            os.close(file)
        self.path = Path(path)
        self._begin(gpus)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find this machine."""
        others = os.environ.get("LD_LIBRARY_PATH")
        folders = [str(self._folder), *([others] if others else [])]
        return {"LD_LIBRARY_PATH": ":".join(folders), "FAKE_NVML_STATE": str(self.path)}

    @property
    def torch_order(self) -> tuple[str, ...]:
        """The UUIDs in the order in which torch is meant to see the GPUs."""
        gpus = map(self.gpu, range(self._state.gpu_count))
        return tuple(gpu.uuid for gpu in sorted(gpus, key=lambda gpu: gpu.torch_index))

    def gpu(self, index: int) -> FakeGpu:
        """The GPU at this place in NVML's order."""
        if not 0 <= index < self._state.gpu_count:
            raise IndexError(f"there is no GPU {index}")
        return FakeGpu(self, index)

    def true_sm_mhz(self, index: int) -> int:
        """The clock that the GPU runs at now, whatever NVML shows."""
        with self._settled() as state:
            return int(self._model.fake_nvml_true_sm_mhz(ctypes.byref(state), index))

    def writes(self) -> list[Write]:
        """The set and reset calls of every process, oldest first; no more than the last 256."""
        with self._settled() as state:
            count = int(state.write_count)
            slots = [i % MAX_WRITES for i in range(max(0, count - MAX_WRITES), count)]
            return [_as_write(state.writes[slot]) for slot in slots]

    def _begin(self, gpus: int) -> None:
        state = self._state
        state.magic, state.size, state.gpu_count = _MAGIC, ctypes.sizeof(_State), gpus
        state.cuda_version = 13000
        state.driver_version, state.nvml_version = b"580.95.05", b"13.580.95.05"
        for i in range(gpus):
            gpu = state.gpus[i]
            gpu.uuid = f"GPU-{0x5A000000 + i:08x}-0000-4000-8000-{i + 1:012x}".encode()
            gpu.name = b"NVIDIA H200"
            gpu.dynamic_w = 800
            gpu.settled_ns = time.monotonic_ns()
            gpu.memory_bytes, gpu.reserved_bytes = 141 * _GIB, 600 * _MIB
            gpu.fail_after_calls = -1
            gpu.flags = Switch.ECC | Switch.PERSISTENCE
            gpu.temperature_c = 35
            gpu.torch_index = gpus - 1 - i
            gpu.pci_bus = 0x1B + 0x20 * i
            gpu.power_limit_mw = gpu.default_power_limit_mw = 700_000
            gpu.min_power_limit_mw, gpu.max_power_limit_mw = 200_000, 700_000

    @contextlib.contextmanager
    def _settled(self) -> Iterator[Any]:
        """The state, locked, with counters and readings brought up to now."""
        file = os.open(self.path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            for i in range(self._state.gpu_count):
                self._model.fake_nvml_settle(ctypes.byref(self._state), i)
            yield self._state
        finally:
            os.close(file)


def build(folder: Path) -> Path:
    """Compile the library into a folder, unless it is there, and return the folder."""
    library = folder / LIBRARY
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"{LIBRARY}.{os.getpid()}"
        command = [*_compiler(), *_FLAGS, "-o", str(new), str(_SOURCE), "-lm"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        new.replace(library)
    return folder


def _compiler() -> list[str]:
    """The machine's own compiler, else that of the ziglang wheel."""
    found = shutil.which("gcc") or shutil.which("cc")
    return [found] if found else [sys.executable, "-m", "ziglang", "cc"]


def _as_write(raw: _Written) -> Write:
    return Write(
        operation=Operation(raw.operation),
        gpu=raw.gpu,
        a=raw.a,
        b=raw.b,
        pid=raw.pid,
        result=raw.result,
        applied=bool(raw.applied),
    )
