"""The worker's own code, called without a process around it."""

from __future__ import annotations

import os
import random
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from sns_gate import protocol
from sns_gate.protocol import Hello
from sns_gate.timers import seed_everything
from sns_gate.worker import isolation
from sns_gate.worker.__main__ import answer
from sns_gate.worker.workbench import Workbench

BENCH = """
import random
from sns_gate import benchmark

drawn = []

@benchmark(tolerance=0.5)
def draws():
    drawn.append(random.random())
    return lambda: sum(range(50))

@benchmark
def raises():
    def call():
        raise ValueError("boom")
    return call

@benchmark
def greedy():
    raise MemoryError

@benchmark
def leaves():
    raise SystemExit(3)
"""


@pytest.fixture(autouse=True)
def untouched_interpreter() -> Iterator[None]:
    path, finders = list(sys.path), list(sys.meta_path)
    affinity = os.sched_getaffinity(0)
    yield
    sys.path[:], sys.meta_path[:] = path, finders
    os.sched_setaffinity(0, affinity)


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    (tmp_path / "bench_x.py").write_text(BENCH)
    (tmp_path / "bench_bad.py").write_text("import no_such_module\n")
    made = Workbench()
    made.open(Hello("cpu", (), (str(tmp_path),), keep_editable=True))
    files = (str(tmp_path / "bench_x.py"), str(tmp_path / "bench_bad.py"))
    loaded = made.load(protocol.Load(files, (None, None)))
    assert [case.id for case in loaded.cases] == ["draws", "raises", "greedy", "leaves"]
    assert [failure.error for failure in loaded.failures] == [
        "ModuleNotFoundError: No module named 'no_such_module'"
    ]
    return made


def ask(workbench: Workbench, request: protocol.Request) -> protocol.Reply:
    return answer(workbench, protocol.encode(request))


def test_a_case_is_placed_calibrated_sampled_and_released(workbench: Workbench) -> None:
    placed = ask(workbench, protocol.Place("draws", 1, 2, None))
    assert isinstance(placed, protocol.Placed)
    calibrated = ask(workbench, protocol.Calibrate("auto"))
    assert isinstance(calibrated, protocol.Calibrated)
    assert 100 < calibrated.call_ns < 1e6
    assert isinstance(ask(workbench, protocol.Release()), protocol.Released)
    recipe = protocol.Recipe("loop", calls=10, regions=2)
    ask(workbench, protocol.Place("draws", 1, 2, recipe))
    sampled = ask(workbench, protocol.TakeSample())
    assert isinstance(sampled, protocol.Sampled)
    assert 100 < sampled.call_ns < 1e6
    assert sampled.wall_ns >= sampled.call_ns * 20 * 0.9
    assert sampled.device_mhz is None


def test_the_same_seed_draws_the_same_data_in_every_generator(workbench: Workbench) -> None:
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    drawn = []
    for seed in (5, 5, 6):
        seed_everything(seed)
        drawn.append((random.random(), numpy.random.rand(), torch.rand(1).item()))  # noqa: TID251
    assert drawn[0] == drawn[1] != drawn[2]
    bench = sys.modules[[n for n in sys.modules if n.startswith("_sns_gate_bench_x")][-1]]
    for seed in (9, 9):
        ask(workbench, protocol.Rehearse("draws", seed))
    assert bench.drawn[-1] == bench.drawn[-2]


@pytest.mark.parametrize(
    ("case", "kind", "error"),
    [
        ("raises", "raised", "ValueError: boom"),
        ("greedy", "out-of-memory", "MemoryError"),
        ("leaves", "raised", "SystemExit: 3"),
    ],
)
def test_whatever_a_case_raises_becomes_a_reply_and_the_next_case_works(
    workbench: Workbench, case: str, kind: str, error: str
) -> None:
    failed = ask(workbench, protocol.Place(case, 1, 2, None))
    assert isinstance(failed, protocol.Failed)
    assert (failed.kind, failed.error, failed.fatal) == (kind, error, False)
    assert "bench_x.py" in failed.traceback
    assert isinstance(ask(workbench, protocol.Place("draws", 1, 2, None)), protocol.Placed)


def test_a_worker_that_cannot_open_its_device_says_so_and_ends() -> None:
    failed = ask(Workbench(), Hello("cuda:9", (), (), keep_editable=True))
    assert isinstance(failed, protocol.Failed)
    assert failed.fatal


def test_workers_stay_on_the_cores_they_are_given() -> None:
    core = max(os.sched_getaffinity(0))
    Workbench().open(Hello("cpu", (), (), keep_editable=True, cpus=(core,)))
    assert os.sched_getaffinity(0) == {core}


class Finder:
    """An import finder like those of editable installs: it serves one package from one place."""

    def __init__(self, name: str, place: Path) -> None:
        self.name, self.place = name, place

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if name != self.name:
            return None
        return ModuleSpec(name, None, origin=str(self.place / name / "__init__.py"))


def trees(folder: Path) -> tuple[Path, Path]:
    for side in ("mine", "theirs"):
        (folder / side / "pkg").mkdir(parents=True)
        (folder / side / "pkg" / "__init__.py").touch()
    return folder / "mine", folder / "theirs"


def test_a_finder_that_serves_the_other_side_is_removed_by_name(tmp_path: Path) -> None:
    mine, theirs = trees(tmp_path)
    sys.meta_path.insert(0, Finder("pkg", theirs))
    sys.meta_path.insert(0, Finder("unrelated", theirs))
    removed = isolation.disarm(Hello("cpu", (str(theirs),), (str(mine),), keep_editable=True))
    assert len(removed) == 1
    assert "Finder, which served 'pkg' from" in removed[0]
    assert [f.name for f in sys.meta_path if isinstance(f, Finder)] == ["unrelated"]


@pytest.mark.parametrize(("keep", "left"), [(True, 1), (False, 0)])
def test_a_finder_of_our_own_tree_stays_unless_a_build_made_the_packages(
    tmp_path: Path, *, keep: bool, left: int
) -> None:
    mine, theirs = trees(tmp_path)
    sys.meta_path.insert(0, Finder("pkg", mine))
    isolation.disarm(Hello("cpu", (str(theirs),), (str(mine),), keep_editable=keep))
    assert sum(isinstance(f, Finder) for f in sys.meta_path) == left


def test_path_entries_of_the_other_side_are_removed(tmp_path: Path) -> None:
    mine, theirs = trees(tmp_path)
    sys.path += [str(theirs), str(mine)]
    removed = isolation.disarm(Hello("cpu", (str(theirs),), (str(mine),), keep_editable=True))
    assert removed == (f"path entry {theirs}",)
    assert str(mine) in sys.path


def test_loaded_files_are_told_apart_by_the_deepest_tree_around_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = trees(tmp_path)
    inner = mine / "build" / "theirs"
    files = {
        "own": mine / "pkg" / "__init__.py",
        "foreign": theirs / "pkg" / "__init__.py",
        "nested": inner / "x.py",
        "bench": theirs / "bench_x.py",
        "shared": theirs / "benchmarks" / "common.py",
        "relative": Path("_classes.py"),
    }
    for name, file in files.items():
        module = types.ModuleType(f"_probe_{name}")
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, f"_probe_{name}", module)
    hello = Hello(
        "cpu", (str(theirs), str(inner)), (str(mine),), keep_editable=True,
        benchmark_roots=(str(theirs / "benchmarks"),),
    )  # fmt: skip
    proven = isolation.prove(hello)
    assert proven.own == (str(files["own"]),)
    assert proven.foreign == (str(files["nested"]), str(files["foreign"]))
