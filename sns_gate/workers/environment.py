"""What a worker starts with: allowlisted variables, its own folders, this package alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sns_gate
from sns_gate.accounts import OWN, Account
from sns_gate.errors import ConfigError, RefusedRun
from sns_gate.protocol import Hello, Load
from sns_gate.types import Side

#: Names, and beginnings of names, that builds and workers need to find tools, libraries and GPU.
_ALLOWED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "SHELL", "CC", "CXX")
_ALLOWED_PREFIXES = (
    "LC_", "LD_LIBRARY_PATH", "CUDA_", "NVIDIA_", "TORCH_", "PYTORCH_", "TRITON_", "NCCL_",
    "OMP_", "MKL_", "OPENBLAS_", "VIRTUAL_ENV", "CONDA_PREFIX", "CPATH", "LIBRARY_PATH",
)  # fmt: skip
#: Folders that keep what a tuner chose beside what it compiled.
_TUNED = ("TORCHINDUCTOR_CACHE_DIR",)
_START = "start.py"


@dataclass(frozen=True)
class Launch:
    """How the workers of one side are started.

    Attributes:
        side: on whose side they stand.
        title: what a message calls them.
        command: the interpreter and the file that starts a worker.
        environment: all variables they get, caches of the side included.
        folder: their working directory, the root of the revision.
        logs: where each one's standard error is kept.
        hello: the device and whose code is whose.
        load: the benchmark files.
        account: the user that they run as.
    """

    side: Side
    title: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    logs: Path
    hello: Hello
    load: Load
    account: Account = OWN

    def variables(self, index: int) -> dict[str, str]:
        """What one worker's process gets: what inductor tuned stays with the worker that did.

        A choice read from a common folder would make the workers of a side one replicate. What
        triton compiled is found by its source's digest, carries no choice and is shared.
        """
        kept = dict(self.environment)
        for name in _TUNED:
            if name in kept:
                kept[name] = f"{kept[name]}-{index}"
        return kept


def private_package(folder: Path) -> Path:
    """Copy this package alone into a folder and add the file that starts a worker from it.

    The worker's interpreter gets this folder on its path and never the coordinator's own
    site-packages, so that it sees the user's torch and nothing of ours.

    Raises:
        RefusedRun: there is no room for it.
    """
    source, start = Path(sns_gate.__file__).parent, folder / _START
    text = "from sns_gate.worker.__main__ import main\n\nmain()\n"
    try:
        shutil.copytree(source, folder / "sns_gate", ignore=shutil.ignore_patterns("__pycache__"))
        start.write_text(text, encoding="utf-8")
    except OSError as error:  # of many files, shutil tells all in one
        why = error.strerror or str(error.args[0][0][2])
        raise RefusedRun(
            "no-room",
            f"{folder} cannot be written ({why}), so no worker can be started; free room there, "
            f"or name another folder for temporary files with TMPDIR",
        ) from None
    return start


def worker_environment(
    environment: Mapping[str, str],
    pass_env: Iterable[str],
    paths: Sequence[Path],
    caches: Path,
) -> dict[str, str]:
    """The variables of a build or a worker: an allowlist, an import path and private caches.

    Args:
        environment: the gate's own variables.
        pass_env: further names that the user lets through.
        paths: folders to import from, first to last, before the user's own PYTHONPATH.
        caches: folder of compiler and tuning caches of this revision.

    Raises:
        ConfigError: a folder's name cannot stand in an import path.
    """
    named = {*_ALLOWED, *pass_env}
    kept = {
        name: value
        for name, value in environment.items()
        if name in named or name.startswith(_ALLOWED_PREFIXES)
    }
    for folder in paths:
        if os.pathsep in str(folder):
            raise ConfigError(
                f"the folder {folder} has '{os.pathsep}' in its name, which parts the entries of "
                f"PYTHONPATH, so nothing could be imported from it; work in one of another name"
            )
    path = [*map(str, paths), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    temporary = caches / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return kept | {
        "PYTHONPATH": os.pathsep.join(path),
        # Nothing is written beside anybody's sources, and what an installation compiled is used.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(temporary),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(caches / "extensions"),
        "CUDA_CACHE_PATH": str(caches / "cuda"),
    }
