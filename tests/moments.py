"""Moments in the middle of a check that stay until a test lets them go."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path


def held_cases(held: Path, count: int = 3) -> str:
    """Benchmarks of ``work``: all but the first stay within a call while a file is there.

    See ``wait_until_held`` for when they do.
    """
    return f"""
from pathlib import Path
import time

from pkg import work
from sns_gate import benchmark

held = Path({str(held)!r})

@benchmark(params={{"n": {list(range(1, count + 1))}}})
def stays(n):
    calls = []
    def call():
        calls.append(n)
        # Beyond its calibration, so that it stays in the midst of its blocks.
        while n > 1 and len(calls) > 10 and held.exists():
            held.with_suffix(".reached").touch()
            time.sleep(0.01)
        return work(8000)
    return call
"""


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill what is started here however its test ends, since it may hold locks of others."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def wait_until_held(held: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a case stays within a call."""
    while not held.with_suffix(".reached").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def wait_for(text: str, process: subprocess.Popen[str]) -> None:
    """Read what a process prints until it says this."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if text in line:
            return
    raise AssertionError(f"ended without saying {text}: {seen}{process.communicate()}")
