"""Results of every kind for the tests of the page: with blocks, events and hostile names."""

from __future__ import annotations

import math
import random

from sns_gate.types import (
    Block,
    CaseEvidence,
    CaseResult,
    CpuEvidence,
    GateResult,
    GpuEvidence,
    Measurement,
    MeasurementTier,
    Reason,
    RevisionInfo,
    Speedup,
    Verdict,
)
from tests.test_report import case, result

PROCESSES, PAIRS, SETTLING = 4, 12, 4
SW_POWER_CAP, HW_THERMAL = 0x4, 0x40
#: Each would act if a page let it: in text, in an attribute, in a script, in JSON, in plot markup.
HOSTILE = (
    "<script>window.hit=1</script>",
    "</script><script>window.hit=2</script>",
    '"><img src=x onerror="window.hit=3">',
    "'-window.hit=4-'",
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "a\u2028b\u202ec\x00d\x1b[31m",
    '<a href="https://example.com/">b</a>',
    "]]>&lt;b&gt;&#60;",
    "名前[é=∞]" + "x" * 300,
)


def blocks(
    speedup: float, seed: int, *, rotations: int = 1, noise: float = 0.003, on_gpu: bool = True
) -> tuple[Block, ...]:
    """The blocks of a case, with drifting clocks and now and then an event."""
    rng = random.Random(seed)
    processes = {
        side: [rng.gauss(0, noise / 2) for _ in range(PROCESSES)] for side in ("b", "c")
    }  # fmt: skip
    found = []
    for placement in range(PROCESSES * rotations):
        for worker in range(PROCESSES):
            opponent = (worker + placement) % PROCESSES
            shift = processes["c"][opponent] - processes["b"][worker]
            found.append(_block(rng, (placement, worker, opponent), speedup * math.exp(-shift),
                                noise=noise, on_gpu=on_gpu))  # fmt: skip
    return tuple(found)


