"""Pinned clocks on a fake NVML that the real ``pynvml`` loads: proven, and always given back."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sns_gate.clocks import helper as clock_helper
from tests.conftest import clean_environment
from tests.contract import contract
from tests.fake_nvml import FakeNvml, Operation, Switch

KILLS = 6
ALL_KILLS = 100


@pytest.fixture
def fake(library: Path) -> FakeNvml:
    made = FakeNvml(library, gpus=2)
    made.gpu(1).load = 0.5  # enough to boost, below the power limit
    return made


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


HEAD = """
import json, os, sys, time
from pathlib import Path
from sns_gate.clocks import LockedClockPolicy, ClockLockError
from sns_gate.telemetry import open_gpu
UUID, STATE = sys.argv[1], Path(sys.argv[2])
def policy(mhz=1500, watts=None, **more):
    return LockedClockPolicy(mhz, watts, uuid=UUID, state_dir=STATE, **more)
"""


def start(fake: FakeNvml, state: Path, script: str, **variables: str) -> subprocess.Popen[str]:
    """A process that uses the fake's second GPU through the real pynvml."""
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(script), fake.gpu(1).uuid, str(state)],
        env=clean_environment(**fake.environment, **variables), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(fake: FakeNvml, state: Path, script: str, **variables: str) -> str:
    process = start(fake, state, script, **variables)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.strip()


def untouched(fake: FakeNvml) -> bool:
    """Whether the GPU is as it was, seen from outside."""
    gpu = fake.gpu(1)
    return (gpu.locked_max_mhz, gpu.mem_locked_max_mhz, gpu.power_limit_mw) == (0, 0, 700_000)


