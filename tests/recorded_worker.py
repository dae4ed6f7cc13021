"""A worker process that replays a recorded H200 by the worker's own protocol; needs no torch.

It is started in the place of the workers' interpreter (``--python``), so nothing in the package
knows of it. Variables: ``RECORDED_UUID``, ``RECORDED_MHZ`` (a file with the device's clock),
``RECORDED_SECONDS`` (that a sample takes), ``RECORDED_HELD`` (a file; while it is there, samples of
all cases but the first two wait, and a file beside it names the process that does),
``RECORDED_CASES`` (how many), ``RECORDED_SLOWER`` (the candidate's factor), ``RECORDED_FACTOR`` (a
file of the revision with its own factor; where it holds no number the worker breaks).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer requests until the input closes."""
    # As a real worker, which the kernel ends with the thread that started it.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    side = "candidate" if "candidate" in os.environ["TMPDIR"] else "baseline"
    rng = random.Random(f"{side}{os.getpid()}")
    factor = float(os.environ.get("RECORDED_SLOWER", "1")) if side == "candidate" else 1.0
    if "RECORDED_FACTOR" in os.environ:
        text = Path(os.environ["RECORDED_FACTOR"]).read_text()
        factor = float(text) if text[0].isdigit() else math.nan
    held, placed = Path(os.environ.get("RECORDED_HELD", "")), ""
    for line in sys.stdin:
        request = json.loads(line)
        if request["type"] == "Place":
            placed = request["body"]["case"]
        elif request["type"] == "TakeSample" and placed not in ("case0", "case1"):
            while held.is_file():
                held.with_name(f"held-{os.getpid()}").touch()
                time.sleep(0.01)
        kind, body = answer(request["type"], request["body"], rng, factor)
        sys.stdout.write(json.dumps({"type": kind, "body": body}) + "\n")
        sys.stdout.flush()


def answer(  # noqa: C901, PLR0911 (one reply a request)
    request: str, body: dict[str, Any], rng: random.Random, factor: float
) -> tuple[str, dict[str, Any]]:
    """The reply to one request."""
    ms = 0.2 * factor
    if request == "Hello":
        return "Ready", {
            "version": 1, "pid": os.getpid(), "removed_finders": [],
            "gpu_uuid": _uuid(body["device"]), "timer_step_ns": 32.0,
        }  # fmt: skip
    if request == "Load":
        cases = [
            {
                "id": f"case{n}",
                "file": (body["files"] or body["functions"])[0],
                "line": n,
                "tolerance": None,
                "mode": "auto",
            }
            for n in range(int(os.environ.get("RECORDED_CASES", "1")))
        ]
        return "Loaded", {"cases": cases, "failures": [], "fingerprint": {"gpu_name": "recorded"}}
    if request in ("Place", "Rehearse") and math.isnan(factor):
        return "Failed", {"kind": "raised", "error": "ValueError: broken"}
    if request in ("Place", "Rehearse"):
        return "Placed", {"seconds": 0.0, "input_bytes": 1 << 20}
    if request == "Calibrate":
        return "Calibrated", {
            "call_ns": ms * 1e6, "enqueue_ns": 1e4, "hold_expired": False, "capturable": None,
            "empty_ns": 1300.0, "cache_bytes": 60 << 20, "input_bytes": 1 << 20,
            "warm_ns": ms * 1e6,
        }  # fmt: skip
    if request == "TakeSample":
        start_ns = time.perf_counter_ns()
        time.sleep(float(os.environ.get("RECORDED_SECONDS", "0")))
        waited_ns = (
            time.perf_counter_ns() - start_ns
        )  # as behind a held queue: no work of anybody's
        mhz = float(Path(os.environ["RECORDED_MHZ"]).read_text())
        return "Sampled", {
            "call_ns": ms * 1e6 * (1 + rng.gauss(0, 0.001)), "device_mhz": mhz + rng.gauss(0, 1),
            "held_ns": 5e5 + waited_ns, "wall_ns": 2_000_000, "involuntary": 0,
        }  # fmt: skip
    if request == "WriteOutput":
        Path(body["stem"] + ".json").write_text('{"kind": "float", "text": "1.0"}')
        return "OutputWritten", {"size_bytes": 0}
    if request == "Prove":
        return "Proven", {"own": [str(Path.cwd() / "pkg.py")], "foreign": []}
    return "Released", {"peak_bytes": 1 << 20}


def _uuid(device: str) -> str | None:
    if device == "cpu":
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    number = int(device.partition(":")[2] or 0)
    return visible[number] if visible[0] else os.environ.get("RECORDED_UUID")


if __name__ == "__main__":
    main()
