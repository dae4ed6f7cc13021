"""Cases spread over several GPUs: each on one of them, and nothing left however it ends."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sns_gate.config import Settings
from sns_gate.rig.device import Device, Devices
from sns_gate.rig.stations import spread
from tests.conftest import Ran
from tests.moments import ended, wait_for
from tests.test_pinned_check import PROCESSES, Lab

CASES = 6


class TwoGpus(Lab):
    """Two fake GPUs, with recorded workers that take their time."""

    def __init__(self, folder: Path, library_: Path) -> None:
        super().__init__(folder, library_)
        uuids = [self.fake.gpu(number).uuid for number in (0, 1)]
        self.variables |= {
            "CUDA_VISIBLE_DEVICES": ",".join(uuids),
            "RECORDED_CASES": str(CASES), "RECORDED_SECONDS": "0.002",
        }  # fmt: skip
        more = ("--pass-env=RECORDED_SECONDS", "--explain", "none")
        self.options = (*self.options, *more)


@pytest.fixture
def two(tmp_path: Path, library: Path) -> TwoGpus:
    return TwoGpus(tmp_path, library)


def workers_of(gate_pid: int) -> list[int]:
    children = psutil.Process(gate_pid).children()
    return sorted(one.pid for one in children if "recorded_worker" in " ".join(one.cmdline()))


def devices_of(ran: Ran) -> list[str]:
    assert ran.result is not None, ran.err
    return [case.device or "" for case in ran.result.cases]


def test_cases_are_measured_on_both_each_on_one_and_shown_in_their_order(two: TwoGpus) -> None:
    ran = two.check("--device", "cuda:0,1")
    assert ran.code == 0, ran.out + ran.err
    assert list(ran.verdicts) == [f"case{n}" for n in range(CASES)]
    assert set(ran.verdicts.values()) == {"unchanged"}
    assert set(devices_of(ran)) == {"cuda:0", "cuda:1"}
    assert ran.result is not None
    assert ran.result.device == "cuda:0,1"
    alone = two.check("--device", "cuda:0")
    assert alone.verdicts == ran.verdicts
    assert devices_of(alone) == [""] * CASES


def test_slower_cases_are_confirmed_on_both(two: TwoGpus) -> None:
    ran = two.check("--device", "cuda:all", RECORDED_SLOWER="1.05")
    assert set(ran.verdicts.values()) == {"slower"}, ran.out + ran.err
    assert ran.result is not None
    assert all(case.screening is not None for case in ran.result.cases)
    assert set(devices_of(ran)) == {"cuda:0", "cuda:1"}


def test_clocks_are_pinned_and_given_back_on_both(two: TwoGpus) -> None:
    ran = two.check("--device", "cuda:0,1", "--clocks", "1502")
    assert {case.tier.value for case in ran.result.cases if case.tier} == {"A"}, ran.out  # type: ignore[union-attr]
    for number in (0, 1):
        assert two.fake.gpu(number).locked_max_mhz == 0
    assert not list(two.state.glob("*.json"))


def test_gpus_that_differ_are_refused(two: TwoGpus) -> None:
    two.fake.gpu(0).power_limit_mw = 400_000
    ran = two.check("--device", "cuda:0,1")
    assert ran.code == 3
    assert "cuda:0 and cuda:1 differ in power_limit_w" in ran.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_ends_all_of_them_and_keeps_what_was_measured(
    two: TwoGpus, number: signal.Signals, code: int
) -> None:
    with ended(two.start("--device", "cuda:0,1", **two.hold())) as gate:
        wait_for("1/6", gate)
        workers = workers_of(gate.pid)
        assert len(workers) == 2 * 2 * PROCESSES
        gate.send_signal(number)
        out, err = gate.communicate(timeout=120)
    assert gate.returncode == code, out + err
    kept = json.loads((two.repository / "result.json").read_text())
    assert 1 <= len(kept["cases"]) < CASES
    assert {case["verdict"] for case in kept["cases"]} == {"unchanged"}, "none is called broken"
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_worker_that_is_lost_on_one_breaks_its_case_alone(two: TwoGpus) -> None:
    with ended(two.start("--device", "cuda:0,1", **two.hold())) as gate:
        wait_for("2/6", gate)
        while not (waiting := sorted(two.held.parent.glob("held-*"))):
            time.sleep(0.01)
        os.kill(int(waiting[0].name.partition("-")[2]), signal.SIGKILL)
        two.held.unlink()
        out, err = gate.communicate(timeout=120)
    assert gate.returncode in (0, 1, 3), out + err
    result = json.loads((two.repository / "result.json").read_text())
    verdicts = [case["verdict"] for case in result["cases"]]
    assert verdicts.count("broken") == 1
    assert verdicts.count("unchanged") == CASES - 1, out


# ------------------------------------------------------------------ the parts


def settings(device: str) -> Settings:
    return Settings.model_validate({"device": device})


def test_devices_are_named_once_in_their_order() -> None:
    found = Devices(settings("cuda:3,1,3"), {})
    assert [device.name for device in found.each] == ["cuda:1", "cuda:3"]
    assert found.name == "cuda:1,3"
    assert Devices(settings("cuda"), {}).name == "cuda:0"
    assert Devices(settings("cpu"), {}).name == "cpu"
    cores = [set(device.cores) for device in found.each]
    assert not (cores[0] & cores[1])


@pytest.mark.parametrize("wrong", ["cuda:", "cuda:0,", "cuda:a", "cuda:0-1", "gpu:all"])
def test_devices_that_are_not_named_so_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="device"):
        settings(wrong)


def test_workers_of_one_of_several_see_no_other() -> None:
    alone = Device("cuda:1", "GPU-b", alone=True)
    assert (alone.for_workers, alone.variables) == ("cuda:0", {"CUDA_VISIBLE_DEVICES": "GPU-b"})
    single = Device("cuda:1", "GPU-b")
    assert (single.for_workers, single.variables) == ("cuda:1", {})
    unknown = Device("cuda:1", None, alone=True)
    assert (unknown.for_workers, unknown.variables) == ("cuda:1", {})


def station(name: str) -> Any:  # noqa: ANN401 (stands for one)
    closed = threading.Event()
    return SimpleNamespace(name=name, lost=False, close=closed.set, closed=closed)


def test_each_piece_is_done_once_and_kept_one_at_a_time() -> None:
    there = [station("a"), station("b"), station("c")]
    kept: list[int] = []
    busy = threading.Lock()

    def keep(_: object, piece: int, found: int) -> None:
        assert busy.acquire(blocking=False), "two at once"
        time.sleep(0.001)
        kept.append(found - piece)
        busy.release()

    spread(there, range(50), lambda _, piece: 2 * piece, keep)
    assert sorted(kept) == list(range(50))


def test_the_first_failure_ends_the_others_and_nothing_is_kept_after_it() -> None:
    there = [station("fails"), station("waits")]
    kept: list[int] = []

    def do(at: Any, piece: int) -> int:  # noqa: ANN401
        if at.name == "fails":
            time.sleep(0.05)
            raise ValueError("no more")
        at.closed.wait(5)  # as a worker whose process is ended
        return piece

    with pytest.raises(ValueError, match="no more"):
        spread(there, range(10), do, lambda _, piece, __: kept.append(piece))
    assert kept == []
    assert all(one.closed.is_set() for one in there)
