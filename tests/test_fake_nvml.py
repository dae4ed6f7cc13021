"""The fake NVML behaves as the real one does, seen through the real pynvml."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml import MAX_WRITES, FakeNvml, Operation, Switch, Write

PREAMBLE = """
import json, os, time
import pynvml as nv

def say(value):
    print(json.dumps(value), flush=True)

def code(call, *arguments):
    try:
        call(*arguments)
    except nv.NVMLError as error:
        return error.value
    return 0

def sm():
    return nv.nvmlDeviceGetClockInfo(g, nv.NVML_CLOCK_SM)

def wait_for_a_reading():
    time.sleep(0.1 - time.monotonic_ns() % 100_000_000 / 1e9 + 0.002)

def counters(*ids):
    fields = nv.nvmlDeviceGetFieldValues(g, list(ids))
    return {f.fieldId: f.value.ullVal if f.nvmlReturn == 0 else -f.nvmlReturn for f in fields}
"""
OPEN = """
nv.nvmlInit()
g = nv.nvmlDeviceGetHandleByIndex(0)
"""


@pytest.fixture
def fake(library: Path) -> FakeNvml:
    return FakeNvml(library, gpus=2)


def start(fake: FakeNvml, script: str, opening: str = OPEN) -> subprocess.Popen[str]:
    """A process that sees the fake machine."""
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + opening + textwrap.dedent(script)],
        env={**os.environ, **fake.environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(fake: FakeNvml, script: str, opening: str = OPEN) -> Any:  # noqa: ANN401 (JSON)
    """What a script that sees the fake machine says."""
    with start(fake, script, opening) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(said)


def kill_when_it_speaks(process: subprocess.Popen[str]) -> None:
    with process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def test_a_lock_snaps_to_a_supported_clock_and_shows_at_the_next_reading(fake: FakeNvml) -> None:
    fake.gpu(0).load = 0.5
    before, at_once, later, supported = ask(
        fake,
        """
        reading = None
        while reading != time.monotonic_ns() // 100_000_000:  # all within one reading
            nv.nvmlDeviceResetGpuLockedClocks(g)
            wait_for_a_reading()
            reading, before = time.monotonic_ns() // 100_000_000, sm()
            nv.nvmlDeviceSetGpuLockedClocks(g, 1400, 1400)
            at_once = sm()
        wait_for_a_reading()
        say([before, at_once, sm(), nv.nvmlDeviceGetSupportedGraphicsClocks(g, 3201)])
        """,
    )
    assert (before, at_once, later) == (1980, 1980, 1395)
    assert supported == list(range(1980, 344, -15))
    assert fake.true_sm_mhz(0) == 1395
    assert (fake.gpu(0).locked_min_mhz, fake.gpu(0).locked_max_mhz) == (1395, 1395)


def test_an_idle_gpu_rests_and_a_loaded_one_boosts(fake: FakeNvml) -> None:
    script = """
        wait_for_a_reading()
        power = nv.nvmlDeviceGetPowerUsage(g)
        reasons = nv.nvmlDeviceGetCurrentClocksThrottleReasons(g)
        say([sm(), nv.nvmlDeviceGetPerformanceState(g), power, reasons])
    """
    assert ask(fake, script) == [345, 8, 90_000, 0x1]
    fake.gpu(0).load = 0.5
    assert ask(fake, script) == [1980, 0, 490_000, 0]


def test_the_power_cap_pulls_the_clock_and_its_counter_advances(fake: FakeNvml) -> None:
    fake.gpu(0).load = 1
    advanced_ns, least_ns, most_ns, mhz, power_mw, reasons = ask(
        fake,
        """
        nv.nvmlDeviceSetPowerManagementLimit(g, 400_000)
        t0, first, t1 = time.monotonic_ns(), counters(74)[74], time.monotonic_ns()
        time.sleep(0.15)
        t2, last, t3 = time.monotonic_ns(), counters(74)[74], time.monotonic_ns()
        reasons = nv.nvmlDeviceGetCurrentClocksEventReasons(g)
        say([last - first, t2 - t1, t3 - t0, sm(), nv.nvmlDeviceGetPowerUsage(g), reasons])
        """,
    )
    assert least_ns <= advanced_ns <= most_ns
    assert 1300 < mhz < 1400
    assert power_mw <= 400_000
    assert reasons == 0x4
    fake.gpu(0).load = 0
    settled_ns = fake.gpu(0).sw_power_cap_ns
    assert settled_ns >= advanced_ns
    assert fake.gpu(0).sw_power_cap_ns == settled_ns


def test_the_power_cap_wins_over_a_lock(fake: FakeNvml) -> None:
    gpu = fake.gpu(0)
    gpu.load, gpu.power_limit_mw = 1, 200_000
    gpu.locked_min_mhz = gpu.locked_max_mhz = 1800
    assert fake.true_sm_mhz(0) < 1000
    gpu.power_limit_mw, gpu.load = 700_000, 0.7
    assert fake.true_sm_mhz(0) == 1800


def test_a_silent_refusal_reports_success_and_changes_nothing(fake: FakeNvml) -> None:
    fake.gpu(0).flags |= Switch.REFUSE_SILENTLY
    pid = ask(fake, "nv.nvmlDeviceSetGpuLockedClocks(g, 900, 1200); say(os.getpid())")
    assert fake.gpu(0).locked_max_mhz == 0
    assert fake.writes() == [
        Write(Operation.SET_SM_LOCK, gpu=0, a=900, b=1200, pid=pid, result=0, applied=False)
    ]


def test_no_write_is_done_without_permission(fake: FakeNvml) -> None:
    fake.gpu(0).flags |= Switch.NO_PERMISSION
    codes = ask(
        fake,
        """
        say([code(nv.nvmlDeviceSetGpuLockedClocks, g, 1200, 1200),
             code(nv.nvmlDeviceResetGpuLockedClocks, g),
             code(nv.nvmlDeviceSetMemoryLockedClocks, g, 1593, 1593),
             code(nv.nvmlDeviceResetMemoryLockedClocks, g),
             code(nv.nvmlDeviceSetPowerManagementLimit, g, 300_000)])
        """,
    )
    assert codes == [4] * 5
    assert [write.operation for write in fake.writes()] == list(Operation)
    assert {write.result for write in fake.writes()} == {4}
    assert fake.gpu(0).power_limit_mw == 700_000


@pytest.mark.parametrize(("driver", "first"), [("580.65.06", 251), ("580.82.07", 269)])
def test_the_thermal_counters_move_with_the_driver(fake: FakeNvml, driver: str, first: int) -> None:
    fake.driver_version = driver
    gpu = fake.gpu(0)
    gpu.sync_boost_ns, gpu.sw_thermal_ns, gpu.hw_thermal_ns, gpu.power_brake_ns = 1, 2, 3, 4
    said = ask(fake, "say(counters(74, 76, 251, 252, 253, 269, 270, 271))")
    moved = {251: -3, 252: -3, 253: -3, 269: -3, 270: -3, 271: -3}
    moved |= {first: 2, first + 1: 3, first + 2: 4}
    assert said == {str(field): value for field, value in {74: 0, 76: 1, **moved}.items()}
    gpu.flags |= Switch.UNSUPPORTED_FIELDS
    assert set(ask(fake, "say(counters(74, 76, 269))").values()) == {-3}


def test_a_gpu_is_lost_in_mid_run(fake: FakeNvml) -> None:
    fake.gpu(0).fail_after_calls = 3
    said = ask(
        fake,
        """
        other = nv.nvmlDeviceGetHandleByIndex(1)
        said = [code(nv.nvmlDeviceGetPowerUsage, g) for _ in range(4)]
        say([said, code(nv.nvmlDeviceGetHandleByIndex, 0), code(nv.nvmlDeviceGetPowerUsage, other)])
        """,
    )
    assert said == [[0, 0, 15, 15], 15, 0]
    assert fake.gpu(0).flags & Switch.GPU_LOST


def test_a_driver_that_is_not_loaded_refuses_to_start(fake: FakeNvml) -> None:
    fake.driver_not_loaded = True
    assert ask(fake, "say([code(nv.nvmlInit), code(nv.nvmlDeviceGetCount)])", opening="") == [9, 1]


def test_gpus_come_in_the_order_of_nvml_and_torch_has_another(library: Path) -> None:
    fake = FakeNvml(library, gpus=3)
    said = ask(
        fake,
        """
        handles = [nv.nvmlDeviceGetHandleByIndex(i) for i in range(nv.nvmlDeviceGetCount())]
        uuids = [nv.nvmlDeviceGetUUID(h) for h in handles]
        again = [nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID(uuid)) for uuid in uuids]
        nv.nvmlDeviceSetGpuLockedClocks(handles[2], 990, 990)
        buses = [nv.nvmlDeviceGetPciInfo(h).busId for h in handles]
        say([uuids, again, buses, code(nv.nvmlDeviceGetHandleByIndex, 3),
             code(nv.nvmlDeviceGetHandleByUUID, "GPU-none")])
        """,
    )
    uuids = [fake.gpu(i).uuid for i in range(3)]
    assert said[:2] == [uuids, [0, 1, 2]]
    assert said[2] == ["00000000:1B:00.0", "00000000:3B:00.0", "00000000:5B:00.0"]
    assert said[3:] == [2, 6]
    assert fake.torch_order == tuple(reversed(uuids))
    assert [fake.gpu(i).locked_max_mhz for i in range(3)] == [0, 0, 990]


def test_a_lock_outlives_the_killed_process_that_made_it(fake: FakeNvml) -> None:
    script = "nv.nvmlDeviceSetGpuLockedClocks(g, 1200, 1200); say(1); time.sleep(60)"
    kill_when_it_speaks(start(fake, script))
    assert fake.true_sm_mhz(0) == 1200
    assert ask(fake, "nv.nvmlDeviceResetGpuLockedClocks(g); say(1)")
    assert fake.true_sm_mhz(0) == 345


def test_a_process_killed_while_it_holds_the_state_blocks_nobody(fake: FakeNvml) -> None:
    script = """
        import fcntl
        file = open(os.environ["FAKE_NVML_STATE"])
        fcntl.flock(file, fcntl.LOCK_EX)
        say(1)
        time.sleep(60)
    """
    kill_when_it_speaks(start(fake, script))
    assert ask(fake, "say(nv.nvmlDeviceGetCount())") == 2


def test_no_write_of_several_processes_is_missed(fake: FakeNvml) -> None:
    script = "[nv.nvmlDeviceSetGpuLockedClocks(g, 990, 990 + i) for i in range(150)]"
    both = [start(fake, script) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
    assert [process.returncode for process in both] == [0, 0]
    assert fake.write_count == 300
    writes = fake.writes()
    assert len(writes) == MAX_WRITES
    for process in both:
        own = [write.b for write in writes if write.pid == process.pid]
        assert own == list(range(1140 - len(own), 1140))


def test_the_compute_processes_are_those_set_from_outside(fake: FakeNvml) -> None:
    script = """
        listed = nv.nvmlDeviceGetComputeRunningProcesses(g)
        memory = nv.nvmlDeviceGetMemoryInfo(g)
        say([[(p.pid, p.usedGpuMemory) for p in listed], memory.total - memory.free])
    """
    nothing, empty_bytes = ask(fake, script)
    assert nothing == []
    fake.gpu(0).processes = [(11, 1 << 30), (12, 1 << 20)]
    listed, used_bytes = ask(fake, script)
    assert listed == [[11, 1 << 30], [12, 1 << 20]]
    assert used_bytes - empty_bytes == (1 << 30) + (1 << 20)
    fake.gpu(0).flags |= Switch.NO_SMI_PROCESSES
    assert ask(fake, "say(code(nv.nvmlDeviceGetComputeRunningProcesses, g))") == 4


def test_a_lock_may_drift_or_run_low(fake: FakeNvml) -> None:
    gpu = fake.gpu(0)
    gpu.locked_min_mhz = gpu.locked_max_mhz = 1500
    gpu.flags |= Switch.RUNS_LOW
    assert fake.true_sm_mhz(0) == 1350
    gpu.flags = Switch.DRIFT
    seen = set()
    for _ in range(9):
        seen.add(fake.true_sm_mhz(0))
        time.sleep(0.125)
    assert seen <= {1440, 1455, 1470, 1485, 1500}
    assert len(seen) > 2


def test_stuck_reasons_show_while_their_counters_rest(fake: FakeNvml) -> None:
    gpu = fake.gpu(0)
    gpu.load, gpu.flags = 0.5, Switch.STUCK_SW_THERMAL | Switch.HW_SLOWDOWN
    script = """
        say([nv.nvmlDeviceGetCurrentClocksEventReasons(g), *counters(269, 270, 271).values()])
    """
    assert ask(fake, script) == [0x28, 0, 0, 0]


def test_every_other_call_answers(fake: FakeNvml) -> None:
    gpu = fake.gpu(0)
    gpu.flags, gpu.compute_mode, gpu.temperature_c = Switch.MIG | Switch.PERSISTENCE, 3, 41
    said = ask(
        fake,
        """
        nv.nvmlDeviceSetMemoryLockedClocks(g, 1593, 1593)
        memory = nv.nvmlDeviceGetMemoryInfo(g, nv.nvmlMemory_v2)
        rates = nv.nvmlDeviceGetUtilizationRates(g)
        wait_for_a_reading()
        say([
            nv.nvmlSystemGetDriverVersion(), nv.nvmlSystemGetNVMLVersion(),
            nv.nvmlSystemGetCudaDriverVersion_v2(), nv.nvmlDeviceGetName(g),
            nv.nvmlDeviceGetClock(g, nv.NVML_CLOCK_MEM, nv.NVML_CLOCK_ID_CURRENT),
            nv.nvmlDeviceGetMaxClockInfo(g, nv.NVML_CLOCK_MEM),
            nv.nvmlDeviceGetSupportedMemoryClocks(g), nv.nvmlDeviceGetPowerManagementLimit(g),
            nv.nvmlDeviceGetPowerManagementDefaultLimit(g), nv.nvmlDeviceGetEnforcedPowerLimit(g),
            nv.nvmlDeviceGetPowerManagementLimitConstraints(g),
            nv.nvmlDeviceGetTemperature(g, 0), nv.nvmlDeviceGetTemperatureV(g, 0),
            rates.gpu, memory.total - memory.free - memory.used - memory.reserved,
            nv.nvmlDeviceGetComputeMode(g), nv.nvmlDeviceGetEccMode(g),
            nv.nvmlDeviceGetMigMode(g), nv.nvmlDeviceGetPersistenceMode(g),
            nv.nvmlDeviceGetCudaComputeCapability(g), str(nv.NVMLError(999)),
            code(nv.nvmlDeviceSetPowerManagementLimit, g, 199_999),
            code(nv.nvmlDeviceGetSupportedGraphicsClocks, g, 1000), code(nv.nvmlShutdown),
        ])
        """,
    )
    assert said == [
        "580.95.05", "13.580.95.05", 13000, "NVIDIA H200",
        1593, 3201, [3201, 1593], 700_000, 700_000, 700_000, [200_000, 700_000],
        41, 41, 0, 0, 3, [0, 0], [1, 1], 1, [9, 0], "Unknown Error", 2, 6, 0,
    ]  # fmt: skip
