"""What tier live work gets on a GPU whose clocks float, and why; the device clock beside NVML's.

``python -m studies.tiers_live FILE`` needs a GPU to itself; it changes nothing on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.machine import describe

_STEP_S = 0.005
_PHASES = (("idle", 0.4), ("load", 0.8), ("idle", 0.6))
_HOG = """
import sys, torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
x @ x
torch.cuda.synchronize()
print("running", flush=True)
while True:
    for _ in range(20):
        x @ x
    torch.cuda.synchronize()
"""


def idle(device: str) -> Callable[[], object]:
    """Set up work that leaves the GPU idle most of the time."""
    import torch

    x = torch.randn(1 << 20, device=device)

    def call() -> object:
        time.sleep(0.002)
        return x + 1

    return call


def memory_bound(device: str) -> Callable[[], object]:
    """Set up an addition of long vectors."""
    import torch

    x, y, out = (torch.randn(64 << 20, device=device, dtype=torch.bfloat16) for _ in range(3))
    return lambda: torch.add(x, y, out=out)


def power_capped(device: str) -> Callable[[], object]:
    """Set up a matrix product that draws all the power there is."""
    import torch

    x = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    return lambda: x @ x


def run() -> dict[str, Any]:
    """All three works alone, one of them disturbed, and a step of load."""
    works = {work: _checked(work, None) for work in ("idle", "memory_bound", "power_capped")}
    disturbed = _checked("memory_bound", _Disturbance(after_blocks=4))
    kept = {
        "machine": describe(), "works": works, "disturbed": disturbed, "step": _load_step()
    }  # fmt: skip
    for name, found in (*works.items(), ("disturbed", disturbed)):
        print(name, found["tier"], found["verdict"], found["reasons"], found["cv_pct"])
    return kept


class _Disturbance:
    """Starts a second process on the GPU after so many blocks; as progress of a comparison."""

    def __init__(self, after_blocks: int) -> None:
        self.after_blocks, self.done = after_blocks, 0
        self.process: subprocess.Popen[str] | None = None

    def block_done(self) -> None:
        """Count, and start it when it is time; returns once it runs on the GPU."""
        self.done += 1
        if self.done == self.after_blocks:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _HOG], stdout=subprocess.PIPE, text=True
            )
            if self.process.stdout is not None:
                self.process.stdout.readline()

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class _Progress:
    """Hears of a comparison and disturbs it."""

    def __init__(self, disturbance: _Disturbance | None) -> None:
        self._disturbance = disturbance

    def block_done(self, *_: object) -> None:
        if self._disturbance is not None:
            self._disturbance.block_done()

    def stage(self, text: str) -> None:
        """Nothing is shown."""

    def cases_known(self, count: int) -> None:
        """Nothing is shown."""

    def case_started(self, case: str, *, confirming: bool) -> None:
        """Nothing is shown."""

    def case_finished(self, result: object) -> None:
        """Nothing is shown."""


def _checked(work: str, disturbance: _Disturbance | None) -> dict[str, Any]:
    """One work against itself through the gate: its tier, and the evidence block by block."""
    from sns_gate.config import Layers, Source
    from sns_gate.gate import compare
    from sns_gate.rig import FunctionsRequest

    name = f"studies.tiers_live:{work}"
    asked = {"device": "cuda:0", "processes": 3, "placements": 3}
    with tempfile.TemporaryDirectory() as state:
        layers = Layers(
            Source("the environment", {}),
            Source("the study", asked | {"state-dir": state, "python": sys.executable}),
        )
        request = FunctionsRequest(Path.cwd(), name, name, None, layers, dict(os.environ))
        try:
            result = compare(request, _Progress(disturbance), lambda _: None)
        finally:
            if disturbance is not None:
                disturbance.stop()
    case = result.cases[0]
    evidence = case.evidence
    return {
        "tier": case.tier, "verdict": case.verdict, "mode": case.mode,
        "reasons": {reason.code: reason.text for reason in case.reasons},
        "events": evidence.reasons if evidence else (),
        "mean_mhz": evidence and evidence.clock_mean_mhz,
        "cv_pct": evidence and evidence.clock_cv_pct,
        "started_after_block": disturbance.after_blocks if disturbance else None,
        "others": [block.gpu.other_processes if block.gpu else None for block in case.blocks],
        "nvml_mhz": [block.gpu.nvml_mhz[1] if block.gpu else None for block in case.blocks],
        "power_w": [block.gpu.power_w if block.gpu else None for block in case.blocks],
        "spread": [_spread(block.counted("baseline")) for block in case.blocks],
    }  # fmt: skip


def _spread(times: tuple[float, ...]) -> float:
    ordered = sorted(times)
    return round(ordered[-1] / ordered[len(ordered) // 2], 3)


def _load_step() -> list[list[float]]:
    """Time in s, device clock and NVML's clock in MHz, through idle, load and idle again."""
    import torch

    from sns_gate.telemetry import ClockSampler
    from sns_gate.timers.driver import DeviceKernels

    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    kernels, sampler = DeviceKernels(), ClockSampler(0)
    stream = torch.cuda.current_stream().cuda_stream
    x @ x
    torch.cuda.synchronize()
    rows, start = [], time.perf_counter()
    for phase, seconds in _PHASES:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            if phase == "load":
                for _ in range(3):
                    x @ x
            else:
                time.sleep(_STEP_S)
            kernels.launch_clock(stream)
            torch.cuda.synchronize()
            now = time.perf_counter() - start
            rows.append(
                [round(now, 4), round(kernels.clock_mhz() or 0, 1), sampler.sample_clock_mhz() or 0]
            )
    sampler.shutdown()
    return rows


