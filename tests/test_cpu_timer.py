"""The CPU's timer: whose work it is that takes the core away from a sample."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sns_gate.protocol import Recipe
from sns_gate.timers.cpu import CpuTimer

#: Long enough for the scheduler to change whose turn it is on any kernel.
SAMPLE_S = 0.2


@pytest.fixture
def core() -> Iterator[int]:
    """One core, which this thread and whatever it starts run on."""
    before = os.sched_getaffinity(0)
    chosen = min(before)
    os.sched_setaffinity(0, {chosen})
    yield chosen
    os.sched_setaffinity(0, before)


def spins() -> None:
    end_s = time.thread_time() + 0.01
    while time.thread_time() < end_s:
        pass


def starts_threads() -> None:
    threads = [threading.Thread(target=spins) for _ in range(2)]
    for thread in threads:
        thread.start()
    spins()
    for thread in threads:
        thread.join()


def switches_of(call: Callable[[], None]) -> int:
    timer = CpuTimer()
    timer.arrange([call], Recipe("loop", calls=round(SAMPLE_S / 0.01)))
    return timer.sample().involuntary


@contextmanager
def other_work(core: int) -> Iterator[None]:
    """Another process that never stops on this core."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            assert os.sched_getaffinity(other.pid) == {core}
            yield
        finally:
            other.kill()


def test_other_work_on_the_core_is_counted(core: int) -> None:
    with other_work(core):
        assert switches_of(spins) > 0


def test_threads_of_the_calls_own_are_no_other_work(core: int) -> None:
    del core
    assert switches_of(starts_threads) == 0


def test_a_thread_that_only_waits_hides_no_other_work(core: int) -> None:
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        with other_work(core):
            assert switches_of(spins) > 0
    finally:
        done.set()
        waiting.join()
