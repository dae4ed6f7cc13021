"""Places that cannot be opened, are lost, or say what they must not; nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sns_gate.errors import PlaceLost, UsageError
from sns_gate.outpost import lines
from sns_gate.outpost.launched import Launched, command_of
from sns_gate.outpost.messages import Alive, Done, Event, Look, Measured, StageBegun
from sns_gate.outpost.near import Outpost
from sns_gate.outpost.station import RemoteStation
from sns_gate.protocol import CaseSpec
from sns_gate.rig.stations import spread
from sns_gate.session import CaseOutcome, PlannedCase
from sns_gate.temporary import ANY
from sns_gate.types import CaseResult, Verdict
from tests.conftest import QUICK, Ran, check, clean_environment, commit, new_repository
from tests.launchers import BANNER, ELSEWHERE, PLAIN, Launchers, outposts_of
from tests.leftovers import left_behind, processes_in
from tests.moments import wait_for

COUNT = 5
#: Each case says, as it begins, which process its workers belong to.
CASES = f"""
    import os, pathlib, time
    from sns_gate import benchmark
    import pkg

    @benchmark(params={{{{"n": list(range({COUNT}))}}}}, check=False)
    def slow(n):
        pathlib.Path("{{begun}}", str(n)).write_text(str(os.getppid()))
        return lambda: time.sleep(0.003)
