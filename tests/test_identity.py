"""Which GPU is meant, under CUDA's variables; and one gate a device."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from sns_gate.errors import RefusedRun
from sns_gate.locking import hold, hold_some, holder
from sns_gate.telemetry import Census, Foreigners, Gpu, Listed, visible_uuids

ALIKE = (Listed("GPU-aaa1", "H200"), Listed("GPU-bbb2", "H200"), Listed("GPU-bbc3", "H200"))
MIXED = (Listed("GPU-aaa1", "H200"), Listed("GPU-bbb2", "A10"))


@pytest.mark.parametrize(
    ("environment", "gpus", "visible"),
    [
        ({}, ALIKE, ("GPU-aaa1", "GPU-bbb2", "GPU-bbc3")),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, ALIKE, ("GPU-bbc3", "GPU-aaa1")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-bbb"}, ALIKE, ("GPU-bbb2",)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-bb"}, ALIKE, ()),  # two begin so
        ({"CUDA_VISIBLE_DEVICES": "1,7,0"}, ALIKE, ("GPU-bbb2",)),  # hidden from the first wrong on
        ({"CUDA_VISIBLE_DEVICES": ""}, ALIKE, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ALIKE, ()),
        ({"CUDA_VISIBLE_DEVICES": "MIG-x"}, ALIKE, ("MIG-x",)),
        ({}, MIXED, None),  # the fastest first: which that is, CUDA alone knows
        ({"CUDA_VISIBLE_DEVICES": "1"}, MIXED, None),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}, MIXED, ("GPU-bbb2",)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-bbb2"}, MIXED, ("GPU-bbb2",)),
        ({}, (), ()),
    ],
)
def test_visible_gpus_are_those_that_cuda_shows_or_nobodys(
    environment: dict[str, str], gpus: tuple[Listed, ...], visible: tuple[str, ...] | None
) -> None:
    assert visible_uuids(environment, gpus) == visible


class CountingGpu(Gpu):
    """A GPU that lists a given number of processes."""

    def __init__(self, listed: int | None) -> None:
        self.listed = listed

    def processes(self) -> int | None:
        return self.listed


@pytest.mark.parametrize(
    ("before", "after", "now", "others"),
    [
        (0, 8, 8, 0),
        (0, 8, 9, 1),
        (2, 10, 10, 2),  # they were there before us
        (0, 0, 0, None),  # a list without ours may lack others too
        (1, 1, 1, None),
        (None, 8, 8, None),
        (0, None, 8, None),
        (0, 8, None, None),
    ],
)
def test_others_are_told_from_ours_by_counts_and_never_by_numbers(
    before: int | None, after: int | None, now: int | None, others: int | None
) -> None:
    counts = (Census(before, None, 0), Census(after, None, 0))
    assert Foreigners.between(*counts, started=8).now(CountingGpu(now)) == others


def _hold(folder: Path, name: str, seconds: float) -> None:
    with hold([name], folder, print, 1):
        (folder / "held").touch()
        time.sleep(seconds)


def _elsewhere(folder: Path, name: str, seconds: float) -> multiprocessing.Process:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_hold, args=(folder, name, seconds))
    process.start()
    deadline = time.monotonic() + 10
    while not (folder / "held").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return process  # type: ignore[return-value]


def test_a_second_gate_waits_says_for_whom_and_then_goes_on(tmp_path: Path) -> None:
    other = _elsewhere(tmp_path, "GPU-x", 1.0)
    said: list[str] = []
    with hold(["GPU-x"], tmp_path, said.append, 20):
        assert not other.is_alive() or other.exitcode is None
    other.join()
    assert len(said) == 1
    assert f"waiting for GPU-x, held by process {other.pid} of " in said[0]


def test_a_lock_that_is_not_free_in_time_is_refused_with_its_holder(tmp_path: Path) -> None:
    other = _elsewhere(tmp_path, "GPU-x", 5)
    with (
        pytest.raises(RefusedRun, match=rf"GPU-x was held by process {other.pid}"),
        hold(["GPU-x"], tmp_path, print, 0.1),
    ):
        raise AssertionError
    other.kill()
    other.join()
    with hold(["GPU-x"], tmp_path, print, 0.1):  # the kernel gave it back
        found = holder(tmp_path / "GPU-x.lock")
        assert found is not None
        assert found.pid == os.getpid()


def test_whoever_ends_by_an_error_stands_no_longer_in_its_lock(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), hold(["GPU-x"], tmp_path, print, 1):
        raise KeyboardInterrupt
    assert holder(tmp_path / "GPU-x.lock") is None


def test_a_free_core_is_taken_rather_than_waited_for(tmp_path: Path) -> None:
    other = _elsewhere(tmp_path, "cpu-1", 5)
    with hold_some(["cpu-1", "cpu-0"], 1, tmp_path, print, 0.1) as held:
        assert held == ["cpu-0"]
    other.kill()
    other.join()


def test_a_device_of_the_same_check_is_not_waited_for(tmp_path: Path) -> None:
    with (
        hold(["GPU-x"], tmp_path, print, 1, "one"),
        pytest.raises(RefusedRun, match="through another launcher of this check"),
        hold(["GPU-x"], tmp_path, print, 3600, "one"),
    ):
        raise AssertionError
    with (
        hold(["GPU-x"], tmp_path, print, 1, "one"),
        pytest.raises(RefusedRun, match="was held by process"),
        hold(["GPU-x"], tmp_path, print, 0.1, "another"),
    ):
        raise AssertionError


def test_a_core_of_another_check_is_waited_for_rather_than_one_of_the_same(tmp_path: Path) -> None:
    said: list[str] = []
    with hold(["cpu-1"], tmp_path, print, 1, "one"):
        other = _elsewhere(tmp_path, "cpu-0", 1.0)
        with hold_some(["cpu-1", "cpu-0"], 1, tmp_path, said.append, 20, "one") as held:
            assert held == ["cpu-0"]
        other.join()
        with (
            pytest.raises(RefusedRun, match="through another launcher of this check"),
            hold_some(["cpu-1"], 1, tmp_path, said.append, 3600, "one"),
        ):
            raise AssertionError
    assert [text.split(",")[0] for text in said] == ["waiting for cpu-0"]


def test_the_folder_of_locks_is_open_to_all_users(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with hold(["GPU-x"], folder, print, 1):
        assert folder.stat().st_mode & 0o7777 == 0o1777
        assert (folder / "GPU-x.lock").stat().st_mode & 0o777 == 0o666


def test_a_folder_that_takes_no_lock_is_refused_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RefusedRun, match="--state-dir"),
        hold(["GPU-x"], tmp_path / "file", print, 1),
    ):
        raise AssertionError


def test_two_that_wait_for_some_of_the_same_cores_never_wait_for_each_other(
    tmp_path: Path,
) -> None:
    """One is free and one is not: whoever kept the free one meanwhile could keep it for ever."""
    other = _elsewhere(tmp_path, "cpu-1", 1.0)
    took: list[list[str]] = []

    def both() -> None:
        with hold_some(["cpu-0", "cpu-1"], 2, tmp_path, lambda _: None, 20) as held:
            took.append(held)
            time.sleep(0.2)

    waiting = [multiprocessing.get_context("fork").Process(target=both) for _ in range(3)]
    for process in waiting:
        process.start()
    time.sleep(0.3)
    with hold_some(["cpu-0"], 1, tmp_path, print, 0.5) as held:
        assert held == ["cpu-0"], "nobody keeps it while waiting for the other one"
    for process in waiting:
        process.join(20)
        assert process.exitcode == 0
    other.join()