def eventually(condition: object, seconds: float = 10) -> bool:
    """Whether a condition comes true in time."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


@contract(
    "LockedClockPolicy", "Pin the SM clock, and optionally the power cap, verifying by readback."
)
def test_clocks_and_power_are_pinned_read_back_and_given_back(fake: FakeNvml, state: Path) -> None:
    script = """
    p = policy(1502, 500, memory_mhz=1593)
    p.apply()
    print(p.locked, p.pinned_sm_mhz, open_gpu(UUID).sm_mhz(), len(list(STATE.glob("*.json"))))
    p.restore()
    print(p.locked, len(list(STATE.glob("*.json"))))
    """
    assert run(fake, state, script).splitlines() == ["True 1500 1500 1", "False 0"]
    assert untouched(fake)
    pinned = [(w.operation, w.a) for w in fake.writes()]
    assert pinned[:3] == [
        (Operation.SET_MEMORY_LOCK, 1593), (Operation.SET_POWER_LIMIT, 500_000),
        (Operation.SET_SM_LOCK, 1500),
    ]  # fmt: skip
    assert {w.gpu for w in fake.writes()} == {1}  # the other GPU was never touched


def test_the_power_limit_is_set_back_to_what_it_was_and_not_to_the_default(
    fake: FakeNvml, state: Path
) -> None:
    fake.gpu(1).power_limit_mw = 620_000
    run(fake, state, "p = policy(1500, 400); p.apply(); p.restore()")
    assert fake.gpu(1).power_limit_mw == 620_000


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        (Switch.REFUSE_SILENTLY, "requested 1500 MHz, device reports 1980 MHz"),
        (Switch.RUNS_LOW, "requested 1500 MHz, device reports 1350 MHz"),
        (Switch.NO_PERMISSION, "the driver refused nvmlDeviceSetGpuLockedClocks"),
        (Switch.GPU_LOST, "NVML does not know GPU"),
    ],
)
@contract(
    "LockedClockPolicy",
    "Leaving it applied after a loud failure silently pins the GPU for everything after.",
)
@contract(
    "Reaching Tier A",
    "apply() restores the device and raises ClockLockError rather than proceeding.",
)
def test_a_lock_that_does_not_come_about_is_an_error_and_leaves_nothing(
    fake: FakeNvml, state: Path, switch: Switch, message: str
) -> None:
    fake.gpu(1).flags |= switch
    script = """
    p = policy()
    try:
        p.apply()
    except ClockLockError as error:
        print(p.locked, error)
    """
    said = run(fake, state, script)
    assert said.startswith("False ")
    assert message in said
    fake.gpu(1).flags &= ~switch
    assert not list(state.glob("*.json"))
    assert fake.gpu(1).locked_max_mhz == 0


@contract("Reaching Tier A", "The exit code proves nothing; only the readback does.")
def test_a_power_limit_that_is_refused_silently_is_an_error(fake: FakeNvml, state: Path) -> None:
    fake.gpu(1).flags |= Switch.REFUSE_SILENTLY
    script = """
    try:
        policy(1500, 500).apply()
    except ClockLockError as error:
        print(error)
    """
    assert "requested 500 W cap, device reports 700.0 W" in run(fake, state, script)


def test_an_idle_device_is_proven_under_load_and_not_before(fake: FakeNvml, state: Path) -> None:
    fake.gpu(1).load = 0.0
    script = """
    for readings in ([1498, 1501, None, 1502], [1380] * 8, [None] * 8):
        p = policy(); p.apply()
        left = iter(readings * 8)
        try:
            p.confirm(lambda: next(left))
        except ClockLockError as error:
            print(p.locked, error)
        else:
            print(p.locked, "held"); p.restore()
    """
    lines = run(fake, state, script).splitlines()
    assert lines[0] == "True held"
    assert lines[1].startswith(
        "False 1500 MHz was pinned and the device runs at 1380 MHz under load"
    )
    assert "no clock under load" in lines[2]
    assert untouched(fake)


def test_another_journal_on_the_gpu_is_respected_while_its_gate_lives_and_named_when_not(
    fake: FakeNvml, state: Path
) -> None:
    holder = start(fake, state, "p = policy(); p.apply(); print('up', flush=True); time.sleep(60)")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "up\n"
    script = """
    try:
        policy(1200).apply()
    except ClockLockError as error:
        print(error)
    """
    said = run(fake, state, script)
    assert f"are pinned by process {holder.pid}" in said
    assert fake.gpu(1).locked_max_mhz == 1500
    holder.terminate()
    holder.communicate(timeout=10)
    assert eventually(lambda: untouched(fake) and not list(state.glob("*.json")))


def test_the_supervisor_survives_signals_its_group_and_the_runners_tracking(
    fake: FakeNvml, state: Path
) -> None:
    holder = start(
        fake, state, "p = policy(1500, 500); p.apply(); print('up', flush=True); time.sleep(60)",
        RUNNER_TRACKING_ID="github_x",
    )  # fmt: skip
    assert holder.stdout is not None
    holder.stdout.readline()
    supervisors = _supervisors(state)
    assert len(supervisors) == 1
    (pid,) = supervisors
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"RUNNER_TRACKING_ID" not in environment
    assert os.getsid(pid) != os.getsid(holder.pid)
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent != holder.pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
    time.sleep(0.2)
    assert fake.gpu(1).locked_max_mhz == 1500
    holder.kill()
    holder.communicate()
    assert eventually(lambda: untouched(fake) and not _supervisors(state))


def _supervisors(state: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"sns_gate.clocks.supervisor" in line and str(state).encode() in line:
            found.append(int(entry.name))
    return found


@pytest.fixture
def kills() -> int:
    return ALL_KILLS if os.environ.get("SNS_ALL_KILLS") else KILLS


def test_clocks_and_power_are_given_back_after_a_kill_at_any_moment(
    fake: FakeNvml, state: Path, kills: int
) -> None:
    """SIGKILL at random moments of a process that pins and gives back again and again."""
    rng = random.Random(1)
    script = """
    print("up", flush=True)
    while True:
        p = policy(1500, 500, memory_mhz=1593); p.apply(); time.sleep(0.2); p.restore()
    """
    while_pinned = 0
    for round_ in range(kills):
        process = start(fake, state, script)
        assert process.stdout is not None
        process.stdout.readline()
        if round_ % 3:  # two of three while the clocks are pinned, one at any moment at all
            assert eventually(lambda: fake.gpu(1).locked_max_mhz == 1500, 30)
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        while_pinned += not untouched(fake)
        process.communicate()
        assert eventually(lambda: untouched(fake) and not list(state.glob("*.json"))), fake.writes()
    # The moments must have met pinned clocks, or nothing was shown.
    assert while_pinned >= kills / 5


def test_restore_undoes_what_a_journal_names_where_the_supervisor_died_too(
    fake: FakeNvml, state: Path
) -> None:
    holder = start(
        fake, state, "p = policy(1500, 500); p.apply(); print('up', flush=True); time.sleep(60)"
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    environment = clean_environment(**fake.environment)
    command = [sys.executable, "-m", "sns_gate", "restore", "--state-dir", str(state)]
    alive = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert alive.returncode == 3
    assert "still runs" in alive.stderr
    assert fake.gpu(1).locked_max_mhz == 1500
    for pid in (*_supervisors(state), holder.pid):
        os.kill(pid, signal.SIGKILL)
    holder.communicate()
    time.sleep(0.2)
    assert fake.gpu(1).locked_max_mhz == 1500  # nobody was left to give it back
    blocked = run(fake, state, """
    try:
        policy().apply()
    except ClockLockError as error:
        print(error)
    """)  # fmt: skip
    assert "run 'sns-gate restore' first" in blocked
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "given back" in done.stdout
    assert untouched(fake)
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0
    assert "nothing to give back" in again.stdout


def test_a_journal_of_a_stranger_is_not_believed(state: Path) -> None:
    from sns_gate.clocks.journal import read

    state.mkdir()
    path = state / "GPU-x.clocks.json"
    path.write_text(json.dumps({"uuid": "GPU-x", "sm_mhz": 1, "pid": 1, "started_at": 0}))
    assert read(path) is not None
    os.chown(path, 12345, 12345)
    before = os.getuid()
    try:
        os.seteuid(0)
        assert (read(path) is None) == (before == 0)
    except PermissionError:
        pytest.skip("only root can give a file away")


# ------------------------------------------------------------------------------ the helper


def test_the_helper_does_for_a_user_what_nvml_does_for_root(fake: FakeNvml, state: Path) -> None:
    script = f"""
    p = policy(1500, 500, memory_mhz=1593, helper=(sys.executable, {clock_helper.__file__!r}))
    p.apply(); print(open_gpu(UUID).sm_mhz()); p.restore()
    """
    assert run(fake, state, script) == "1500"
    assert untouched(fake)
    assert len({w.pid for w in fake.writes()}) == len(fake.writes())  # a process each


@pytest.mark.parametrize(
    "words",
    [
        (), ("GPU-1",), ("0", "lock-sm", "1500"), ("all", "reset-sm"), ("{uuid}", "lock-sm"),
        ("{uuid}", "lock-sm", "1500,1600"), ("{uuid}", "lock-sm", "-1"),
        ("{uuid}", "reset-sm", "1"), ("{uuid}", "persistence", "0"),
        ("{uuid};reboot", "reset-sm"), ("{uuid}", "power", "999999"),
    ],
)  # fmt: skip
def test_the_helper_takes_one_uuid_and_validated_numbers_alone(
    fake: FakeNvml, words: tuple[str, ...]
) -> None:
    given = [word.format(uuid=fake.gpu(1).uuid) for word in words]
    command = [sys.executable, clock_helper.__file__, *given]
    environment = clean_environment(**fake.environment)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert not fake.writes()
    assert "Traceback" not in done.stderr


def test_what_the_driver_refuses_the_helper_reports(fake: FakeNvml) -> None:
    fake.gpu(1).flags |= Switch.NO_PERMISSION
    command = [sys.executable, clock_helper.__file__, fake.gpu(1).uuid, "lock-sm", "1500"]
    environment = clean_environment(**fake.environment)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "NVML refused lock-sm with code 4" in done.stderr


def test_without_root_and_helper_the_error_names_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    from sns_gate.clocks import writer
    from sns_gate.errors import ClockLockError

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(writer, "HELPER", Path("/no/such/helper"))
    with pytest.raises(ClockLockError, match="'sns-gate doctor' prints how to install it"):
        writer.writer_for("GPU-x")


@pytest.fixture(autouse=True)
def no_supervisor_is_left(state: Path) -> Iterator[None]:
    yield
    assert eventually(lambda: not _supervisors(state))
