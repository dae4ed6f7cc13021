"""What ``sns-gate doctor`` says of healthy, limited and useless machines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sns_gate.clocks import ClockLockError
from sns_gate.clocks import helper as clock_helper
from sns_gate.doctor import Diagnosis, try_clocks
from sns_gate.types import GateResult, MeasurementTier
from tests.conftest import clean_environment, sns_gate
from tests.fake_nvml import FakeNvml, Switch

HEALTHY = Switch.ECC | Switch.PERSISTENCE


def stand_in(python: Path, torch: str, version: str = "3 11") -> None:
    """An interpreter that says this of its torch and of itself."""
    asked = f"case $2 in *version_info*) echo {version};; *) echo '{torch}';; esac"
    python.write_text(f"#!/bin/sh\n{asked}\n")
    python.chmod(0o755)


@pytest.fixture
def fake(library: Path, tmp_path: Path) -> FakeNvml:
    # Stands in for an interpreter whose torch can use the GPU.
    python = tmp_path / "python"
    stand_in(python, '["2.11.0", "13.0", true]')
    return FakeNvml(library, gpus=1)


def doctor(tmp_path: Path, fake: FakeNvml | None, **variables: str) -> tuple[int, Any]:
    python = tmp_path / "python"
    options = ["--json", "--state-dir", str(tmp_path)]
    options += ["--python", str(python)] if python.exists() else []
    done = subprocess.run(
        [sys.executable, "-m", "sns_gate", "doctor", *options],
        env=clean_environment(**(fake.environment if fake else {}), **variables),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def point(found: Any, name: str) -> Any:  # noqa: ANN401 (JSON)
    return next(p for p in found["points"] if p["name"] == name)


def test_without_a_gpu_tier_b_on_the_cpu_can_be_reached(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, None)
    assert (code, found["reachable"]) == (0, "B")
    assert found["device"] == "cpu"


def test_root_on_a_healthy_gpu_can_reach_tier_a(fake: FakeNvml, tmp_path: Path) -> None:
    code, found = doctor(tmp_path, fake)
    assert (code, found["reachable"]) == (0, "A")
    assert "345 to 1980 MHz" in point(found, "pinning clocks")["text"]
    assert "limit 700 W" in point(found, "power")["text"]
    assert not fake.writes()


@pytest.mark.parametrize(
    ("change", "name", "reachable"),
    [
        ({"compute_mode": 3}, "compute mode", "C"),
        ({"processes": [(77, 1 << 30)]}, "other processes", "C"),
        ({"flags": Switch.ECC}, "persistence", "A"),
        ({"flags": HEALTHY | Switch.MIG}, "MIG", "A"),
        ({"flags": HEALTHY | Switch.UNSUPPORTED_FIELDS}, "event reasons", "B"),
        ({"flags": HEALTHY | Switch.NO_SMI_PROCESSES}, "other processes", "A"),
    ],
)  # fmt: skip
def test_what_stops_or_limits_is_named(
    fake: FakeNvml, tmp_path: Path, change: dict[str, Any], name: str, reachable: str
) -> None:
    for attribute, value in change.items():
        setattr(fake.gpu(0), attribute, value)
    code, found = doctor(tmp_path, fake)
    named = point(found, name)
    assert found["reachable"] == reachable
    assert named["health"] == ("stops" if reachable == "C" else "limits")
    assert code == (3 if reachable == "C" else 0)


def test_a_driver_that_is_not_loaded_stops(fake: FakeNvml, tmp_path: Path) -> None:
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("without a device file, a driver that does not answer is no driver")
    fake.driver_not_loaded = True
    assert doctor(tmp_path, fake)[0] == 3


def test_a_torch_that_cannot_use_the_gpu_stops(fake: FakeNvml, tmp_path: Path) -> None:
    stand_in(tmp_path / "python", '["2.11.0+cpu", null, false]')
    code, found = doctor(tmp_path, fake)
    assert (code, point(found, "torch")["health"]) == (3, "stops")


@pytest.mark.parametrize("name", ["/bin/ls", "/bin/true", "/bin/echo", "/etc/passwd", "/", "/gone"])
def test_an_interpreter_that_is_none_is_refused_as_such(tmp_path: Path, name: str) -> None:
    ran = sns_gate(tmp_path, "doctor", "--python", name, "--state-dir", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert f"{name} is no Python that can be run" in ran.err
    assert "--python FILE" in ran.err


def test_an_interpreter_that_is_too_old_for_workers_stops(tmp_path: Path) -> None:
    stand_in(tmp_path / "python", '["2.1", null, false]', "3 9")
    code, found = doctor(tmp_path, None)
    assert (code, point(found, "python")["health"]) == (3, "stops")


def test_a_torch_that_cannot_be_imported_is_not_called_absent(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart is missing')")
    _, found = doctor(tmp_path, None, PYTHONPATH=str(tmp_path))
    assert "cannot be imported (ImportError: libcudart is missing)" in point(found, "torch")["text"]


def test_a_left_journal_is_named_with_its_mend(fake: FakeNvml, tmp_path: Path) -> None:
    journal = {"uuid": fake.gpu(0).uuid, "sm_mhz": 1500, "pid": 1, "started_at": 0}
    (tmp_path / f"{fake.gpu(0).uuid}.clocks.json").write_text(json.dumps(journal))
    _, found = doctor(tmp_path, fake)
    assert point(found, "clocks")["mend"] == "sns-gate restore"


def test_a_user_without_rights_gets_the_lines_that_install_the_helper(
    fake: FakeNvml, tmp_path: Path
) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("this machine cannot run a command as another user")
    program = (
        "import os; os.geteuid = lambda: 1000\n"
        "from pathlib import Path\nfrom sns_gate.doctor import examine, say\nimport sys\n"
        f"say(examine(Path({str(tmp_path / 'python')!r}), Path('/nowhere')), sys.stdout.write)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_environment(**fake.environment),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"sudo install -o root -g root -m 755 {clock_helper.__file__}" in done.stdout
    assert "NOPASSWD: /usr/local/sbin/sns-gate-clocks" in done.stdout
    assert "NOPASSWD: /usr/bin/nvidia-smi" not in done.stdout
    assert "Tier B can be reached here" in done.stdout


def test_a_person_reads_one_point_a_line_and_its_mend() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sns_gate", "doctor"], env=clean_environment(), text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert "Tier B can be reached here: verdicts are possible." in done.stdout


def test_a_trial_that_leaves_a_journal_says_so_and_is_no_success(tmp_path: Path) -> None:
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    found = Diagnosis(device="cuda", reachable=MeasurementTier.A, points=())

    def leaves_a_journal() -> GateResult:
        journal = {"uuid": uuid, "sm_mhz": 1500, "pid": 1, "started_at": 0}
        (tmp_path / f"{uuid}.clocks.json").write_text(json.dumps(journal))
        raise ClockLockError("the driver went away")

    tried = try_clocks(found, uuid, tmp_path, leaves_a_journal)
    assert tried.reachable is MeasurementTier.C
    back = next(p for p in tried.points if p.name == "clocks given back")
    assert (back.health, back.mend) == ("stops", "sns-gate restore")
