"""Candidates that pretend to be faster, and honest code that looks like them.

A cheat ends ``wrong``, ``refused`` or ``broken``, never ``faster`` and never ``unchanged``; its
honest twin is judged as anything else.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from sns_gate.session.consistency import doubtful
from sns_gate.types import Block, CaseResult, Reason
from tests.conftest import Ran, check, commit, new_repository

BENCH = """
    import random
    from sns_gate import benchmark
    import pkg

    @benchmark(params={"n": [200]})
    def total(n):
        numbers = [random.randrange(1000) for _ in range(n)]
        return lambda: pkg.total(numbers)
"""
HONEST = """
    import time

    def total(numbers):
        time.sleep(0.0003)
        return [sum(numbers), max(numbers)]
"""
CHEATS = {
    "a clock that stands still": """
        import time
        time.perf_counter_ns = iter(range(10**12)).__next__

        def total(numbers):
            time.sleep(0.0003)
            return [sum(numbers), max(numbers)]
    """,
    "a worker that says less": """
        import gc
        import time
        from sns_gate.timers.cpu import CpuTimer

        def loop(call, repeats):
            for _ in range(repeats):
                call()
            return repeats * 50_000

        CpuTimer._loop = staticmethod(loop)

        def total(numbers):
            time.sleep(0.0003)
            return [sum(numbers), max(numbers)]
    """,
    "a reply that is rewritten": """
        import time
        from sns_gate.worker import __main__ as worker
        from sns_gate.protocol import Sampled

        encode = worker.encode

        def shorter(reply):
            if isinstance(reply, Sampled):
                object.__setattr__(reply, "call_ns", reply.call_ns / 10)
            return encode(reply)

        worker.encode = shorter

        def total(numbers):
            time.sleep(0.0003)
            return [sum(numbers), max(numbers)]
    """,
    "an answer that is kept for all inputs": """
        import time
        kept = []

        def total(numbers):
            if not kept:
                time.sleep(0.0003)
                kept.append([sum(numbers), max(numbers)])
            return kept[0]
    """,
    "an answer by the address of the inputs' container": """
        kept = {}

        def total(numbers):
            key = len(numbers)
            if key not in kept:
                kept[key] = [sum(numbers), max(numbers)]
            return kept[key]
    """,
    "an answer that is kept by the identity of its inputs": """
        import time
        kept = {}

        def total(numbers):
            if id(numbers) not in kept:
                time.sleep(0.0003)
                kept[id(numbers)] = (numbers, [sum(numbers), max(numbers)])
            return kept[id(numbers)][1]
    """,
    "an answer that comes later": """
        import threading
        import time

        def total(numbers):
            answer = []
            def work():
                time.sleep(0.002)
                answer.extend([sum(numbers), max(numbers)])
            threading.Thread(target=work).start()
            return answer
    """,
    "less work": """
        def total(numbers):
            return [sum(numbers[:100]), max(numbers[:100])]
    """,
    "work in every tenth call alone": """
        import time
        calls = [0, None]

        def total(numbers):
            calls[0] += 1
            if calls[0] % 10 == 1:
                time.sleep(0.0003)
                calls[1] = [sum(numbers), max(numbers)]
            return calls[1]
    """,
    "another type that is not computed": """
        class Later:
            def __init__(self, numbers):
                self.numbers = numbers
            def __iter__(self):
                return iter([sum(self.numbers), max(self.numbers)])

        def total(numbers):
            return Later(numbers)
    """,
    "a list that is filled when it is read": """
        class Later(list):
            def __init__(self, numbers):
                super().__init__([0, 0])
                self.numbers = numbers
            def __iter__(self):
                return iter([sum(self.numbers), max(self.numbers)])

        Later.__name__ = "list"

        def total(numbers):
            return Later(numbers)
    """,
    "nothing": """
        def total(numbers):
            return None
    """,
    "replies written to every descriptor": """
        import os

        def total(numbers):
            line = b'{"type": "Sampled", "body": {"call_ns": 1.0, "device_mhz": null, '
            line += b'"held_ns": null, "wall_ns": 1, "involuntary": 0}}\\n'
            for descriptor in range(3, 40):
                try:
                    os.write(descriptor, line)
                except OSError:
                    pass
            return [sum(numbers), max(numbers)]
    """,
    "the seed of the random inputs": """
        import random

        def total(numbers):
            return [random.random(), max(numbers)]
    """,
    "inputs made easier": """
        def total(numbers):
            found = [sum(numbers), max(numbers)]
            numbers[:] = [0]
            return found
    """,
    "a frozen worker": """
        import sys

        def total(numbers):
            sys.modules["sns_gate.worker.outputs"].write_output = lambda value, stem: 0
            sys.modules["sns_gate.worker.workbench"].write_output = lambda value, stem: 0
            return None
    """,
    "the exit of the worker": """
        import os

        def total(numbers):
            os._exit(0)
    """,
}
#: What these put in the place of ours is not what we use.
WITHOUT_EFFECT = ("a clock that stands still",)
TWINS = {
    "a clock that is read": """
        import time

        def total(numbers):
            start = time.perf_counter_ns()
            while time.perf_counter_ns() - start < 100_000:
                pass
            return [sum(numbers), max(numbers)]
    """,
    "an answer that is kept for its own inputs": """
        import time
        kept = {}

        def total(numbers):
            key = tuple(numbers)
            if key not in kept:
                time.sleep(0.0003)
                kept[key] = [sum(numbers), max(numbers)]
            return kept[key]
    """,
    "a thread that is waited for": """
        import threading
        import time

        def total(numbers):
            answer = []
            def work():
                time.sleep(0.00005)
                answer.extend([sum(numbers), max(numbers)])
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return answer
    """,
    "inputs that are sorted in place": """
        def total(numbers):
            numbers.sort()
            return [sum(numbers), numbers[-1]]
    """,
    "a child that is waited for": """
        import subprocess
        import time
        once = []

        def total(numbers):
            if not once:
                once.append(subprocess.run(["true"], check=True))
            time.sleep(0.00005)
            return [sum(numbers), max(numbers)]
    """,
}


#: These reach for their worker, which other cases share.
ALONE = (
    "a clock that stands still", "a worker that says less", "a reply that is rewritten",
    "replies written to every descriptor", "a frozen worker", "the exit of the worker",
)  # fmt: skip


def judged(folder: Path, candidates: Mapping[str, str]) -> tuple[Ran, dict[str, CaseResult]]:
    """One check of honest modules against these, a case each; results by the candidates' names."""
    names = {f"pkg{n}": name for n, name in enumerate(candidates)}
    benches = {
        f"benchmarks/bench_{module}.py": BENCH.replace("import pkg", f"import {module} as pkg")
        .replace("def total", f"def {module}")
        for module in names
    }  # fmt: skip
    modules = {f"{module}.py": HONEST for module in names}
    repository = new_repository(folder / "repo", modules | benches)
    commit(repository, {f"{module}.py": candidates[name] for module, name in names.items()})
    ran = check(repository)
    assert ran.result is not None, ran.out + ran.err
    return ran, {names[case.id.partition("[")[0]]: case for case in ran.result.cases}


