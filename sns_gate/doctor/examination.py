"""Looks at everything that a check needs and names what would mend it; changes nothing."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sns_gate.clocks import HELPER, helper, journals
from sns_gate.doctor.points import Diagnosis, Health, Point
from sns_gate.errors import ConfigError
from sns_gate.telemetry import Gpu, list_gpus, nvidia_driver_present, open_gpu
from sns_gate.types import MeasurementTier

_TORCH_TIMEOUT_S = 120.0
_MIN_FREE_BYTES = 2 << 30
_MIN_CORES = 2
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_ASK_VERSION = "import sys; print(*sys.version_info[:2])"
#: What workers need (README).
_OLDEST = (3, 10)
_ASK_TORCH = (
    "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda, "
    "torch.cuda.is_available()]))"
)


def examine(python: Path, state_dir: Path) -> Diagnosis:
    """Look at everything that a check needs; changes nothing.

    Args:
        python: the workers' interpreter.
        state_dir: folder of locks and journals.

    Raises:
        ConfigError: the interpreter is none.
    """
    version = _version(python)
    has_gpu = nvidia_driver_present()
    points = [*_software(python, gpu=has_gpu), *_machine(), *_left_journals(state_dir)]
    if version < _OLDEST:
        points.insert(0, _too_old(python, version))
    locks = False
    if has_gpu:
        found = list(_gpus())
        points = [*found, *points]
        locks = _can_pin(points)
    else:
        points.insert(0, _no_gpu())
    stopped = any(point.health is Health.STOPS for point in points)
    tier = MeasurementTier.C if stopped else MeasurementTier.A if locks else MeasurementTier.B
    return Diagnosis(device="cuda" if has_gpu else "cpu", reachable=tier, points=tuple(points))


def _gpus() -> Iterator[Point]:
    listed = list_gpus()
    if not listed:
        yield Point(
            name="driver",
            health=Health.STOPS,
            text="an NVIDIA device or driver is here and NVML does not answer, so nothing could "
            "be said of clocks",
            mend="nvidia-smi  # says what is wrong with the driver",
        )
        return
    for entry in listed:
        gpu = open_gpu(entry.uuid)
        if gpu is None:
            text = f"{entry.name} {entry.uuid} does not answer"
            yield Point(name="gpu", health=Health.STOPS, text=text, mend="nvidia-smi")
            continue
        yield Point(name="gpu", health=Health.OK, text=f"{entry.name}, {entry.uuid}, driver "
                    f"{gpu.driver_version}")  # fmt: skip
        yield from _settings(gpu, entry.uuid)
        yield from _evidence(gpu, entry.uuid)
        yield _permission(gpu)


def _settings(gpu: Gpu, uuid: str) -> Iterator[Point]:
    if gpu.one_process_only():
        yield Point(
            name="compute mode",
            health=Health.STOPS,
            text="one process at a time may use this GPU, and a check needs six or more",
            mend=f"nvidia-smi -i {uuid} -c DEFAULT  # by its owner",
        )
    else:
        text = "several processes may use this GPU at once, as a check does"
        yield Point(name="compute mode", health=Health.OK, text=text)
    if gpu.mig():
        text = "the GPU is cut into MIG instances, whose clocks and power are shared with others"
        yield Point(name="MIG", health=Health.LIMITS, text=text, mend="name an instance's UUID in "
                    "CUDA_VISIBLE_DEVICES, and leave the others idle")  # fmt: skip
    if gpu.persistence() is False:
        yield Point(
            name="persistence",
            health=Health.LIMITS,
            text="the driver unloads when nobody uses the GPU: starts are slow, pinned clocks are "
            "lost",
            mend=f"nvidia-smi -i {uuid} -pm 1  # by its owner",
        )
    elif gpu.persistence():
        yield Point(name="persistence", health=Health.OK, text="the driver stays loaded")
    if gpu.ecc() is not None:
        text = f"ECC is {'on' if gpu.ecc() else 'off'}; it belongs to the fingerprint"
        yield Point(name="ECC", health=Health.OK, text=text)
    limit, limits = gpu.power_limit_w(), gpu.power_range_w()
    if limit is not None and limits is not None:
        text = f"limit {limit:.0f} W of {limits[0]:.0f} to {limits[1]:.0f} W; now {gpu.power_w()} W"
        yield Point(name="power", health=Health.OK, text=text)


def _evidence(gpu: Gpu, uuid: str) -> Iterator[Point]:
    others = gpu.processes()
    if others:
        yield Point(
            name="other processes",
            health=Health.STOPS,
            text=f"{others} other processes use this GPU, so a check would be tier C",
            mend=f"nvidia-smi -i {uuid} --query-compute-apps=pid,name --format=csv  # shows them",
        )
    elif others is None:
        text = "processes on this GPU cannot be listed; sharing is inferred from utilisation"
        yield Point(name="other processes", health=Health.LIMITS, text=text)
    else:
        yield Point(name="other processes", health=Health.OK, text="none use this GPU")
    if gpu.reasons() is None or not gpu.counters_ns():
        text = "clock event reasons or their counters are not given, so tier A is out of reach"
        yield Point(name="event reasons", health=Health.LIMITS, text=text, mend="update the driver")
    else:
        text = f"reasons and {len(gpu.counters_ns())} cumulative counters are given"
        yield Point(name="event reasons", health=Health.OK, text=text)


def _permission(gpu: Gpu) -> Point:
    steps = gpu.supported_sm_mhz()
    name = "pinning clocks"
    if not steps:
        return Point(name=name, health=Health.LIMITS, text="this GPU names no clocks that can be "
                     "pinned, so tier B is the best")  # fmt: skip
    span = f"{min(steps)} to {max(steps)} MHz in {len(steps)} steps"
    if os.geteuid() == 0:
        return Point(name=name, health=Health.OK, text=f"root may pin {span}: --clocks MHZ")
    if HELPER.is_file():
        done = subprocess.run(  # noqa: S603 (asks sudo what it would allow)
            ["sudo", "-n", "-l", str(HELPER)],  # noqa: S607 (the user's own sudo)
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return Point(name=name, health=Health.OK, text=f"{HELPER} may pin {span}")
    return Point(
        name=name,
        health=Health.LIMITS,
        text=f"this user may not pin clocks ({span}), so tier B is the best",
        mend=f"sudo install -o root -g root -m 755 {helper.__file__} {HELPER} && "
        f"echo '{_user()} ALL=(root) NOPASSWD: {HELPER}' | sudo tee /etc/sudoers.d/sns-gate",
    )


def _version(python: Path) -> tuple[int, int]:
    """The version that an interpreter says it has."""
    try:
        done = subprocess.run(  # noqa: S603 (the interpreter is the user's)
            [str(python), "-c", _ASK_VERSION],
            capture_output=True, text=True, errors="replace", timeout=_TORCH_TIMEOUT_S,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "it does not answer as one"
        raise ConfigError(
            f"{python} is no Python that can be run ({why}), so nothing can be said of what "
            f"workers would find in it; give the path of a Python interpreter with --python FILE"
        ) from None
    return major, minor


def _too_old(python: Path, version: tuple[int, int]) -> Point:
    found, least = (".".join(map(str, one)) for one in (version, _OLDEST))
    text = f"{python} is Python {found}, and workers need {least} or newer"
    mend = "name a newer one with --python FILE"
    return Point(name="python", health=Health.STOPS, text=text, mend=mend)


def _software(python: Path, *, gpu: bool) -> Iterator[Point]:
    yield _torch(python, gpu=gpu)
    if gpu:
        found = shutil.which("nvcc")
        text = found or "not on PATH, which matters to benchmarks that build CUDA code alone"
        yield Point(name="nvcc", health=Health.OK, text=text)
    for name, why in (("git", "revisions cannot be read"), ("gcc", "extensions cannot be built")):
        if (found := shutil.which(name)) is not None:
            yield Point(name=name, health=Health.OK, text=found)
        else:
            health = Health.STOPS if name == "git" else Health.LIMITS
            yield Point(name=name, health=health, text=f"not on PATH, so {why}",
                        mend=f"install {name} with the system's package manager")  # fmt: skip


def _torch(python: Path, *, gpu: bool) -> Point:
    said = ""
    try:
        done = subprocess.run(  # noqa: S603 (the interpreter is the user's)
            [str(python), "-c", _ASK_TORCH],
            capture_output=True, text=True, timeout=_TORCH_TIMEOUT_S, check=False,
        )  # fmt: skip
        said = done.stderr
        version, cuda, usable = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        health = Health.STOPS if gpu else Health.LIMITS
        late = isinstance(error, subprocess.TimeoutExpired)
        why = f"no answer in {_TORCH_TIMEOUT_S:.0f} s" if late else _last_line(said)
        absent = "No module named 'torch'" in why
        what = "has none" if absent else f"has one that cannot be imported ({why})"
        return Point(name="torch", health=health, text=f"{python} {what}, so only benchmarks "
                     f"without it can run", mend="name the interpreter that has it with "
                     "--python FILE" if absent else f"see {python} -c 'import torch'")  # fmt: skip
    here = Path.cwd()
    place = python.relative_to(here) if python.is_relative_to(here) else python
    text = f"{version}, CUDA {cuda or 'none'}, in {place}"
    if gpu and not usable:
        return Point(name="torch", health=Health.STOPS, text=f"{text}, cannot use the GPU",
                     mend="install a torch built for this driver, or name another with "
                     "--python FILE")  # fmt: skip
    return Point(name="torch", health=Health.OK, text=text)


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "no reason given")


def _no_gpu() -> Point:
    text = (
        "no NVIDIA device or driver is here, so checks time the CPU, whose clock cannot be read: "
        "tier B is the best"
    )
    return Point(name="gpu", health=Health.LIMITS, text=text)


def _machine() -> Iterator[Point]:
    cores = len(os.sched_getaffinity(0))
    if cores < _MIN_CORES:
        yield Point(name="CPU", health=Health.LIMITS, text="one core: the gate and its workers "
                    "take turns on it", mend="give the runner two cores")  # fmt: skip
    else:
        yield Point(name="CPU", health=Health.OK, text=f"{cores} cores")
    if _GOVERNOR.is_file():
        governor = _GOVERNOR.read_text(encoding="ascii").strip()
        fast = governor == "performance"
        yield Point(
            name="CPU governor",
            health=Health.OK if fast else Health.LIMITS,
            text=governor if fast else f"{governor}: launch times vary with the CPU's clock",
            mend="" if fast else "sudo cpupower frequency-set -g performance",
        )
    else:
        text = "cannot be read here, as in most virtual machines"
        yield Point(name="CPU governor", health=Health.OK, text=text)
    folder = Path(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 (only looked at)
    free = shutil.disk_usage(folder).free
    text = f"{free >> 20} MiB are free in {folder} for worktrees and compiler caches"
    if free < _MIN_FREE_BYTES:
        yield Point(name="disk", health=Health.LIMITS, text=text, mend="free some, or set TMPDIR")
    else:
        yield Point(name="disk", health=Health.OK, text=text)


def _left_journals(state_dir: Path) -> Iterator[Point]:
    for path, journal in journals(state_dir):
        if not journal.owner_alive:
            text = f"{path} names pinned clocks of {journal.uuid} whose check is gone"
            yield Point(name="clocks", health=Health.LIMITS, text=text, mend="sns-gate restore")


def _can_pin(points: list[Point]) -> bool:
    needed = [point for point in points if point.name in ("pinning clocks", "event reasons")]
    return bool(needed) and all(point.health is Health.OK for point in needed)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"#{os.getuid()}"
