"""Which GPU is meant: from torch's index to a UUID, under CUDA's variables; it never guesses."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Listed:
    """A GPU as NVML lists it, in the order of PCI addresses."""

    uuid: str
    name: str


def uuid_of(index: int, environment: Mapping[str, str]) -> str | None:
    """The UUID behind torch's index, None where it cannot be known.

    A torch that is loaded and has opened the devices is asked; otherwise CUDA's variables and
    NVML's list are read as CUDA reads them.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return f"GPU-{torch.cuda.get_device_properties(index).uuid}"
    visible = visible_uuids(environment, list_gpus())
    return visible[index] if visible is not None and 0 <= index < len(visible) else None


def visible_uuids(environment: Mapping[str, str], gpus: Sequence[Listed]) -> tuple[str, ...] | None:
    """The UUIDs that CUDA shows a process, in CUDA's order; None where that is not determined.

    ``CUDA_VISIBLE_DEVICES`` holds indexes, beginnings of UUIDs, or MIG names; what follows the
    first entry that names nothing is hidden. Indexes count in PCI order only under
    ``CUDA_DEVICE_ORDER=PCI_BUS_ID``; by default the fastest come first, which says nothing here
    unless all are alike.
    """
    alike = len({gpu.name for gpu in gpus}) <= 1
    ordered = alike or environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return tuple(gpu.uuid for gpu in gpus) if ordered else None
    visible: list[str] = []
    for entry in filter(None, (part.strip() for part in chosen.split(","))):
        if entry.startswith("MIG-"):
            visible.append(entry)
        elif entry.startswith("GPU-"):
            found = [gpu.uuid for gpu in gpus if gpu.uuid.startswith(entry)]
            if len(found) != 1:
                break
            visible.append(found[0])
        elif entry.isdecimal() and int(entry) < len(gpus):
            if not ordered:
                return None
            visible.append(gpus[int(entry)].uuid)
        else:
            break
    return tuple(visible)


def list_gpus() -> tuple[Listed, ...]:
    """All GPUs of this machine as NVML lists them; empty where it does not answer."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return tuple(
            Listed(pynvml.nvmlDeviceGetUUID(h), pynvml.nvmlDeviceGetName(h)) for h in handles
        )
    except pynvml.NVMLError:
        return ()
