"""The half of the fingerprint that only the worker's interpreter knows; standard library only."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import sys

#: The wheels that carry cuBLAS, newest naming first; torch itself does not say its version.
_CUBLAS = ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12", "nvidia-cublas-cu11")


def capture(device: str) -> dict[str, str | int | None]:
    """Versions of Python, torch and Triton, and the device as torch sees it.

    torch is looked at only if it is loaded: a benchmark without it has no torch version.
    """
    found: dict[str, str | int | None] = {"python_version": platform.python_version()}
    torch = sys.modules.get("torch")
    if torch is None:
        return found
    found["torch_version"] = str(torch.__version__)
    found["triton_version"] = _installed("triton")
    found["cuda_version"] = torch.version.cuda
    found["cublas_version"] = next(filter(None, map(_installed, _CUBLAS)), None)
    if device != "cpu" and torch.cuda.is_available():
        with contextlib.suppress(AttributeError, RuntimeError):
            found["cudnn_version"] = str(torch.backends.cudnn.version())
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        found["gpu_name"] = str(properties.name)
        found["compute_cap"] = f"{properties.major}.{properties.minor}"
        found["sm_count"] = int(properties.multi_processor_count)
    return found


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