def section(kept: dict[str, Any], plot: str) -> list[str]:
    """The study's part of the page; ``plot`` is where the step of load is drawn."""
    lines = [
        "## Tiers of live work, clocks floating\n",
        f"{kept['machine']}. Each work against itself through the gate; nothing on the device was "
        f"changed.\n",
        "| work | tier | verdict | mean clock, MHz | clock CV, % | event reasons | what it says |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in (*kept["works"].items(), ("memory_bound, disturbed", kept["disturbed"])):
        events = ", ".join(found["events"]) or "none"
        mean = "" if found["mean_mhz"] is None else f"{found['mean_mhz']:.0f}"
        cv = "" if found["cv_pct"] is None else f"{found['cv_pct']:.2f}"
        lines.append(
            f"| {name.replace('_', ' ')} | {found['tier']} | {found['verdict']} | {mean} | {cv} | "
            f"{events} | {', '.join(found['reasons']) or 'nothing'} |"
        )
    disturbed = kept["disturbed"]
    first = next((i for i, n in enumerate(disturbed["others"]) if n), None)
    seen = "never" if first is None else f"first in block {first + 1}"
    lines += [
        "",
        f"In the last row a second process began to load the card after block "
        f"{disturbed['started_after_block']} and was seen {seen}.\n",
        "The device's own clock and NVML's through a step of load:\n",
        f"![Clock in MHz over time: the device's own reading moves at once, NVML's up to 100 ms "
        f"later]({plot})\n",
    ]
    return lines


def draw(kept: dict[str, Any], path: Path) -> None:
    """Draw the step of load as SVG, the same for the same figures."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "sns-gate"
    from matplotlib import pyplot as plt

    seconds, device, nvml = zip(*kept["step"], strict=True)
    figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
    begin = _PHASES[0][1]
    axes.axvspan(begin, begin + _PHASES[1][1], color="#f2e6d8", label="load")
    axes.plot(seconds, nvml, drawstyle="steps-post", color="#8a8a8a", label="NVML")
    axes.plot(seconds, device, ".", markersize=3, color="#1f5fa8", label="device clock")
    axes.set(xlabel="time, s", ylabel="SM clock, MHz")
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(run()) + "\n", encoding="utf-8")
