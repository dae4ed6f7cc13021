"""The pool and the protocol, with workers that misbehave on purpose."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from sns_gate import protocol
from sns_gate.errors import CallRaised, RefusedRun, WorkerDied, WorkerHung
from sns_gate.types import SIDES, Side
from sns_gate.workers import Launch, WorkerPool, WorkerProcess

HELLO = protocol.Hello("cpu", (), (), keep_editable=True)
LOAD = protocol.Load((), ())
#: A worker that answers as its script says: ``reply(type, **body)`` and ``request`` are there.
FAKE = """
import json, os, sys, time
index = int(sys.argv[1]) if len(sys.argv) > 1 else 0
def reply(type, **body):
    sys.stdout.write(json.dumps({"type": type, "body": body}) + "\\n"); sys.stdout.flush()
READY = dict(version=1, pid=1, removed_finders=[])
for line in sys.stdin:
    request = json.loads(line)["type"]
"""


def launch(folder: Path, script: str, side: Side = "baseline") -> Launch:
    path = folder / "fake.py"
    path.write_text(FAKE + textwrap.indent(textwrap.dedent(script), "    "))
    return Launch(
        side, side, (sys.executable, str(path)), dict(os.environ), folder, folder, HELLO, LOAD
    )


def worker(folder: Path, script: str) -> WorkerProcess:
    return WorkerProcess(launch(folder, script), 0)


@pytest.mark.parametrize(
    "line",
    ["nonsense", "{}", "[1]", '{"type": "Ready", "body": {}}', '{"type": "Ready", "body": []}',
     '{"type": "Nothing", "body": {}}', "[" * 50_000,
     '{"type": "Placed", "body": {"seconds": "x"}}'],
)  # fmt: skip
def test_what_is_no_reply_ends_the_worker_and_never_the_gate(tmp_path: Path, line: str) -> None:
    fake = worker(tmp_path, f"print({line!r}); sys.stdout.flush()")
    with pytest.raises(WorkerDied, match="no reply"):
        fake.ask(HELLO, protocol.Ready, 10)
    assert not fake.alive


#: As a real worker: the kernel ends it with its parent.
TIED = "import ctypes; ctypes.CDLL(None).prctl(1, 9); reply('Ready', **READY)"


def test_a_worker_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[WorkerProcess] = []

    def start() -> None:
        started.append(worker(tmp_path, TIED))
        started[0].ask(HELLO, protocol.Ready, 10)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    time.sleep(0.3)
    try:
        assert started[0].ask(HELLO, protocol.Ready, 10).pid == 1
    finally:
        started[0].kill()


def test_a_worker_that_no_signal_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = worker(tmp_path, "time.sleep(60)")
    end = stuck._kill_all
    monkeypatch.setattr("sns_gate.workers.process._KILL_S", 0.0)
    monkeypatch.setattr("sns_gate.workers.process._AGAIN_S", 0.05)
    monkeypatch.setattr(stuck, "_kill_all", lambda: None)
    stuck.send(HELLO)
    stuck.kill()
    assert stuck._process.poll() is None
    assert not stuck.alive, "so that another one takes its place"
    end()
    stuck._process.wait()


def test_a_reply_out_of_turn_ends_the_worker(tmp_path: Path) -> None:
    fake = worker(tmp_path, "reply('Released', peak_bytes=0)")
    with pytest.raises(WorkerDied, match="answered Released out of turn"):
        fake.ask(HELLO, protocol.Ready, 10)


def test_a_worker_that_says_nothing_is_killed_with_its_children(tmp_path: Path) -> None:
    fake = worker(
        tmp_path,
        """
        import subprocess
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        time.sleep(600)
        """,
    )
    deadline = time.monotonic() + 10
    fake.send(HELLO)
    while not (children := psutil.Process(fake.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(WorkerHung, match=r"imported its benchmarks within \d+ s"):
        fake.receive(protocol.Ready, 0.1)
    assert not fake.alive
    gone, _ = psutil.wait_procs(children, timeout=5)
    assert gone == children


@pytest.mark.parametrize(
    ("expected", "text", "option"),
    [(protocol.Ready, "imported its benchmarks", " --start-timeout"),
     (protocol.Loaded, "imported its benchmarks", " --start-timeout"),
     (protocol.Placed, "had not answered", " --timeout"),
     (protocol.Sampled, "taken no sample", "")],
)  # fmt: skip
def test_who_waits_too_long_is_told_for_what_and_what_lengthens_it(
    tmp_path: Path, expected: type[protocol.Reply], text: str, option: str
) -> None:
    fake = worker(tmp_path, "time.sleep(600)")
    fake.send(HELLO)
    with pytest.raises(WorkerHung) as caught:
        fake.receive(expected, 0.1)
    assert text in str(caught.value)
    named = [word for word in (" --timeout", " --start-timeout") if word in str(caught.value)]
    assert named == ([option] if option else [])


def test_a_death_names_its_exit_and_keeps_the_log(tmp_path: Path) -> None:
    fake = worker(tmp_path, "sys.stderr.write('last words'); sys.stderr.flush(); os._exit(9)")
    with pytest.raises(WorkerDied, match="exited with 9") as caught:
        fake.ask(HELLO, protocol.Ready, 10)
    assert caught.value.traceback == "last words"
    with pytest.raises(WorkerDied):
        fake.ask(HELLO, protocol.Ready, 10)


def test_a_failure_is_an_error_with_its_traceback_and_the_worker_lives(tmp_path: Path) -> None:
    fake = worker(tmp_path, "reply('Failed', kind='raised', error='E: x', traceback='tb')")
    with pytest.raises(CallRaised) as caught:
        fake.ask(HELLO, protocol.Ready, 10)
    assert (caught.value.text, caught.value.traceback) == ("E: x", "tb")
    assert fake.alive
    fake.kill()


def counted(folder: Path, allowed: int) -> dict[Side, Launch]:
    """Workers of which only so many a side can open the device, as on a full GPU."""
    script = f"""
        if request == "Hello":
            slot = None
            for n in range({allowed}):
                try:
                    os.mkdir(f"slot-{{os.environ['SIDE']}}-{{n}}"); slot = n; break
                except FileExistsError:
                    continue
            if slot is None:
                reply("Failed", kind="out-of-memory", error="OutOfMemoryError: CUDA", fatal=True)
            else:
                reply("Ready", **READY)
        elif request == "Load":
            reply("Loaded", cases=[], failures=[], fingerprint={{}})
    """
    found: dict[Side, Launch] = {}
    for side in SIDES:
        made = launch(folder, script, side)
        found[side] = Launch(
            side, side, made.command, {**os.environ, "SIDE": side}, folder, folder, HELLO, LOAD
        )
    return found


def test_a_device_with_room_for_fewer_workers_is_used_with_fewer_and_that_is_disclosed(
    tmp_path: Path,
) -> None:
    with WorkerPool(counted(tmp_path, allowed=3), 4, 20) as pool:
        assert [len(pool.workers(side)) for side in SIDES] == [3, 3]
        (reason,) = pool.disclosures
        assert reason.code == "fewer-workers"
        assert "2 of 8 workers" in reason.text


def test_a_device_with_room_for_fewer_than_three_a_side_is_refused(tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    with (
        pytest.raises(RefusedRun, match=r"only 2 of 4 baseline workers .*OutOfMemory.* free the"),
        WorkerPool(counted(tmp_path, allowed=2), 4, 20),
    ):
        raise AssertionError
    assert set(psutil.Process().children()) <= before


def test_requests_and_replies_survive_the_pipe() -> None:
    recipe = protocol.Recipe("graph", calls=120, regions=2, copies=60, held=True)
    for request in (HELLO, LOAD, protocol.Place("c", 1, 2, recipe), protocol.TakeSample()):
        assert protocol.decode_request(protocol.encode(request)) == request
    with pytest.raises(ValueError, match="no request"):
        protocol.decode_request(protocol.encode(protocol.Released(1)))
