"""Candidates that pretend to be faster, and honest code that looks like them.

A cheat ends ``wrong``, ``refused`` or ``broken``, never ``faster`` and never ``unchanged``; its
honest twin is judged as anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sns_gate.types import CaseResult
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
            sys.modules["sns_gate.worker.outputs"].write_output = lambda *_: 0
            sys.modules["sns_gate.worker.workbench"].write_output = lambda *_: 0
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
        judged_at_all = case.verdict.value in ("faster", "not slower", "unchanged", "inconclusive")
        assert judged_at_all or case.note == "tier C", f"{name}: {ran.out}"
        assert case.speedup is not None, name
        assert case.speedup.estimate > 1, name
    assert len(found) == len(TWINS)
