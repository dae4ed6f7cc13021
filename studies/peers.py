"""Other ways to compare one kernel with itself, in one run on the same GPU, beside whole checks.

``python -m studies.peers FILE [ROUNDS]`` needs a GPU and triton; nvbench joins where ``cuda-bench``
is installed. Each way gets fresh inputs a side, a round at a time, all ways in turn.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from studies.kernels import KERNELS
from studies.launches import launch
from studies.machine import describe
from studies.sequential import sequential_compare

ROUNDS = 20
_CHECKS = 2
_WANTED_PCT = 0.5
#: A way without an interval is off by more than this where it misses.
_OFF_PCT = 1.0
#: The zoo's benchmarks that are these kernels, for whole checks.
_IN_ZOO = {
    "add 64 Mi": "add", "softmax 4096²": "softmax", "layer norm 512 by 1024": "layer_norm",
    "matmul 1024": "matmul[n=1024]", "matmul 2048": "matmul[n=2048]",
    "matmul 4096": "matmul[n=4096]", "attention 2048": "attention", "MLP": "mlp",
}  # fmt: skip
_NVBENCH = """
import sys, torch
import cuda.bench as bench
from studies.kernels import KERNELS

setup, fn = KERNELS[sys.argv.pop(1)]

def side(state):
    inputs = setup()
    def launcher(launch):
        stream = torch.cuda.ExternalStream(launch.get_stream().addressof())
        with torch.cuda.stream(stream):
            fn(*inputs)
    state.exec(launcher, batched=False)

def baseline(state): side(state)
def candidate(state): side(state)
bench.register(baseline)
bench.register(candidate)
bench.run_all_benchmarks(sys.argv)
"""

Call = Callable[[], object]
#: Estimate with its interval; a way without one repeats the estimate.
Found = tuple[float, float, float]


def do_bench(candidate: Call, baseline: Call) -> Found:
    """triton's, with its defaults, the median; a ratio without an interval."""
    from triton.testing import do_bench as bench

    ratio = bench(baseline, return_mode="median") / bench(candidate, return_mode="median")
    return ratio, ratio, ratio


def torch_benchmark(candidate: Call, baseline: Call) -> Found:
    """torch.utils.benchmark's blocked_autorange, the medians."""
    from torch.utils.benchmark import Timer

    times = [
        Timer("call()", globals={"call": call}).blocked_autorange(min_run_time=0.2).median
        for call in (baseline, candidate)
    ]
    ratio = times[0] / times[1]
    return ratio, ratio, ratio


def interleaved(candidate: Call, baseline: Call) -> Found:
    """One process, one placement, windows alternating: our own compare without a set-up."""
    import sns_gate

    found = sns_gate.compare(candidate, baseline)
    return found.speedup, found.speedup_ci_lo, found.speedup_ci_hi


WAYS: dict[str, Callable[[Call, Call], Found]] = {
    "do_bench": do_bench,
    "torch.utils.benchmark": torch_benchmark,
    "sequential compare": sequential_compare,
    "one process, interleaved": interleaved,
}


