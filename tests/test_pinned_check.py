"""Whole checks with pinned clocks: the fake NVML below, recorded workers beside it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Ran, clean_environment, commit, git, new_repository, sns_gate
from tests.contract import contract
from tests.fake_nvml import FakeNvml, Switch
from tests.moments import ended, wait_for

PROCESSES = 3
#: An interpreter, as far as it is asked what it is, whose workers are recorded ones.
_STAND_IN = """#!/bin/sh
case "$1" in -c) exec {python} "$@";; esac
exec {python} {worker}
"""
KILLS = 3
ALL_KILLS = 100


class Lab:
    """A repository, a fake GPU and recorded workers on it."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.fake = FakeNvml(library, gpus=2)
        self.gpu = self.fake.gpu(1)
        self.state = folder / "state"
        self.clock, self.held = folder / "mhz", folder / "held"
        self.clock.write_text("1500")
        self.python = folder / "python"
        worker = Path(__file__).parent / "recorded_worker.py"
        self.python.write_text(_STAND_IN.format(python=sys.executable, worker=worker))
        self.python.chmod(0o755)
        self.repository = new_repository(
            folder / "repo",
            {"pkg.py": "", "benchmarks/bench_x.py": "", ".gitignore": "result.json\n"},
        )
        commit(self.repository, {"pkg.py": "changed = 1\n"})
        self.variables = {
            **self.fake.environment,
            "RECORDED_UUID": self.gpu.uuid, "RECORDED_MHZ": str(self.clock),
            "CUDA_VISIBLE_DEVICES": self.gpu.uuid, "TMPDIR": str(folder),
        }  # fmt: skip
        self.options = (
            "check", "--baseline", "HEAD~1", "--device", "cuda:0", "--processes", str(PROCESSES),
            "--placements", "2", "--python", str(self.python), "--state-dir", str(self.state),
            *(f"--pass-env={n}" for n in ("RECORDED_UUID", "RECORDED_MHZ", "RECORDED_CASES",
                                          "RECORDED_SLOWER", "RECORDED_HELD", "FAKE_NVML_STATE")),
        )  # fmt: skip

    def check(self, *options: str, **variables: str) -> Ran:
        return sns_gate(self.repository, *self.options, *options, **(self.variables | variables))

    def start(self, *options: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sns_gate", *self.options, *options], cwd=self.repository,
            env=clean_environment(**(self.variables | variables)), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # A test run in the background hands an ignored SIGINT down; a user's shell does not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )  # fmt: skip

    def hold(self) -> dict[str, str]:
        """Variables with which a check stays within its third case until its file goes."""
        self.held.touch()
        return {"RECORDED_HELD": str(self.held), "RECORDED_CASES": "6"}

    @property
    def untouched(self) -> bool:
        gpu = self.gpu
        clean = (gpu.locked_max_mhz, gpu.power_limit_mw) == (0, 700_000)
        return clean and not list(self.state.glob("*.json"))

    def given_back(self, seconds: float = 10) -> bool:
        deadline = time.monotonic() + seconds
        while not self.untouched and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.untouched


@pytest.fixture
def lab(tmp_path: Path, library: Path) -> Lab:
    return Lab(tmp_path, library)


def codes(ran: Ran) -> list[str]:
    return [reason.code for reason in ran.case("case0").reasons]


@contract(
    "Reaching Tier A",
    "Tier A requires a LockedClockPolicy that successfully pinned the clocks",
)
def test_pinned_clocks_seen_held_on_the_device_are_tier_a(lab: Lab) -> None:
    ran = lab.check("--clocks", "1502,500")
    assert ran.verdicts == {"case0": "unchanged"}, ran.out + ran.err
    case = ran.case("case0")
    assert case.tier.value == "A"
    assert case.evidence.clock_source == "device"
    assert case.evidence.clock_range_mhz < 30
    assert lab.untouched


def test_floating_clocks_are_tier_b(lab: Lab) -> None:
    lab.clock.write_text("1980")
    ran = lab.check()
    assert (ran.case("case0").tier.value, ran.verdicts["case0"]) == ("B", "unchanged")
    assert not lab.fake.writes()


def test_a_device_that_runs_beside_its_pinned_clock_is_tier_b_with_the_reason(lab: Lab) -> None:
    lab.clock.write_text("1440")
    ran = lab.check("--clocks", "1500")
    assert ran.case("case0").tier.value == "B"
    assert "clock-not-held" in codes(ran)
    assert lab.untouched


@contract(
    "Power headroom matters",
    "draw enough power and the card throttles regardless of what you asked for",
)
def test_the_power_cap_costs_tier_a(lab: Lab) -> None:
    lab.gpu.dynamic_w = 4000
    lab.gpu.load = 1.0
    ran = lab.check("--clocks", "1500")
    assert ran.code == 3  # at that load the device cannot reach 1500 MHz at all
    assert "requested 1500 MHz, device reports" in ran.err
    lab.gpu.dynamic_w = 800
    lab.gpu.load = 0.0
    ran = lab.check("--clocks", "1500")
    assert ran.case("case0").tier.value == "A"
    assert lab.untouched


def test_another_process_on_the_gpu_is_tier_c_and_no_verdict(lab: Lab) -> None:
    lab.gpu.processes = [(4242, 1 << 30)]
    mine = [(100 + n, 1 << 29) for n in range(2 * PROCESSES)]
    process = lab.start(RECORDED_CASES="1")
    # Ours appear between the two counts, as contexts of real workers would.
    deadline = time.monotonic() + 120
    while not _workers_up(process.pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    lab.gpu.processes = [(4242, 1 << 30), *mine]
    out, err = process.communicate(timeout=60)
    assert "another process used this GPU" in out, out + err
    assert process.returncode == 3


def _workers_up(pid: int) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return children.exists() and len(children.read_text().split()) >= 2 * PROCESSES


def test_a_gpu_that_was_busy_before_we_came_is_shared_even_if_nobody_is_listed(lab: Lab) -> None:
    lab.gpu.flags |= Switch.NO_SMI_PROCESSES
    lab.gpu.load = 0.5
    ran = lab.check()
    assert (ran.case("case0").tier.value, codes(ran)) == ("C", ["gpu-shared"])
    lab.gpu.load = 0.0
    ran = lab.check()
    assert (ran.case("case0").tier.value, codes(ran)) == ("B", ["contention-unseen"])


def test_hardware_slowdown_and_a_gpu_lost_in_mid_run_are_tier_c(lab: Lab) -> None:
    lab.gpu.flags |= Switch.HW_SLOWDOWN
    ran = lab.check()
    assert (ran.code, codes(ran)[0]) == (3, "throttled")
    lab.gpu.flags &= ~Switch.HW_SLOWDOWN
    lab.gpu.fail_after_calls = 60
    ran = lab.check()
    assert (ran.code, codes(ran)[0]) == (3, "nvml-lost")


def test_a_clock_that_cannot_be_pinned_ends_the_check_with_the_reason(lab: Lab) -> None:
    lab.gpu.flags |= Switch.NO_PERMISSION
    ran = lab.check("--clocks", "1500")
    assert ran.code == 3
    assert ran.err.startswith("sns-gate: refused: the driver refused nvmlDeviceSetGpuLockedClocks")
    assert "Traceback" not in ran.err


def test_clocks_on_the_cpu_are_a_usage_error(lab: Lab) -> None:
    del lab.variables["RECORDED_UUID"]
    ran = lab.check("--clocks", "1500", "--device", "cpu")
    assert ran.code == 2
    assert "clocks can be pinned on a GPU alone" in ran.err


def test_an_exclusive_compute_mode_is_refused_with_the_mend(lab: Lab) -> None:
    lab.gpu.compute_mode = 3
    ran = lab.check()
    assert ran.code == 3
    assert f"'nvidia-smi -i {lab.gpu.uuid} -c DEFAULT'" in ran.err


def test_a_second_gate_waits_for_the_gpu_and_says_who_holds_it(lab: Lab, tmp_path: Path) -> None:
    with ended(lab.start(**lab.hold())) as first:
        wait_for("1/6", first)
        second = lab.check("--lock-timeout", "0.2", "--json", str(tmp_path / "second.json"))
    assert second.code == 3
    assert f"held by process {first.pid} of " in second.out
    assert "wait for that check" in second.err
    assert lab.check().verdicts == {"case0": "unchanged"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_gives_the_clocks_back(lab: Lab, number: signal.Signals) -> None:
    with ended(lab.start("--clocks", "1500,500", **lab.hold())) as gate:
        wait_for("1/6", gate)
        assert lab.gpu.locked_max_mhz == 1500
        gate.send_signal(number)
        gate.communicate(timeout=120)
    assert lab.untouched


def test_clocks_and_power_are_given_back_when_the_gate_is_killed_at_any_moment(lab: Lab) -> None:
    """SIGKILL of a check at random moments while its clocks are pinned."""
    rng = random.Random(2)
    kills = ALL_KILLS if os.environ.get("SNS_ALL_KILLS") else KILLS
    for _ in range(kills):
        with ended(lab.start("--clocks", "1500,500", **lab.hold())):
            deadline = time.monotonic() + 60
            while not lab.gpu.locked_max_mhz and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.5))
            assert lab.gpu.locked_max_mhz == 1500
        assert lab.given_back(), lab.fake.writes()
    git(lab.repository, "worktree", "prune")


def doctor(lab: Lab, *options: str) -> tuple[int, dict[str, str], str]:
    """Exit code, health by point, and everything said of a trial of clocks."""
    passed = [word for word in lab.options if word.startswith("--pass-env")]
    torch = lab.python.with_name("torch")
    torch.write_text(
        '#!/bin/sh\ncase "$2" in *torch*) echo \'["2.11", "13.0", true]\';; '
        f'*) exec {lab.python} "$@";; esac\n'
    )
    torch.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "sns_gate", "doctor", "--json", "--python", str(torch),
         "--state-dir", str(lab.state), *passed, *options],
        env=clean_environment(**lab.variables), capture_output=True, text=True, check=False,
    )  # fmt: skip
    points = json.loads(done.stdout)["points"]
    return done.returncode, {p["name"]: p["health"] for p in points}, done.stdout + done.stderr


@contract(
    "Current status",
    "The first Tier A host should re-verify both paths end to end",
)
def test_doctor_goes_to_tier_a_and_back(lab: Lab) -> None:
    code, health, said = doctor(lab, "--clocks", "1500,500")
    assert code == 0, said
    assert (health["clocks under load"], health["clocks given back"]) == ("ok", "ok")
    assert "1500 MHz within" in said
    assert "the power limit is 700 W as before" in said
    assert lab.fake.writes(), "nothing was pinned at all"
    assert lab.untouched


def test_doctor_says_that_a_clock_does_not_hold(lab: Lab) -> None:
    lab.clock.write_text("1440")
    code, health, said = doctor(lab, "--clocks", "1500")
    assert (code, health["clocks under load"], health["clocks given back"]) == (3, "limits", "ok")
    assert "ask for a lower clock" in said
    assert lab.untouched


def test_doctor_says_that_clocks_cannot_be_pinned(lab: Lab) -> None:
    lab.gpu.flags = lab.gpu.flags | Switch.NO_PERMISSION
    code, health, said = doctor(lab, "--clocks", "1500")
    assert (code, health["clocks under load"], health["clocks given back"]) == (3, "stops", "ok")
    assert "could not be pinned" in said