"""
BEGINS_WITHIN_S = 60
#: A scheduler's signals reach the processes of a job one by one.
HEARS_LATER_S = 0.3


class Field:
    """A repository of slow cases, launchers, and a folder of temporary files for everybody."""

    def __init__(self, folder: Path) -> None:
        self.tmp, self.state = folder / "tmp", folder / "state"
        self._begun = folder / "begun"
        for made in (self.tmp, self._begun):
            made.mkdir()
        self.launchers = Launchers(folder / "launchers")
        self.repository = new_repository(
            folder / "repo",
            {"pkg.py": "", "benchmarks/bench_slow.py": CASES.format(begun=self._begun),
             ".gitignore": "result.json\n__pycache__/\n"},
        )  # fmt: skip
        commit(self.repository, {"pkg.py": "changed = 1\n"})

    def options(self, *launchers: str) -> list[str]:
        there = [word for one in launchers for word in ("--launcher", one)]
        return [*there, "--state-dir", str(self.state)]

    def start(self, *launchers: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sns_gate", "check", *QUICK, "--baseline", "HEAD~1",
             "--placements", "4",
             *self.options(*launchers)],
            cwd=self.repository, env=clean_environment(TMPDIR=str(self.tmp)), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )  # fmt: skip

    def measuring(self, number: int) -> psutil.Process:
        """The process whose workers have just begun with a case."""
        deadline_s = time.monotonic() + BEGINS_WITHIN_S
        file = self._begun / str(number)
        while not (file.exists() and (said := file.read_text())):
            assert time.monotonic() < deadline_s, f"case {number} has not begun"
            time.sleep(0.01)
        return psutil.Process(int(said))

    def check(self, *launchers: str, more: tuple[str, ...] = ()) -> Ran:
        return check(
            self.repository, *self.options(*launchers), *more, TMPDIR=str(self.tmp),
        )  # fmt: skip

    @property
    def cases(self) -> list[dict[str, Any]]:
        found = json.loads((self.repository / "result.json").read_text())["cases"]
        assert isinstance(found, list)
        return found


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    made = Field(tmp_path)
    yield made
    left = left_behind(made.repository, made.tmp)
    left.pop("files", None)  # of killed outposts, until the next check there
    assert not left


def lost(case: dict[str, Any]) -> bool:
    return bool(case["verdict"] == "broken" and case["reasons"][-1]["code"] == "place-lost")


# ------------------------------------------------------------------ lost in mid-run


def test_a_place_killed_in_mid_run_breaks_its_case_and_the_other_measures_the_rest(
    field: Field,
) -> None:
    plain = field.launchers.script(PLAIN)
    gate = field.start(plain, plain)
    victim = field.measuring(2)
    number = 1 + [one.pid for one in outposts_of(gate.pid)].index(victim.pid)
    os.killpg(victim.pid, signal.SIGKILL)
    out, err = gate.communicate(timeout=120)
    assert gate.returncode == 3, out + err
    assert [lost(case) for case in field.cases] == [n == 2 for n in range(COUNT)], out
    broken = field.cases[2]
    assert f"'{plain} #{number}' was killed by SIGKILL" in broken["reasons"][-1]["text"]
    assert broken["broken_sides"] == ["baseline", "candidate"]
    assert broken["device"] == f"{plain} #{number}: cpu"
    assert all(case["speedup"] for case in field.cases if not lost(case)), out
    field.check(more=("--filter", "n=1"))
    assert not left_behind(field.repository, field.tmp), "the next check there sweeps up"


def test_a_place_whose_workers_hear_of_its_end_first_is_lost_all_the_same(field: Field) -> None:
    """So a scheduler ends a job: each process by a signal of its own, in any order."""
    plain = field.launchers.script(PLAIN)
    gate = field.start(plain, plain)
    victim = field.measuring(2)
    for worker in victim.children():
        worker.terminate()
    time.sleep(HEARS_LATER_S)
    victim.terminate()
    out, err = gate.communicate(timeout=120)
    assert gate.returncode == 3, out + err
    assert [lost(case) for case in field.cases] == [n == 2 for n in range(COUNT)], out


def test_a_place_lost_between_two_cases_costs_none_and_is_told(field: Field) -> None:
    """So it is where the loss shows when the outpost is asked what it runs on."""
    far = field.launchers.script('sed -u \'/"kind":"measured"/q\'', "ends after its first case")
    plain = field.launchers.script(f"{PLAIN[5:]} | '{far}'")
    gate = field.start(plain, field.launchers.script(PLAIN, "stays"))
    out, err = gate.communicate(timeout=120)
    assert gate.returncode == 0, out + err
    assert len(field.cases) == COUNT
    assert all(case["speedup"] for case in field.cases)
    assert "[place-lost]" in out


def test_without_any_place_left_the_remaining_cases_are_broken(field: Field) -> None:
    gate = field.start(field.launchers.script(f"{PLAIN[5:]}; echo 'node1 went down' >&2; exit 9"))
    field.measuring(1).kill()
    out, err = gate.communicate(timeout=120)
    assert gate.returncode == 3, out + err
    assert [lost(case) for case in field.cases] == [False] + [True] * (COUNT - 1)
    reason = field.cases[-1]["reasons"][-1]
    assert "exited with 9" in reason["text"]
    assert "node1 went down" in reason["detail"]


def test_a_lost_station_takes_no_more_and_the_last_one_breaks_what_is_left() -> None:
    class Fake:
        def __init__(self, name: str, after: int) -> None:
            self.name, self.left = name, after

        @property
        def lost(self) -> bool:
            return self.left <= 0

        def close(self) -> None:
            self.left = 0

    def do(at: Any, _: int) -> tuple[str, bool]:  # noqa: ANN401 (stands for a station)
        time.sleep(0.01)
        at.left -= 1
        return at.name, at.lost

    there: list[Any] = [Fake("first", 1), Fake("second", 3)]
    kept: dict[int, tuple[str, bool]] = {}
    spread(there, range(10), do, lambda _, piece, found: kept.update({piece: found}))
    assert sorted(kept) == list(range(10))
    names = [name for name, _ in kept.values()]
    assert sorted({"first": names.count("first"), "second": names.count("second")}.values()) in (
        [1, 9], [3, 7],
    )  # fmt: skip


def test_two_places_share_the_cases_behind_a_banner_and_under_one_name(field: Field) -> None:
    banner = field.launchers.script(BANNER)
    ran = field.check(banner, banner)
    assert ran.code == 0, ran.out + ran.err
    assert ran.result is not None
    assert {case.device for case in ran.result.cases} == {f"{banner} #1: cpu", f"{banner} #2: cpu"}


# ------------------------------------------------------------------ ended from here


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_check_ends_everything_everywhere(
    field: Field, number: signal.Signals, code: int
) -> None:
    gate = field.start(field.launchers.script(BANNER), field.launchers.script(ELSEWHERE, "two"))
    wait_for(f"1/{COUNT}", gate)
    assert len(outposts_of(gate.pid)) >= 2
    gate.send_signal(number)
    out, err = gate.communicate(timeout=60)
    assert gate.returncode == code, out + err
    assert not left_behind(field.repository, field.tmp), "the outposts have swept up themselves"
    assert not any(lost(case) for case in field.cases)


def test_outposts_of_a_killed_check_end_at_once_by_themselves(field: Field) -> None:
    """Even in the midst of a case that takes long."""
    bench = (field.repository / "benchmarks/bench_slow.py").read_text()
    longer = bench.replace("return lambda", "time.sleep(100 if n == 1 else 0); return lambda")
    commit(field.repository, {"benchmarks/bench_slow.py": longer})
    gate = field.start(field.launchers.script(PLAIN))
    outpost = field.measuring(1)
    gate.kill()
    gate.communicate(timeout=10)
    psutil.wait_procs([outpost], timeout=20)
    assert not outpost.is_running()
    own = f"{ANY}{outpost.pid}-"
    assert not [file for file in field.tmp.iterdir() if file.name.startswith(own)]
    field.check(more=("--filter", "n=0"))
    assert not left_behind(field.repository, field.tmp)


def test_a_launcher_that_does_not_end_is_made_to(field: Field) -> None:
    stubborn = field.launchers.script(f"trap '' TERM; {PLAIN[5:]}; sleep 1000")
    started_s = time.monotonic()
    ran = field.check(stubborn, more=("--filter", "n=1"))
    assert ran.verdicts == {"slow[n=1]": "unchanged"}, ran.out + ran.err
    assert time.monotonic() - started_s < 100
    assert not processes_in(field.tmp)


# ------------------------------------------------------------------ never opened


def test_a_launcher_that_is_not_there_is_named(field: Field) -> None:
    ran = field.check("no-such-launcher host")
    assert ran.code == 3
    assert "no-such-launcher cannot be run (No such file or directory)" in ran.err


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("echo 'ssh: connection refused' >&2; exit 255",
         ("exited with 255", "try it by hand", "connection refused")),
        ("echo /usr/bin/python3: No module named sns_gate >&2; exit 1",
         ("exited with 1", "install sns-gate", "--launcher-python")),
        ("echo 'Welcome'; exec /no/such/python", ("exited with 127", "--launcher-python")),
        ("yes | head -c 3000000; cat", ("more than a banner",)),
    ],
)  # fmt: skip
def test_a_place_that_does_not_open_is_refused_in_the_launchers_words(
    field: Field, body: str, told: tuple[str, ...]
) -> None:
    ran = field.check(field.launchers.script(body))
    assert ran.code == 3, ran.out + ran.err
    assert "no outpost answered" in ran.err
    for text in told:
        assert text in ran.err


@pytest.mark.parametrize(
    "other", [{"version": "0.0.9"}, {"protocol": 99}, {"version": "9.0", "more": ["to", "say"]}]
)
def test_another_version_is_refused_with_what_to_install(
    field: Field, other: dict[str, Any]
) -> None:
    ran = field.check(field.launchers.impostor("cat > /dev/null", **other))
    assert ran.code == 3, ran.out + ran.err
    assert str(next(iter(other.values()))) in ran.err
    assert "install sns-gate" in ran.err


def test_a_path_that_a_shell_would_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/a folder/python")
    with pytest.raises(UsageError, match="--launcher-python FILE"):
        command_of("ssh host", None)
    words = command_of("ssh -o 'BatchMode yes' host", "/opt/python3")
    assert words == ["ssh", "-o", "BatchMode yes", "host", "/opt/python3", "-P", "-m",
                     "sns_gate.outpost"]  # fmt: skip


# ------------------------------------------------------------------ what must not be said


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("echo garbage; cat > /dev/null", "is no answer (Invalid JSON"),
        ("""echo '{"kind":"done"}'; cat > /dev/null""", "answered Done out of turn"),
        ("""echo '{"kind":"looked","everything":7}'; cat""", "is no answer"),
        ("""echo '{"kind":"looked","everything":true,"more":1}'; cat""", "is no answer"),
        ("read line; exit 4", "exited with 4"),
    ],
)  # fmt: skip
def test_what_is_no_answer_ends_the_place(field: Field, then: str, told: str) -> None:
    ran = field.check(field.launchers.impostor(then))
    assert ran.code == 3, ran.out + ran.err
    assert told in ran.err


def test_the_outcome_of_another_case_than_asked_counts_for_none() -> None:
    spec = CaseSpec("asked", "f.py", 1, None, "cold")
    other = CaseResult(id="other", verdict=Verdict.UNCHANGED, tolerance=0.1)
    answer = Measured(outcome=CaseOutcome(other))
    left: list[bool] = []
    outpost: Any = SimpleNamespace(
        name="x", device="cpu", ask=lambda *_: answer, leave=lambda: left.append(True)
    )
    progress: Any = None
    station = RemoteStation(outpost)
    outcome = station.measure(PlannedCase(spec, 0.1), time.monotonic(), progress, 1)
    assert outcome.result.id == "asked"
    assert outcome.result.verdict is Verdict.BROKEN
    assert left, "nothing that it says is believed any more"


def test_nothing_stray_reaches_the_coordinator(field: Field) -> None:
    """Neither what the interpreter there prints before, nor what threads print meanwhile."""
    (field.launchers.folder / "sitecustomize.py").write_text(
        "import os, sys, threading, time\n"
        "is_outpost = '-P' in sys.orig_argv\n"
        "if is_outpost: os.write(1, b'before\\nand without an end')\n"
        "def chatter():\n"
        "    while 'sns_gate.outpost.far' not in sys.modules: time.sleep(0.05)\n"
        "    while True:\n"
        "        time.sleep(0.5)\n"
        "        os.write(1, b'chatter\\n')\n"
        "if is_outpost: threading.Thread(target=chatter, daemon=True).start()\n"
    )
    launcher = f"env PYTHONPATH={field.launchers.folder}"
    ran = field.check(launcher, more=("--filter", "n=1"))
    assert ran.verdicts == {"slow[n=1]": "unchanged"}, ran.out + ran.err


def test_a_place_that_falls_silent_is_lost(tmp_path: Path) -> None:
    launched = Launched("silent", ["sleep", "100"], dict(os.environ), tmp_path / "log", 0.5)
    outpost = Outpost(launched)
    try:
        with pytest.raises(PlaceLost, match=r"'silent' said nothing for 0 s|for 1 s"):
            outpost.ask(Look(file=Path("/x"), text="", folders=()), Done)
        assert outpost.lost
        with pytest.raises(PlaceLost):
            outpost.ask(Look(file=Path("/x"), text="", folders=()), Done)
    finally:
        started_s = time.monotonic()
        outpost.end()
    assert time.monotonic() - started_s < 20


def test_signs_of_life_are_no_answers_and_stages_are_heard(tmp_path: Path) -> None:
    said = b"".join(map(lines.encoded, (Alive(), StageBegun(text="one"), Alive(), Done())))
    (tmp_path / "said").write_bytes(said)
    launched = Launched(
        "x", ["sh", "-c", f"cat {tmp_path}/said; cat > /dev/null"], dict(os.environ),
        tmp_path / "log",
    )  # fmt: skip
    outpost, heard = Outpost(launched), list[Event]()
    try:
        outpost.ask(Look(file=Path("/x"), text="", folders=()), Done, heard.append)
    finally:
        outpost.end()
    assert heard == [StageBegun(text="one")]


def test_an_outpost_at_a_terminal_says_what_it_is() -> None:
    done = subprocess.run(
        ["script", "-qec", f"{sys.executable} -P -m sns_gate.outpost", "/dev/null"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "sns-gate check --launcher COMMAND" in done.stdout