def run(file: Path, rounds: int) -> None:
    """All ways over all kernels, then whole checks of the same kernels, saved after each.

    What the file holds of this kind of machine already is not measured again.
    """
    kept: dict[str, Any] = {"machine": describe(), "kernels": {}, "checks": 0}
    if file.exists():
        kept |= json.loads(file.read_text(encoding="utf-8"))
    kernels: dict[str, dict[str, Any]] = kept["kernels"]
    for name in KERNELS:
        if name in kernels:
            continue
        # In another process, so that this one does not hold the GPU while checks run.
        done = subprocess.run(
            [sys.executable, "-m", "studies.peers", name, str(rounds)],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        ways = json.loads(done.stdout.splitlines()[-1])
        ways["nvbench"] = _nvbench(name)
        kernels[name] = ways
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        print(name, {way: len(_missed(ways[way]["found"])) for way in ways}, flush=True)
    chosen = [word for stem in _IN_ZOO.values() for word in ("--filter", _pattern(stem))]
    for number in range(kept["checks"], _CHECKS):
        _add_check(kernels, launch("same", 0, "--seed", str(number), *chosen))
        kept["checks"] += 1
        file.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def _pattern(stem: str) -> str:
    """All cases that begin so; a bracket stands for a choice in a pattern."""
    return f"{stem.removesuffix(']').replace('[', '?')}*"


def in_this_process(kernel: str, rounds: int) -> dict[str, Any]:
    """A kernel by every way that needs no process of its own, in turn."""
    setup, fn = KERNELS[kernel]
    ways: dict[str, Any] = {way: {"found": [], "seconds": 0.0} for way in WAYS}
    for _ in range(rounds):
        for way, compare in WAYS.items():
            sides = partial(fn, *setup()), partial(fn, *setup())
            start = time.perf_counter()
            ways[way]["found"].append([round(value, 6) for value in compare(*sides)])
            ways[way]["seconds"] += (time.perf_counter() - start) / rounds
    return ways


def _nvbench(kernel: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        start = time.perf_counter()
        # Not from a file: that one's folder would be where 'studies' is looked for.
        command = [sys.executable, "-c", _NVBENCH, kernel, "--json", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode or not out.exists():
            return {"found": [], "seconds": 0.0, "error": done.stderr.strip()[-200:]}
        means = [_nvbench_mean(found) for found in json.loads(out.read_text())["benchmarks"]]
        ratio = round(means[0] / means[1], 6)
        return {"found": [[ratio, ratio, ratio]], "seconds": round(seconds, 3)}


def _nvbench_mean(benchmark: dict[str, Any]) -> float:
    summaries = benchmark["states"][0]["summaries"]
    mean = next(s for s in summaries if s["tag"] == "nv/cold/time/gpu/mean")
    return float(next(entry["value"] for entry in mean["data"] if entry["name"] == "value"))


def _add_check(kernels: dict[str, dict[str, Any]], checked: dict[str, Any]) -> None:
    for name, ways in kernels.items():
        ours = ways.setdefault("sns-gate check", {"found": [], "seconds": 0.0})
        stem = _IN_ZOO[name]
        opening = stem.removesuffix("]") + ("," if "[" in stem else "[")
        cases = [case for case in checked["cases"] if case["id"].startswith(opening)]
        for case in cases:
            if case["speedup"] is not None:
                speedup = case["speedup"]
                ours["found"].append([speedup["estimate"], speedup["low"], speedup["high"]])
        ours["seconds"] = statistics.fmean(case["seconds"] for case in cases)


def _missed(found: list[list[float]]) -> list[float]:
    """The estimates whose interval does not hold 1, or that are off without having any."""
    if all(low == high for _, low, high in found):
        return [e for e, _, _ in found if abs(100 * (e - 1)) > _OFF_PCT]
    return [estimate for estimate, low, high in found if not low <= 1 <= high]


def section(kept: dict[str, Any]) -> list[str]:
    """The study's part of the page."""
    lines = [
        "## Other ways, in the same run\n",
        f"{kept['machine']}. One kernel against itself, fresh inputs each time. A way with an "
        f"interval misses where that does not hold 1, one without where it is off by more than "
        f"{_OFF_PCT:g}%. Scatter is the standard deviation of the estimates; the last column is "
        f"the time that its error (1.96 standard deviations) would need to come down to "
        f"±{_WANTED_PCT}% if it fell with the square root of time.\n",
        "| kernel | way | comparisons | missed | scatter, % | worst, % | seconds | seconds to "
        f"±{_WANTED_PCT}% |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kernel, ways in kept["kernels"].items():
        for way, kept_way in ways.items():
            lines.append(_row(kernel, way, kept_way))
    return [*lines, ""]


def _row(kernel: str, way: str, kept: dict[str, Any]) -> str:
    found, seconds = kept["found"], kept["seconds"]
    if not found:
        return f"| {kernel} | {way} | did not run | | | | | |"
    errors = [100 * (estimate - 1) for estimate, _, _ in found]
    scatter = (statistics.fmean(error**2 for error in errors)) ** 0.5
    needed = seconds * max(1.0, (1.96 * scatter / _WANTED_PCT) ** 2)
    return (
        f"| {kernel} | {way} | {len(found)} | {len(_missed(found))} | {scatter:.2f} | "
        f"{max(map(abs, errors)):.2f} | {seconds:.2f} | {needed:.1f} |"
    )


def main() -> None:
    """Run and keep; with a kernel's name, run that one here and print it."""
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS  # noqa: PLR2004 (argv)
    if sys.argv[1] in KERNELS:
        print(json.dumps(in_this_process(sys.argv[1], rounds)))
        return
    run(Path(sys.argv[1]), rounds)


if __name__ == "__main__":
    main()