def _block(
    rng: random.Random,
    who: tuple[int, int, int],
    speedup: float,
    *,
    noise: float,
    on_gpu: bool,
) -> Block:
    count = 2 * (PAIRS + SETTLING)
    sides = ("bccb" * count)[:count]
    times = {"b": 0.05761, "c": 0.05761 / speedup}
    ms = tuple(times[side] * math.exp(rng.gauss(0, noise)) for side in sides)
    mhz = tuple(1755 + 25 * math.sin(i / 9 + who[0]) + rng.gauss(0, 4) for i in range(count))
    counted = range(2 * SETTLING, count)
    logs = sorted(
        math.log(b / c)
        for b, c in zip(
            (ms[i] for i in counted if sides[i] == "b"),
            (ms[i] for i in counted if sides[i] == "c"),
            strict=True,
        )
    )
    hot = rng.random() < 0.12
    return Block(
        placement=who[0], baseline_worker=who[1], candidate_worker=who[2], settling=2 * SETTLING,
        sides=sides, ms=ms,
        device_mhz=tuple(round(m, 1) for m in mhz) if on_gpu else (None,) * count,
        held_us=(30.0,) * count, log_speedup=logs[len(logs) // 2],
        gpu=GpuEvidence(
            nvml_mhz=(1755, 1740), power_w=512.0, temperature_c=61, other_processes=0,
            reasons=SW_POWER_CAP if rng.random() < 0.3 else HW_THERMAL if hot else 0,
            counters_ms={"sw_power_cap": rng.choice((0.0, 3.2)), "hw_thermal": 4.0 * hot},
        ) if on_gpu else None,
        cpu=CpuEvidence(
            steal_pct=rng.choice((0.0, 0.4)), throttled_ms=0.0,
            involuntary_switches=rng.randrange(3),
        ),
    )  # fmt: skip


def measured(
    id_: str, verdict: Verdict, *interval: float, seed: int = 0, **more: object
) -> CaseResult:
    """A case with an interval and the blocks that could have given it."""
    low, estimate, high = interval
    fields: dict[str, object] = {
        "half_width_pct": 100 * (high / estimate - 1),
        "blocks": blocks(estimate, seed), "calls_per_sample": 24, "seconds": 7.25,
        "file": "benchmarks/bench_kernels.py", "line": 12,
        "covers": ("samples", "placements", "processes"),
        "evidence": CaseEvidence(clock_source="device", clock_mean_mhz=1755.2, clock_cv_pct=0.41,
                                 clock_range_mhz=38.0, reasons=("software power cap",)),
    }  # fmt: skip
    note = str(more.pop("note", ""))
    return case(id_, verdict, low, estimate, high, note=note, **(fields | more))


def every_kind() -> GateResult:
    """One case or more of every verdict, on sides whose fingerprints differ."""
    first = Measurement(
        speedup=Speedup(estimate=0.969, low=0.964, high=0.974), half_width_pct=0.5,
        degrees_of_freedom=9.1, blocks=blocks(0.969, 71),
    )  # fmt: skip
    boom = "Traceback (most recent call last):\n" + "\n".join(
        f'  File "bench_kernels.py", line {line}, in gelu\n    x = <T>({line})' for line in range(9)
    ) + "\nValueError: boom"  # fmt: skip
    cases = (
        measured("softmax[n=1024]", Verdict.UNCHANGED, 0.9981, 1.0001, 1.002, seed=1),
        measured("softmax[n=4096]", Verdict.UNCHANGED, 0.9852, 0.9901, 0.995, seed=2,
                 note="slower within tolerance"),
        measured("add", Verdict.SLOWER, 0.9673, 0.9713, 0.9753, seed=3, screening=first),
        measured("scale", Verdict.SLOWER, 0.2474, 0.2491, 0.2509, seed=4),
        measured("mlp", Verdict.FASTER, 1.0961, 1.1072, 1.1183, seed=5),
        measured("rms_norm", Verdict.NOT_SLOWER, 0.9961, 1.0112, 1.0265, seed=6),
        measured("sort", Verdict.INCONCLUSIVE, 0.9612, 1.0, 1.041, seed=7, note="too wide",
                 reasons=(Reason(code="needs-more-processes", text="more placements would not"),)),
        measured("topk", Verdict.REFUSED, 0.99, 1.0, 1.01, seed=8, note="tier C",
                 reasons=(Reason(code="gpu-shared", text="another process used this GPU"),))
        .model_copy(update={"tier": MeasurementTier.C}),
        measured("attention[causal]", Verdict.SLOWER, 1.31, 1.34, 1.37, seed=9,
                 reference="torch_attention", at_least=1.5),
        case("gelu", Verdict.BROKEN, broken_sides=("candidate",), reasons=(
            Reason(code="raised", text="candidate worker 0: ValueError: boom", detail=boom),)),
        case("layer_norm", Verdict.WRONG, reasons=(
            Reason(code="outputs-differ", text="the largest difference is 0.25 at [3, 17]"),)),
        case("rope", Verdict.ADDED, reasons=(
            Reason(code="not-defined", text="the baseline does not define it"),)),
        case("dropout", Verdict.REMOVED, reasons=(
            Reason(code="removed", text="the candidate does not define it"),)),
    )  # fmt: skip
    found = result(*cases)
    side = found.candidate
    assert side.fingerprint is not None
    other = side.fingerprint.model_copy(update={"torch_version": "2.12.0"})
    return found.model_copy(
        update={
            "candidate": side.model_copy(update={"fingerprint": other, "loaded": ("pkg/a.py",)}),
            "disclosures": (Reason(code="dirty", text="the candidate has uncommitted changes"),),
        }
    )


def hostile() -> GateResult:
    """A result whose every text would act on a page that let it."""
    cases = tuple(
        measured(
            name, Verdict.INCONCLUSIVE, 0.9612, 1.0, 1.041, seed=at, note=name, mode=name,
            covers=(name,), file=name, line=1, reference=name,
            reasons=(Reason(code="raised", text=name, detail=f"{name}\n{name}"),),
        )
        for at, name in enumerate(HOSTILE)
    )  # fmt: skip
    every = " ".join(HOSTILE)
    found = result(*cases, device=every, tool_version=every)
    side = found.baseline.model_copy(update={"ref": every, "loaded": HOSTILE})
    assert side.fingerprint is not None
    spoilt = side.fingerprint.model_copy(update={"gpu_name": every, "cpu_model": HOSTILE[2]})
    return found.model_copy(
        update={
            "baseline": side.model_copy(update={"fingerprint": spoilt}),
            "candidate": RevisionInfo(ref=every, commit=HOSTILE[0], fingerprint=side.fingerprint),
            "disclosures": tuple(Reason(code="dirty", text=name) for name in HOSTILE),
        }
    )


def many(count: int, rotations: int = 1) -> GateResult:
    """So many cases, each with all its blocks."""
    rng = random.Random(0)
    drawn = []
    for at in range(count):
        estimate = math.exp(rng.gauss(0, 0.012))
        low, high = estimate * 0.997, estimate * 1.003
        if high < 1 / 1.02:
            verdict = Verdict.SLOWER
        elif low < 1 / 1.02:
            verdict = Verdict.INCONCLUSIVE
        else:
            verdict = Verdict.UNCHANGED if high <= 1.02 else Verdict.NOT_SLOWER
        name = f"kernel_{at // 20}[n={1 << at % 20},dtype=float16]"
        one = measured(name, verdict, low, estimate, high, seed=at)
        drawn.append(one.model_copy(update={"blocks": blocks(estimate, at, rotations=rotations)}))
    return result(*drawn)