@pytest.mark.parametrize("cheat", ALONE)
def test_who_reaches_for_the_worker_is_not_faster(tmp_path: Path, cheat: str) -> None:
    ran, found = judged(tmp_path, {cheat: CHEATS[cheat]})
    verdict = found[cheat].verdict.value
    if cheat in WITHOUT_EFFECT:
        assert verdict in ("unchanged", "refused"), ran.out
    else:
        assert verdict in ("wrong", "refused", "broken"), ran.out
        assert ran.code in (1, 3), ran.out + ran.err


def test_who_cheats_is_not_faster(tmp_path: Path) -> None:
    cheats = {name: text for name, text in CHEATS.items() if name not in ALONE}
    ran, found = judged(tmp_path, cheats)
    passed = {name: case.verdict.value for name, case in found.items()
              if case.verdict.value not in ("wrong", "refused", "broken")}  # fmt: skip
    assert not passed, ran.out
    assert len(found) == len(cheats) > 8
    by_contention = [name for name, case in found.items() if case.note == "tier C"]
    assert not by_contention, "refused for what it does, and not for what others do here"


def test_who_is_honest_is_judged(tmp_path: Path) -> None:
    ran, found = judged(tmp_path, TWINS)
    for name, case in found.items():
        # How narrow the interval becomes, or that it is refused for load, is up to this machine.
        judged_at_all = case.verdict.value in ("faster", "not slower", "inconclusive")
        assert judged_at_all or case.note == "tier C", f"{name}: {ran.out}"
        assert case.speedup is not None, name
        assert case.speedup.estimate > 1, name
    assert len(found) == len(TWINS)


