"""Ways in which a gate could pass what it did not measure: each is closed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import BENCH, QUICK, WORK, check, clean_environment, commit, git, sns_gate

SLOWER = WORK.replace("range(n)", "range(6 * n)")
FASTER = WORK.replace("range(n)", "range(n // 10)")
CASE = "square[n=2000]"


def test_a_check_in_a_hook_leaves_the_users_index_alone(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": FASTER, "new.py": "x = 1\n"})
    hook = repository / ".git/hooks/pre-commit"
    command = f"{sys.executable} -m sns_gate check {' '.join(QUICK)} --baseline HEAD~1"
    hook.write_text(f"#!/bin/sh\n{command} > hook.log 2>&1 || true\n")
    hook.chmod(0o755)
    package = repository / "pkg/__init__.py"
    package.write_text(package.read_text() + "\n")
    git(repository, "commit", "--quiet", "-a", "--message", "in the hook")
    assert (repository / "result.json").exists(), (repository / "hook.log").read_text()
    assert git(repository, "show", "--stat", "--format=", "HEAD").split()[0] == "pkg/__init__.py"
    assert "new.py" in git(repository, "ls-files")


def test_the_users_own_worktrees_are_never_forgotten(repository: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    git(repository, "worktree", "add", "--quiet", "--detach", str(away))
    shutil.move(away, tmp_path / "moved")
    check(repository, "--baseline", "HEAD")
    shutil.move(tmp_path / "moved", away)
    assert git(away, "rev-parse", "HEAD")


def test_the_users_tree_serves_neither_side_where_a_reference_is_judged(repository: Path) -> None:
    git(repository, "mv", "pkg", "helper_pkg")
    commit(repository, {"python/pkg/__init__.py": WORK, "helper.py": "x = 1\n"})
    bench = BENCH.replace("from pkg", "import helper\n    from pkg")
    commit(repository, {"python/pkg/__init__.py": SLOWER, "benchmarks/bench_work.py": bench})
    ran = check(repository, "--candidate", "HEAD", PYTHONPATH=str(repository / "python"))
    assert ran.verdicts.get(CASE) != "unchanged"
    assert ran.code != 0


def test_a_file_that_fails_on_the_baseline_is_broken_there_and_not_added(repository: Path) -> None:
    (repository / "pkg/_ext.py").write_text("value = 1\n")  # a built module that git ignores
    bench = "    from pkg import _ext\n" + BENCH
    ignored = "result.json\n_ext.py\n"
    commit(repository, {".gitignore": ignored, "benchmarks/bench_work.py": bench})
    commit(repository, {"README": "more"})
    ran = check(repository)
    assert ran.code == 3
    assert ran.verdicts == {CASE: "broken"}
    assert ran.case(CASE).broken_sides == ("baseline",)
    assert "set 'build'" in ran.case(CASE).reasons[0].text


def test_a_broken_file_is_not_hidden_by_another_of_its_name(repository: Path) -> None:
    commit(repository, {"benchmarks/a/bench_x.py": BENCH.replace("square", "fine"),
                        "benchmarks/b/bench_x.py": "import no_such_module\n"})  # fmt: skip
    ran = check(repository)
    assert ran.verdicts["b/bench_x.py"] == "broken"
    assert "name another one with --python FILE" in ran.case("b/bench_x.py").reasons[0].text
    assert ran.code != 0


def test_unlike_bodies_are_never_compared(repository: Path) -> None:
    bench = BENCH.replace("from pkg import work", "from pkg import work, new")
    bench = bench.replace("work(n)", "work(n // 50)")
    package = WORK + "    new = 1\n"
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": package})
    ran = check(repository)
    assert ran.code == 3
    assert ran.case(CASE).note == "different-benchmarks"


@pytest.mark.parametrize(
    "loosened",
    [
        {"sns-gate.toml": "tolerance = 0.9\npolicy-from = 'candidate'\n"},
        {"sns-gate.toml": "filter = ['other']\n"},
        {"sns-gate.toml": "placements = 1\non-inconclusive = 'success'\ntolerance = 0.9\n"},
        {"benchmarks/bench_work.py": BENCH.replace("[2000]}", "[2000]}, tolerance=0.9")},
    ],
)
def test_a_change_cannot_loosen_its_own_gate(repository: Path, loosened: dict[str, str]) -> None:
    strict = "tolerance = 0.3\npolicy-from = 'baseline'\nprocesses = 3\nplacements = 2\n"
    commit(repository, {"sns-gate.toml": strict})
    more = {"pkg/__init__.py": WORK.replace("range(n)", "range(2 * n)")}
    commit(repository, more | loosened)
    ran = sns_gate(repository, "check", "--device", "cpu", "--baseline", "HEAD~1")
    assert ran.code == 1, ran.out + ran.err
    assert ran.verdicts == {CASE: "slower"}


@pytest.mark.parametrize(
    ("bench", "code", "verdicts"),
    [
        (BENCH.replace("square", "renamed"), 1, {"renamed[n=2000]": "slower", CASE: "removed"}),
        ("", 3, {CASE: "removed"}),
    ],
    ids=["renamed", "deleted"],
)
def test_a_case_that_is_renamed_or_deleted_does_not_pass_by_it(
    repository: Path, bench: str, code: int, verdicts: dict[str, str]
) -> None:
    commit(repository, {"sns-gate.toml": "policy-from = 'baseline'\n"})
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": SLOWER})
    ran = check(repository)
    assert ran.code == code, ran.out + ran.err
    assert ran.verdicts == verdicts
    assert ran.result is not None
    assert ran.result.conclusion == "failure"


def test_moving_the_benchmarks_away_shows_them_as_removed(repository: Path) -> None:
    commit(repository, {"sns-gate.toml": "policy-from = 'baseline'\n"})
    git(repository, "rm", "--quiet", "-r", "benchmarks")
    moved = "policy-from = 'baseline'\nbenchmarks = 'perf'\n"
    other = BENCH.replace("square", "other")
    commit(repository, {"perf/bench_other.py": other, "sns-gate.toml": moved})
    ran = check(repository)
    assert ran.code != 0
    assert "No case is slower" not in ran.out


def test_an_earlier_pass_never_stands_for_a_check_that_did_not_happen(repository: Path) -> None:
    assert check(repository, "--baseline", "HEAD").result is not None
    failed = check(repository, "--baseline", "nosuch")
    assert failed.code == 2
    assert failed.result is None
    assert sns_gate(repository, "report", "result.json").code == 2


def test_a_file_that_is_no_code_does_not_make_trees_differ(repository: Path) -> None:
    (repository / ".gitignore").write_text("")
    git(repository, "commit", "--quiet", "-a", "--message", "ignore nothing")
    (repository / "notes.txt").touch()
    (repository / "result.json").write_text("{}")
    assert sns_gate(repository, "check", *QUICK).code == 5
    (repository / "pkg/extra.py").touch()
    assert sns_gate(repository, "check", *QUICK).verdicts == {CASE: "unchanged"}


def test_a_reference_is_judged_by_its_own_benchmarks(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": SLOWER})
    (repository / "benchmarks/bench_work.py").write_text("raise SystemExit\n")
    ran = check(repository, "--candidate", "HEAD", "--benchmarks", "benchmarks")
    assert ran.verdicts == {CASE: "slower"}


def test_a_coroutine_is_no_work(repository: Path) -> None:
    asynchronous = "async def call():\n            work(n)\n        return call"
    bench = BENCH.replace("return lambda: work(n)", asynchronous)
    commit(repository, {"benchmarks/bench_work.py": bench})
    commit(repository, {"pkg/__init__.py": SLOWER})
    ran = check(repository)
    assert ran.verdicts == {CASE: "broken"}
    assert "no work was done in it" in ran.case(CASE).reasons[0].text


def test_a_benchmark_of_something_new_is_added(repository: Path) -> None:
    bench = (
        BENCH
        + """
    @benchmark
    def fresh():
        import pkg
        return lambda: pkg.fresh()
    """
    )
    package = WORK + "    def fresh():\n        return work(9)\n"
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": package})
    ran = check(repository)
    assert ran.verdicts == {CASE: "unchanged", "fresh": "added"}
    assert ran.code == 0


@pytest.mark.parametrize(
    ("fatal", "timeout_s"), [("import os; os._exit(3)", 60), ("import time; time.sleep(600)", 4)]
)
def test_a_file_that_ends_its_worker_is_named_and_the_others_go_on(
    repository: Path, fatal: str, timeout_s: int
) -> None:
    commit(repository, {"benchmarks/bench_fatal.py": fatal + "\n", "pkg/__init__.py": FASTER})
    ran = check(repository, "--start-timeout", str(timeout_s))
    assert ran.verdicts == {CASE: "faster", "bench_fatal.py": "broken"}, ran.out + ran.err
    assert ran.code != 0


def test_a_side_that_is_far_slower_does_not_take_for_ever(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": "def work(n):\n    return True\n"})
    ran = check(repository)
    assert ran.verdicts == {CASE: "faster"}
    assert ran.case(CASE).seconds < 30


def test_an_edited_result_is_not_believed(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": SLOWER})
    assert check(repository).code == 1
    path = repository / "result.json"
    for change in ({"exit_code": 0}, {"exit_code": 256}, {"complete": False, "exit_code": 0}):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        assert sns_gate(repository, "report", "result.json").code == 2


def test_a_policy_that_calls_a_refusal_a_success_says_so(repository: Path) -> None:
    builtin = BENCH.replace("from pkg import work", "work = sum")
    commit(repository, {"benchmarks/bench_work.py": builtin.replace("work(n)", "work(range(n))")})
    ran = check(repository)
    assert ran.code == 3
    forgiven = check(repository, "--on-refused", "success")
    assert forgiven.code == 0
    assert "exit code 3 counts as success here" in forgiven.out


def test_a_name_that_is_no_utf8_keeps_no_result_from_being_written(repository: Path) -> None:
    (Path(os.fsdecode(bytes(repository) + b"/odd\xff.py"))).touch()
    ran = check(repository, "--baseline", "HEAD")
    assert ran.result is not None, ran.err
    assert ran.result.candidate.changed_files == ("odd\ufffd.py",)


def test_a_machine_without_git_says_so(repository: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sns_gate", "check"], cwd=repository, check=False, text=True,
        env=clean_environment(PATH=str(tmp_path)), capture_output=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no git on PATH" in done.stderr


def test_a_repository_of_another_owner_is_named_with_gits_own_mend(
    repository: Path, tmp_path: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a repository away")
    subprocess.run(["chown", "-R", "12345:12345", str(repository)], check=True)
    ran = check(repository, HOME=str(tmp_path))
    assert ran.code == 2
    assert "safe.directory" in ran.err
