"""The CUDA driver API through ``ctypes``: loads the two PTX kernels and launches them."""

from __future__ import annotations

import ctypes
from types import TracebackType

from sns_gate.timers import ptx

HOLD_LIMIT_NS = 50_000_000
CLOCK_SPIN_NS = 20_000
_HOST_MAPPED = 0x2
_HELD, _CYCLES, _ELAPSED = 1, 2, 3
_WORDS = 4


class DriverError(RuntimeError):
    """A call of the CUDA driver failed."""


class DeviceKernels:
    """The hold and the clock kernel on the calling thread's current context.

    One pinned page carries the flag and the kernels' answers, so no copy is needed to read them.
    """

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.SOURCE))
        self._hold = self._function(module, b"sns_hold")
        self._clock = self._function(module, b"sns_clock")
        page = ctypes.c_void_p()
        self._check(
            "cuMemHostAlloc",
            ctypes.byref(page),
            ctypes.c_size_t(_WORDS * 8),
            ctypes.c_uint(_HOST_MAPPED),
        )
        if page.value is None:
            raise DriverError("cuMemHostAlloc returned no memory")
        self._base = page.value
        self._words = (ctypes.c_uint64 * _WORDS).from_address(self._base)

    def hold(self, stream: int) -> Hold:
        """Hold the stream until the context is left, or until the hold's time limit."""
        return Hold(self, stream)

    def launch_hold(self, stream: int) -> None:
        """Enqueue the hold kernel; ``open_hold`` lets the stream go on."""
        self._words[0] = 0
        self._words[_HELD] = 0
        self._launch(self._hold, stream, self._base, HOLD_LIMIT_NS, self._base + _HELD * 8)

    def open_hold(self) -> None:
        """Let a held stream go on."""
        self._words[0] = 1

    def launch_clock(self, stream: int) -> None:
        """Enqueue a reading of the device's clock."""
        self._words[_ELAPSED] = 0
        self._launch(self._clock, stream, CLOCK_SPIN_NS, self._base + _CYCLES * 8)

    def held_ns(self) -> int:
        """How long the last hold lasted; valid once the device has finished."""
        return int(self._words[_HELD])

    def clock_mhz(self) -> float | None:
        """The last reading of the device's clock in MHz, None where it did not run."""
        elapsed = int(self._words[_ELAPSED])
        return 1000.0 * int(self._words[_CYCLES]) / elapsed if elapsed else None

    def _function(self, module: ctypes.c_void_p, name: bytes) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._check("cuModuleGetFunction", ctypes.byref(function), module, name)
        return function

    def _launch(self, function: ctypes.c_void_p, stream: int, *arguments: int) -> None:
        values = [ctypes.c_uint64(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        one, none = ctypes.c_uint(1), ctypes.c_uint(0)
        self._check(
            "cuLaunchKernel", function, one, one, one, one, one, one, none,
            ctypes.c_void_p(stream), pointers, None,
        )  # fmt: skip

    def _check(self, name: str, *arguments: object) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, ctypes.byref(text))
            raise DriverError(f"{name} failed: {(text.value or b'unknown').decode()} ({code})")


class Hold:
    """A held stream; leaving the context lets it go on."""

    def __init__(self, kernels: DeviceKernels, stream: int) -> None:
        self._kernels, self._stream = kernels, stream

    def __enter__(self) -> None:
        """Enqueue the hold."""
        self._kernels.launch_hold(self._stream)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the stream go on, whatever happened meanwhile."""
        self._kernels.open_hold()
