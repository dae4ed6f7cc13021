#!/usr/bin/env python3
"""Changes the clocks of one GPU for a user who may not; standard library alone, owned by root.

Usage: sns-gate-clocks GPU-UUID ACTION, where ACTION is one of
  lock-sm MHZ, lock-memory MHZ, power WATTS, reset-sm, reset-memory

It accepts one UUID and one validated number, calls NVML, and does nothing else. ``sns-gate doctor``
prints how to install it and the one line that lets a user run it through sudo.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable

_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER = re.compile(r"[0-9]{1,5}")
#: What each action takes, and the NVML call it makes with it.
_ACTIONS: dict[str, tuple[str, Callable[[int], tuple[int, ...]] | None]] = {
    "lock-sm": ("nvmlDeviceSetGpuLockedClocks", lambda n: (n, n)),
    "lock-memory": ("nvmlDeviceSetMemoryLockedClocks", lambda n: (n, n)),
    "power": ("nvmlDeviceSetPowerManagementLimit", lambda n: (n * 1000,)),
    "reset-sm": ("nvmlDeviceResetGpuLockedClocks", None),
    "reset-memory": ("nvmlDeviceResetMemoryLockedClocks", None),
}
_USAGE, _REFUSED = 2, 1


def main(arguments: list[str]) -> int:
    """Do one action; 0 done, 1 refused by the driver with its code on stderr, 2 wrong usage."""
    if len(arguments) not in (2, 3) or not _UUID.fullmatch(arguments[0]):
        sys.stderr.write((__doc__ or "").split("\n\n")[1] + "\n")
        return _USAGE
    uuid, action, *numbers = arguments
    name, values = _ACTIONS.get(action, ("", None))
    fits = len(numbers) == (values is not None) and all(map(_NUMBER.fullmatch, numbers))
    if not name or not fits:
        sys.stderr.write(f"sns-gate-clocks: '{action}' with {numbers} is no action\n")
        return _USAGE
    library = ctypes.CDLL("libnvidia-ml.so.1")
    handle = ctypes.c_void_p()
    code = library.nvmlInit_v2()
    code = code or library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
    arguments_ = [ctypes.c_uint(v) for v in values(int(numbers[0]))] if values else []
    code = code or getattr(library, name)(handle, *arguments_)
    if code:
        sys.stderr.write(f"sns-gate-clocks: NVML refused {action} with code {code}\n")
        return _REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
