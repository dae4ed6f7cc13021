"""Bad input gets a clear error, with the next step, and loses nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sns_gate.errors import RefusedRun
from sns_gate.workers.environment import private_package
from tests.conftest import (
    QUICK,
    WORK,
    Ran,
    check,
    clean_environment,
    commit,
    git,
    new_repository,
    sns_gate,
)


def clear(ran: Ran, code: int, *texts: str) -> None:
    """The exit code is right, every text is there, and there is no traceback."""
    assert ran.code == code, ran.out + ran.err
    for text in texts:
        assert text in ran.err, ran.err
    assert "Traceback" not in ran.err


def test_no_repository(tmp_path: Path) -> None:
    ran = sns_gate(tmp_path, "check", *QUICK)
    clear(ran, 2, "is in no git repository", "'git init' and commit")


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    clear(sns_gate(tmp_path, "check", *QUICK), 2, "has no commit yet", "commit the state")


def test_a_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare")
    clear(sns_gate(tmp_path, "check", *QUICK), 2, "bare repository")


@pytest.mark.parametrize("ref", ["no-such-branch", "--upload-pack=x", "HEAD~99", "a b"])
def test_an_unknown_reference(repository: Path, ref: str) -> None:
    ran = sns_gate(repository, "check", *QUICK, f"--baseline={ref}")
    clear(ran, 2, f"'{ref}' names no commit", "git branch --all")


def test_a_shallow_clone_without_the_merge_base_names_the_fetch(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "checkout", "--quiet", "-b", "topic")
    commit(repository, {"pkg/__init__.py": WORK + "    more = 1\n"})
    git(repository, "checkout", "--quiet", "main")
    commit(repository, {"README": "on"})
    shallow = tmp_path / "shallow"
    url = repository.as_uri()
    git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=topic", url, str(shallow))
    git(shallow, "fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main")
    ran = sns_gate(shallow, "check", *QUICK)
    clear(ran, 2, "no common ancestor", "git fetch --unshallow origin")
    ran = sns_gate(shallow, "check", *QUICK, "--baseline", "HEAD~1")
    clear(ran, 2, "'HEAD~1' names no commit", "git fetch --unshallow")


def test_no_default_branch(repository: Path) -> None:
    git(repository, "branch", "--move", "odd-name")
    clear(sns_gate(repository, "check", *QUICK), 2, "no default branch is known", "--baseline REF")


def test_unrelated_histories(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "other")
    commit(repository, {"x": "y"})
    clear(sns_gate(repository, "check", *QUICK), 2, "histories are unrelated", "--baseline REF")


def test_no_benchmarks(repository: Path) -> None:
    clear(
        check(repository, "--baseline", "HEAD", "--benchmarks", "nowhere"),
        2,
        "there is no folder",
        "--benchmarks DIR",
    )
    (repository / "empty").mkdir()
    clear(
        check(repository, "--baseline", "HEAD", "--benchmarks", "empty"),
        5,
        "no file bench_*.py",
        "write a benchmark",
    )


def test_an_unknown_configuration_key(repository: Path) -> None:
    (repository / "sns-gate.toml").write_text("tolerence = 0.1\n")
    clear(
        check(repository, "--baseline", "HEAD"),
        2,
        "unknown setting 'tolerence'",
        "did you mean 'tolerance'",
    )
    ran = sns_gate(repository, "check", SNS_GATE_TOLERENCE="1")
    clear(ran, 2, "did you mean 'tolerance'")


@pytest.mark.parametrize(
    "word", ["--tolerance=0", "--tolerance=-1", "--processes=1", "--device=tpu"]
)
def test_an_option_that_does_not_fit(repository: Path, word: str) -> None:
    clear(
        sns_gate(repository, "check", "--baseline", "HEAD", word),
        2,
        "setting '" if word[-2:] != "=0" else "tolerance of 0",
    )


@pytest.mark.parametrize(
    ("build", "said"),
    [
        ("false", "false ended with 1; run it by hand in a fresh checkout of"),
        ("cd . && true", "commands run without a shell, so name a program, or write sh -c"),
    ],
)
def test_a_build_that_fails_says_what_to_do(repository: Path, build: str, said: str) -> None:
    clear(check(repository, "--baseline", "HEAD", "--build", build), 2, said)


def test_a_folder_to_import_from_that_is_nowhere(repository: Path) -> None:
    ran = check(repository, "--baseline", "HEAD", "--pythonpath", "nosuch")
    clear(ran, 2, "pythonpath entry 'nosuch' is a folder of neither revision")


def test_equal_tracebacks_are_shown_once_and_hold_no_frame_of_ours(repository: Path) -> None:
    bench = """
        from sns_gate import benchmark
        from pkg import work

        def boom(n):
            raise ValueError("the cause")

        @benchmark(params={"n": [1, 2, 3]})
        def fails(n):
            return lambda: boom(n)

        @benchmark
        def nothing():
            return work and 3
    """
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository, "--baseline", "HEAD")
    assert ran.out.count("in boom") == 1, ran.out
    assert "fails[n=1], fails[n=2], fails[n=3]:" in ran.out
    assert "workbench.py" not in ran.out
    assert ran.out.count("Traceback") <= 2


def test_sides_of_the_same_files_are_said_to_be_so(repository: Path) -> None:
    ran = check(repository, "--baseline", "HEAD")
    assert "both sides have the same files" in " ".join(ran.out.split())


def test_what_only_the_candidate_has_names_the_next_step(repository: Path) -> None:
    commit(repository, {"README": "x"})
    bench = repository / "benchmarks" / "bench_work.py"
    new = bench.read_text().replace("import work", "import fresh as work").replace("square", "new")
    bench.with_name("bench_new.py").write_text(new)
    bench.unlink()
    (repository / "pkg" / "__init__.py").write_text("def fresh(n):\n    return n\n")
    ran = check(repository, "--baseline", "HEAD", "--filter", "new")
    assert ran.code == 5
    assert "Next: commit the code under test as it is" in ran.out


def test_an_interpreter_that_is_none(repository: Path) -> None:
    ran = sns_gate(repository, "check", *QUICK, "--baseline", "HEAD", "--python", "/bin/ls")
    clear(ran, 3, "see that /bin/ls is a Python of 3.10 or newer")


def test_an_unknown_option_and_no_command(tmp_path: Path) -> None:
    assert sns_gate(tmp_path, "check", "--fast").code == 2
    assert sns_gate(tmp_path).code == 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [("chek", "check"), ("check --procceses 3", "--processes"),
     ("check --baselin=HEAD --tolerence=1%", "--tolerance"), ("bisect a b --cse x", "--case"),
     ("list --fliter x", "--filter"), ("--verison", "--version"), ("init --device cud", "cuda"),
     ("merge a --jsn x", "--json"), ("completion bsh", "bash")],
)  # fmt: skip
def test_a_mistyped_word_names_the_nearest(tmp_path: Path, words: str, meant: str) -> None:
    ran = sns_gate(tmp_path, *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert f"did you mean '{meant}'?" in ran.err
    assert "--help' lists what there is" in ran.err


def test_a_word_that_is_near_none_has_no_suggestion(tmp_path: Path) -> None:
    ran = sns_gate(tmp_path, "check", "--zzzzqq")
    assert ran.code == 2
    assert "unrecognized arguments: --zzzzqq ('sns-gate check --help'" in ran.err


def test_a_device_that_is_not_there_is_refused(repository: Path) -> None:
    ran = sns_gate(repository, "check", "--baseline=HEAD", "--device=cuda:7", "--processes=3")
    assert ran.code == 3
    assert ran.err.startswith(
        "sns-gate: refused: only 0 of 3 baseline workers could open the device"
    )
    assert "Traceback" not in ran.err


def test_a_result_file_that_cannot_be_written_is_said_before_measuring(repository: Path) -> None:
    clear(check(repository, "--json", "no/such/folder.json"), 2, "cannot be written", "--json FILE")


def test_a_disk_that_is_full_loses_no_verdict_and_leaves_no_half_result(
    repository: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(small)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this machine lets us mount no small disk")
    try:
        (small / "filler").write_text("x" * 4096)
        (small / "result.json").touch()
        ran = check(repository, "--baseline", "HEAD", "--json", str(small / "result.json"))
        clear(ran, 2, "No space left on device", "--json FILE")
        assert "square[n=2000]" in ran.out
        assert [p.name for p in small.iterdir()] == [
            "filler"
        ]  # and no earlier result stands for this check
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_working_tree_with_odd_names_is_listed_rightly(tmp_path: Path) -> None:
    from tests.conftest import BENCH

    repository = new_repository(
        tmp_path / "répo with space",
        {"pkg/__init__.py": WORK, "benchmarks/bench_work.py": BENCH, "old name": "1\n2\n3\n"},
    )
    git(repository, "mv", "old name", "new näme")
    (repository / "untracked file").touch()
    ran = check(repository, "--baseline", "HEAD")
    assert ran.verdicts == {"square[n=2000]": "unchanged"}
    assert ran.result is not None
    assert set(ran.result.candidate.changed_files) == {"new näme", "untracked file"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no schema version"),
        ("[]", "no schema version"),
        ("{}", "no schema version"),
        ('{"schema_version": 99}', "(schema 99)"),
        ("[" * 100_000, "no schema version"),
        ('{"schema_version": 1e400}', "schema"),
    ],
)
def test_a_result_file_that_is_none(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "r.json").write_text(text)
    ran = sns_gate(tmp_path, "report", "r.json")
    clear(ran, 2, "is no result of sns-gate", complaint)


def test_a_result_file_that_is_not_there(tmp_path: Path) -> None:
    clear(
        sns_gate(tmp_path, "report", "absent.json"),
        2,
        "absent.json cannot be read",
        "sns-gate check --json",
    )
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    clear(sns_gate(tmp_path, "report", "binary"), 2, "it is not text")


def test_control_characters_in_a_result_do_not_reach_the_terminal(repository: Path) -> None:
    check(repository, "--baseline", "HEAD")
    path = repository / "result.json"
    result = json.loads(path.read_text())
    result["cases"][0]["id"] = "evil\x1b[31m\u202e[link=x]"
    path.write_text(json.dumps(result))
    ran = sns_gate(repository, "report", "result.json")
    assert "Traceback" not in ran.err
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", ran.out)
    assert "[link=x]" in ran.out


def test_temporary_files_inside_the_repository_are_refused(repository: Path) -> None:
    (repository / "tmp").mkdir()
    ran = check(repository, "--baseline", "HEAD", TMPDIR=str(repository / "tmp"))
    clear(ran, 2, "lies inside the repository", "with TMPDIR")


def test_limits_that_allow_no_more_files_are_named(repository: Path) -> None:
    command = f"ulimit -n 24; exec {sys.executable} -m sns_gate check {' '.join(QUICK)}"
    done = subprocess.run(
        ["bash", "-c", f"{command} --baseline HEAD"], cwd=repository, env=clean_environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "allow no more; raise them" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_folder_for_temporary_files_is_named_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str, **_: object) -> None:
        raise shutil.Error([(source, target, "[Errno 28] No space left on device")] * 200)

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(RefusedRun, match=r"No space left on device.*with TMPDIR") as refused:
        private_package(tmp_path)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_check_passes_whichever_standard_stream_is_closed(repository: Path, closed: str) -> None:
    command = f"exec {sys.executable} -m sns_gate check {' '.join(QUICK)} --baseline HEAD"
    done = subprocess.run(
        ["bash", "-c", f"{command} {closed}"], cwd=repository, env=clean_environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((repository / "result.json").read_text())
    assert found["complete"]