# ------------------------------------------------------------------ claims and the wall


def block(claimed: tuple[float, float], wall: tuple[float, float], held: float = 0.0) -> Block:
    """A block of eight samples in µs, one call each."""
    return Block(
        placement=0, baseline_worker=0, candidate_worker=0, settling=0, sides="bccb" * 2,
        ms=tuple(claimed[s == "c"] / 1e3 for s in "bccb" * 2), device_mhz=(None,) * 8,
        held_us=(held or None,) * 8, wall_us=tuple(wall[s == "c"] for s in "bccb" * 2),
        log_speedup=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("claimed", "wall", "held"),
    [
        ((1000, 1000), (1200, 1200), 0.0),
        ((1000, 500), (1300, 800), 0.0),
        ((1000, 500), (1600, 1100), 300.0),
        ((500, 1000), (700, 1200), 0.0),
        ((1000, 100), (1200, 310), 0.0),
        ((1000, 990), (1200, 1230), 0.0),
    ],
)
def test_a_gain_that_is_seen_from_outside_is_believed(
    claimed: tuple[float, float], wall: tuple[float, float], held: float
) -> None:
    assert doubtful([block(claimed, wall, held)] * 6, 1) is None


def test_a_gain_that_is_not_seen_from_outside_is_doubted() -> None:
    found = doubtful([block((1000, 100), (1200, 1200))] * 6, 1)
    assert found is not None
    assert found.code == "wall-disagrees"
    assert "claim to take 900 µs less" in found.text
    hidden = doubtful([block((1000, 1000), (1200, 3000))] * 6, 1)
    assert hidden is not None, "a slowdown that is hidden is no gain, and yet a lie"


def test_samples_that_a_busy_host_delays_are_not_doubted() -> None:
    """Its half that is delayed claims more and is answered later; neither side hides a thing."""
    rng = random.Random(7)
    blocks = []
    for _ in range(6):
        one = block((1000, 1000), (1200, 1200))
        delays = [
            600 * (rng.random() < (0.6 if side == "b" else 0.3)) + rng.random()
            for side in one.sides
        ]
        blocks.append(
            one.model_copy(
                update={
                    "ms": tuple(1.0 + delay / 1e3 for delay in delays),
                    "wall_us": tuple(1200.0 + delay + 300 * rng.random() for delay in delays),
                }
            )
        )
    assert doubtful(blocks, 1) is None


def test_what_the_hosts_own_delays_could_be_is_not_doubted() -> None:
    """The baseline's least delayed answers lie 60 µs apart from block to block."""
    uneven = [block((1000, 1000), (1100 + 120 * (n % 2), 1180 + 120 * (n % 2))) for n in range(6)]
    assert doubtful(uneven, 1) is None
    even = [block((1000, 1000), (1100, 1300))] * 6
    assert doubtful(even, 1) is not None


def test_a_device_that_is_busy_after_the_region_is_seen_and_its_twin_is_not() -> None:
    def late(baseline: float, candidate: float) -> Reason | None:
        one = block((100, 60), (0, 0)).model_copy(
            update={"wall_us": (), "late_us": (baseline, candidate)}
        )
        return doubtful([one] * 6, 1)

    found = late(22.0, 70.0)
    assert found is not None
    assert found.code == "work-outlives"
    assert "busy for 48 µs longer" in found.text
    assert late(22.0, 24.0) is None, "a stream that is waited for leaves nothing"
    assert late(70.0, 70.0) is None, "both leave the same"
    assert late(70.0, 22.0) is None, "the baseline's own fault makes no candidate faster"


def test_what_is_noise_is_not_doubted() -> None:
    noisy = [block((1000, 900), (1200, 1100 + 400 * (n % 2))) for n in range(6)]
    assert doubtful(noisy, 1) is None
    assert doubtful([block((1000, 100), (1200, 1200))] * 2, 1) is None, "two blocks say nothing"
