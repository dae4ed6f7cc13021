"""Checks whose cases are measured where launchers lead, here on this machine as elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import check, commit, git, sns_gate
from tests.launchers import (
    ELSEWHERE,
    PLAIN,
    PLANTED,
    Launchers,
    outposts_of,
    planted_repository,
    through,
)
from tests.moments import wait_for
from tests.test_pinned_check import Lab
from tests.test_several_gpus import TwoGpus


@pytest.fixture
def launchers(tmp_path: Path) -> Launchers:
    return Launchers(tmp_path / "launchers")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    return planted_repository(tmp_path / "repo")


def test_every_verdict_is_reached_through_a_launcher(planted: Path, launchers: Launchers) -> None:
    plain = launchers.script(PLAIN)
    ran = through(planted, plain, more=("--verbose",))
    assert ran.verdicts == PLANTED, ran.out + ran.err
    assert ran.code == 1
    assert "same  block 1 of " in ran.out, "it is heard of while it is measured"
    assert ran.result is not None
    assert {case.device for case in ran.result.cases} == {f"{plain}: cpu"}
    assert {case.file for case in ran.result.cases} == {"benchmarks/bench_pace.py"}
    assert ran.case("slower").screening is not None, "it was confirmed in new processes"
    assert ran.result.candidate.loaded == ("pkg/__init__.py",)
    assert ran.result.candidate.fingerprint is not None
    assert "1/4" in ran.out


def test_what_is_not_seen_there_is_shipped_as_the_working_tree_has_it_and_built_there(
    planted: Path, launchers: Launchers
) -> None:
    """Changed, new and built files count; what git ignores is left behind."""
    (planted / "benchmarks/bench_more.py").write_text(
        "import os, pathlib\n"
        "from sns_gate import benchmark\n"
        "import built, pkg\n"
        "folder = pathlib.Path(pkg.__file__).parents[1]\n"
        f"assert not folder.is_relative_to({str(planted)!r}), folder\n"
        f"assert os.getcwd() == str(folder)\n"
        "assert not (folder / 'ignored').exists() and not (folder / '.git').exists()\n\n"
        "@benchmark(check=False)\n"
        "def new():\n"
        "    return lambda: pkg.pace('new', 0.001, 0.001)\n"
    )
    (planted / "ignored").mkdir()
    (planted / "ignored" / "huge").write_text("0" * 100)
    build = '{python} -c \'open("{prefix}/built.py", "w")\''
    elsewhere = launchers.script(ELSEWHERE)
    ran = through(
        planted, elsewhere, more=("--filter", "new", "--filter", "same", "--build", build)
    )
    assert ran.verdicts == {"same": "unchanged", "new": "unchanged"}, ran.out + ran.err
    assert ran.case("new").file == "benchmarks/bench_more.py"
    assert "shipping both sides" in ran.out
    assert f"{elsewhere}: building the candidate" in ran.out
    assert ran.result is not None
    assert ran.result.candidate.changed_files == ("benchmarks/bench_more.py",)


def test_benchmarks_outside_of_the_repository_are_shipped_too(
    planted: Path, launchers: Launchers, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (planted / "benchmarks").rename(outside)
    commit(planted, {})
    ran = through(
        planted, launchers.script(ELSEWHERE),
        more=("--benchmarks", str(outside), "--filter", "same"),
    )  # fmt: skip
    assert ran.verdicts == {"same": "unchanged"}, ran.out + ran.err
    assert ran.case("same").file == str(outside / "bench_pace.py")


def test_references_further_baselines_and_explanations_work_there(
    planted: Path, launchers: Launchers
) -> None:
    git(planted, "tag", "v1", "HEAD~1")
    bench = """
        import time
        from sns_gate import benchmark
        from pkg import pace

        def other():
            return lambda: pace("other", 0.012, 0.012)

        @benchmark(check=False, reference=other)
        def against():
            return lambda: pace("against", 0.002, 0.002)
    """
    commit(planted, {"benchmarks/bench_pace.py": bench})
    commit(planted, {"README": "the same"})
    ran = through(
        planted, launchers.script(ELSEWHERE),
        more=("--also-against", "v1", "--explain", "all", "--candidate", "HEAD"),
    )  # fmt: skip
    assert ran.verdicts == {
        "against": "unchanged", "against vs other": "faster", "against against v1": "unchanged",
    }, ran.out + ran.err  # fmt: skip
    assert ran.case("against vs other").explanation is not None
    assert ran.result is not None
    assert not [one for one in ran.result.disclosures if one.code == "not-explained"]


def test_clocks_are_pinned_and_given_back_there(
    tmp_path: Path, library: Path, launchers: Launchers
) -> None:
    lab = Lab(tmp_path, library)
    ran = lab.check("--clocks", "1502", "--launcher", launchers.script(PLAIN), "--explain", "none")
    assert ran.verdicts == {"case0": "unchanged"}, ran.out + ran.err
    assert ran.case("case0").tier.value == "A"
    assert lab.untouched


def test_clocks_pinned_by_an_outpost_that_is_killed_are_given_back(
    tmp_path: Path, library: Path, launchers: Launchers
) -> None:
    lab = Lab(tmp_path, library)
    gate = lab.start(
        "--clocks", "1502", "--launcher", launchers.script(PLAIN), "--explain", "none",
        "--pass-env=RECORDED_SECONDS", RECORDED_CASES="6", RECORDED_SECONDS="0.02",
    )  # fmt: skip
    wait_for("1/6", gate)
    assert lab.gpu.locked_max_mhz
    (outpost,) = outposts_of(gate.pid)
    outpost.kill()
    _, err = gate.communicate(timeout=60)
    assert gate.returncode == 3, err
    assert lab.given_back()


def test_evidence_comes_from_the_device_there(
    tmp_path: Path, library: Path, launchers: Launchers
) -> None:
    lab = Lab(tmp_path, library)
    ran = lab.check("--launcher", launchers.script(PLAIN), "--explain", "none")
    evidence = ran.case("case0").evidence
    assert evidence.clock_source == "device"
    assert ran.case("case0").blocks[0].gpu is not None


def test_gpus_of_one_host_are_places_and_refused_where_they_differ(
    tmp_path: Path, library: Path
) -> None:
    two = TwoGpus(tmp_path, library)
    uuids = [two.fake.gpu(number).uuid for number in (0, 1)]
    there = [f"env CUDA_VISIBLE_DEVICES={uuid} RECORDED_UUID={uuid}" for uuid in uuids]
    options = [word for one in there for word in ("--launcher", one)]
    ran = two.check(*options)
    assert set(ran.verdicts.values()) == {"unchanged"}, ran.out + ran.err
    assert ran.result is not None
    assert {case.device for case in ran.result.cases} == {f"{one}: cuda:0" for one in there}
    two.fake.gpu(0).power_limit_mw = 400_000
    refused = two.check(*options)
    assert refused.code == 3
    assert "differ in power_limit_w" in refused.err
    assert f"{there[0]}: cuda:0 and {there[1]}: cuda:0" in refused.err


# ------------------------------------------------------------------ what cannot be done


def test_a_candidate_has_no_say_in_what_is_launched(planted: Path, launchers: Launchers) -> None:
    evil = launchers.script(f"touch {planted.parent}/launched; exec false")
    commit(planted, {"sns-gate.toml": f'launcher = "{evil}"\nlauncher-python = "evil"\n'})
    ran = check(planted, "--policy-from", "baseline", "--filter", "same")
    assert ran.verdicts == {"same": "unchanged"}, ran.out + ran.err
    assert not (planted.parent / "launched").exists()
    assert ran.result is not None
    told = [one.text for one in ran.result.disclosures if one.code == "policy-from-baseline"]
    assert any("launcher" in text for text in told)


def test_launchers_stand_in_every_layer_and_an_empty_one_is_this_machine(
    planted: Path, launchers: Launchers
) -> None:
    plain = launchers.script(PLAIN)
    commit(planted, {"sns-gate.toml": f'launcher = ["{plain}"]\n'})
    own = ("--state-dir", str(planted.parent / "state"), "--filter", "same")
    assert check(planted, *own).case("same").device == f"{plain}: cpu"
    assert check(planted, *own, SNS_GATE_LAUNCHER="").case("same").device is None
    assert check(planted, *own, "--launcher", "").case("same").device is None


@pytest.mark.parametrize("command", ["compare", "explain"])
def test_commands_for_this_machine_say_so(
    planted: Path, launchers: Launchers, command: str
) -> None:
    what = ("pkg:answer", "pkg:answer") if command == "compare" else ("same",)
    ran = sns_gate(planted, command, *what, "--device", "cpu", "--launcher",
                   launchers.script(PLAIN))  # fmt: skip
    assert ran.code == 2
    assert "works at this machine alone" in ran.err


def test_a_place_has_one_device(planted: Path, launchers: Launchers) -> None:
    ran = through(planted, launchers.script(PLAIN), more=("--device", "cuda:0,1"))
    assert ran.code == 2
    assert "names 2 devices there" in ran.err


def test_what_is_asked_wrongly_is_said_as_here_with_the_place(
    planted: Path, launchers: Launchers
) -> None:
    plain = launchers.script(PLAIN)
    ran = through(planted, plain, more=("--python", "/no/such/python"))
    assert ran.code == 2
    assert f"{plain}: /no/such/python is no program" in ran.err
    ran = through(planted, plain, more=("--launcher-python", "a b"))
    assert (ran.code, "launcher-python" in ran.err) == (2, True)
    ran = through(planted, "ssh 'host")
    assert (ran.code, "No closing quotation" in ran.err) == (2, True)


# ------------------------------------------------------------------ trust


def test_launchers_get_the_users_variables_without_tokens_and_workers_their_allowlist(
    planted: Path, launchers: Launchers
) -> None:
    seen = planted.parent / "seen.json"
    bench = f"""
        import json, os
        from sns_gate import benchmark
        from pkg import pace

        own = f"{seen}.{{os.getpid()}}"  # all workers load this at once
        with open(own, "w") as file:
            json.dump(dict(os.environ), file)
        os.replace(own, {str(seen)!r})

        @benchmark(check=False)
        def same():
            return lambda: pace("same", 0.002, 0.002)
    """
    commit(planted, {"benchmarks/bench_pace.py": bench})
    commit(planted, {"README": "the same"})
    listing, value = planted.parent / "environment", "not-to-be-seen"
    ran = through(
        planted, launchers.script(f"env > {listing}; {PLAIN}"),
        GITHUB_TOKEN=value, GH_TOKEN=value, ACTIONS_RUNTIME_TOKEN=value,
        SSH_AUTH_SOCK="/agent",
    )  # fmt: skip
    assert ran.verdicts == {"same": "unchanged"}, ran.out + ran.err
    assert "SSH_AUTH_SOCK=/agent" in listing.read_text()
    assert value not in listing.read_text()
    workers = json.loads(seen.read_text())
    assert not {"SSH_AUTH_SOCK", "GITHUB_TOKEN"} & set(workers)


def test_files_of_the_repository_are_not_imported_by_what_is_launched(
    planted: Path, launchers: Launchers
) -> None:
    commit(planted, {"pydantic.py": "raise SystemExit('imported the candidate')\n"})
    launcher = launchers.script(f"unset PYTHONSAFEPATH; {PLAIN}")
    ran = through(planted, launcher, more=("--filter", "same"), PYTHONSAFEPATH="1")
    assert ran.verdicts == {"same": "unchanged"}, ran.out + ran.err
