"""Benchmarks that treat their worker as none should: harmless or named, and others are judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.conftest import BENCH, WORK, Ran, check, commit, new_repository
from tests.leftovers import left_behind

HEAD = """
    import io
    import os
    import resource
    import signal
    import sys
    import time

    from sns_gate import benchmark
    from pkg import work
"""
HARMLESS = {
    "forks": """
    @benchmark
    def forks():
        calls = []
        def call():
            calls.append(1)
            if len(calls) < 10 and os.fork() == 0:  # in each call it would make the times wild
                os._exit(0)
            return work(2000)
        return call
    """,
    "is_deaf": """
    @benchmark
    def is_deaf():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        return lambda: work(2000)
    """,
    "hides_devices": """
    os.environ["CUDA_VISIBLE_DEVICES"] = "7"
    os.environ.pop("TMPDIR")

    @benchmark
    def hides_devices():
        return lambda: work(2000)
    """,
    "closes_what_it_may": """
    @benchmark
    def closes_what_it_may():
        def call():
            os.closerange(0, 3)
            return work(2000)
        return call
    """,
    "is_mute": """
    @benchmark
    def is_mute():
        sys.stdin = sys.stderr = None
        sys.stdout = io.StringIO()
        sys.stdout.close()
        return lambda: work(2000)
    """,
    "is_loud": """
    print("x" * 100_000)
    os.write(1, b"y" * 100_000)
    os.write(2, b"z" * 100_000)

    @benchmark
    def is_loud():
        return lambda: work(2000)
    """,
}
FATAL = {
    "closes_all": """
    @benchmark
    def closes_all():
        return lambda: os.closerange(0, 256)
    """,
    "comes_back_twice": """
    @benchmark
    def comes_back_twice():
        def call():
            os.fork()
            return work(2000)
        return call
    """,
    "crashes": """
    @benchmark
    def crashes():
        import ctypes
        return lambda: ctypes.string_at(0)
    """,
    "is_alarmed": """
    @benchmark
    def is_alarmed():
        def ring(*_):
            raise TimeoutError("it rang")
        signal.signal(signal.SIGALRM, ring)
        def call():
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            time.sleep(1)
        return call
    """,
    "is_greedy": """
    @benchmark
    def is_greedy():
        usual, most = resource.getrlimit(resource.RLIMIT_AS)
        def call():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, most))
            try:
                return [bytearray(1 << 26) for _ in range(1000)]
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (usual, most))
        return call
    """,
    "is_unspeakable": """
    @benchmark(params={"of": ["\\ud800"]})
    def is_unspeakable(of):
        def call():
            raise ValueError(of)
        return call
    """,
    "never_ends": """
    @benchmark
    def never_ends():
        def call():
            return call()
        return call
    """,
}
#: What is said of each, beyond whose worker it was.
SAID = {
    "closes_all": ("worker-died", "the process exited with 1"),
    "comes_back_twice": ("worker-died", "end such a process with os._exit"),
    "crashes": ("worker-died", "was killed by SIGSEGV"),
    "is_alarmed": ("raised", "TimeoutError: it rang"),
    "is_greedy": ("out-of-memory", "MemoryError"),
    "is_unspeakable[of=?]": ("raised", "ValueError: ?"),
    "never_ends": ("raised", "RecursionError"),
}


def checked(folder: Path, odd: Mapping[str, str]) -> Ran:
    """One check of a usual benchmark and these, each in its own file; nothing is left of it."""
    benches = {f"benchmarks/bench_{name}.py": HEAD + text for name, text in odd.items()}
    files = {"pkg/__init__.py": WORK, "benchmarks/bench_work.py": BENCH,
             ".gitignore": "result.json\n"}  # fmt: skip
    repository, tmp = new_repository(folder / "repository", files | benches), folder / "tmp"
    commit(repository, {"README": "the same"})
    tmp.mkdir()
    ran = check(repository, TMPDIR=str(tmp))
    assert not left_behind(repository, tmp)
    assert "Traceback" not in ran.err
    return ran


def test_what_a_benchmark_does_to_its_own_process_is_no_fault(tmp_path: Path) -> None:
    ran = checked(tmp_path, HARMLESS)
    cases = {*HARMLESS, "square[n=2000]"}
    assert ran.verdicts.keys() == cases, ran.out + ran.err
    assert {id_ for id_ in cases if ran.unchanged(id_)} == cases, ran.out


def test_what_ends_its_worker_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    ran = checked(tmp_path, FATAL)
    assert ran.code == 3, ran.out + ran.err  # it does so on either side
    assert ran.unchanged("square[n=2000]")
    for name, (code, text) in SAID.items():
        assert ran.verdicts[name] == "broken", ran.out
        reason = ran.case(name).reasons[-1]
        assert reason.code == code
        assert text in reason.text
