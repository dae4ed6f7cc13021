"""Whole checks: real git, real worker processes, the CPU."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

from sns_gate.session.blocks import PAIRS
from sns_gate.stats.planning import MAX_PAIRS, MIN_PAIRS
from tests.conftest import BENCH, QUICK, WORK, check, commit, git, sns_gate

SLOWER = WORK.replace("range(n)", "range(6 * n)")
FASTER = WORK.replace("range(n)", "range(n // 10)")


def test_a_change_that_does_more_is_slower_and_confirmed(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": SLOWER})
    ran = check(repository)
    assert ran.code == 1
    case = ran.case("square[n=2000]")
    assert case.verdict.value == "slower"
    assert case.speedup.high < 0.5
    assert case.screening is not None
    assert case.screening.blocks != case.blocks
    assert case.tier.value == "B"
    assert "1 of 1 case is slower than HEAD~1" in ran.out


def test_a_change_that_does_less_is_faster(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": FASTER})
    ran = check(repository)
    assert (ran.code, ran.verdicts) == (0, {"square[n=2000]": "faster"})


def test_swapping_the_sides_inverts_the_speedup(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": SLOWER})
    forth = check(repository).case("square[n=2000]").speedup.estimate
    back = check(repository, "--baseline", "HEAD", "--candidate", "HEAD~1").case("square[n=2000]")
    assert 0.6 < forth * back.speedup.estimate < 1.6  # cores shared with other tests are coarse
    assert back.verdict.value == "faster"


def test_the_result_holds_every_sample_in_time_order(repository: Path) -> None:
    commit(repository, {"pkg/__init__.py": FASTER})
    ran = check(repository, "--seed", "7")
    result = json.loads((repository / "result.json").read_text())
    assert (result["schema_version"], result["verdict"], result["exit_code"]) == (1, "pass", 0)
    assert (result["complete"], result["seed"], result["tolerance"]) == (True, 7, 0.9)
    (case,) = result["cases"]
    assert case["covers"] == ["samples", "pairs", "placements", "processes"]
    assert {b["placement"] for b in case["blocks"]} >= {0, 1}
    for block in case["blocks"]:
        pairs = (len(block["sides"]) - block["settling"]) // 2
        assert len(block["sides"]) == len(block["ms"]) == 2 * pairs + block["settling"]
        # The first rotation's blocks are alike; later ones get what their noise is worth.
        first = block["placement"] < 2
        assert pairs == PAIRS if first else MIN_PAIRS <= pairs <= MAX_PAIRS
        assert block["cpu"]["steal_pct"] >= 0
    assert result["baseline"]["commit"] == git(repository, "rev-parse", "HEAD~1")
    assert result["baseline"]["loaded"] == result["candidate"]["loaded"] == ["pkg/__init__.py"]
    assert result["candidate"]["fingerprint"]["python_version"]
    assert ran.code == 0


def test_the_working_tree_is_judged_as_it_is_and_that_is_disclosed(repository: Path) -> None:
    (repository / "pkg/__init__.py").write_text(
        "import time\n\n\ndef work(n):\n    time.sleep(6 * n * 5e-7)\n"
    )
    ran = check(repository, "--baseline", "HEAD")
    assert ran.result is not None
    assert ran.result.candidate.dirty
    assert ran.result.candidate.changed_files == ("pkg/__init__.py",)
    assert "1 uncommitted change" in ran.out


def test_the_default_baseline_is_the_merge_base_with_the_remotes_default_branch(
    repository: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone with space"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    git(clone, "checkout", "--quiet", "-b", "topic")
    commit(clone, {"pkg/__init__.py": FASTER})
    commit(repository, {"README": "the default branch goes on"})
    git(clone, "fetch", "--quiet")
    ran = sns_gate(clone, "check", *QUICK)
    assert ran.result is not None, ran.err
    assert ran.result.baseline.ref == "merge base with origin/main"
    assert ran.verdicts == {"square[n=2000]": "faster"}


def test_identical_trees_are_not_a_pass_unless_asked_for(repository: Path) -> None:
    ran = sns_gate(repository, "check", *QUICK)
    assert ran.code == 5
    assert "nothing to compare; name another baseline" in ran.err
    asked = sns_gate(repository, "check", *QUICK, "--baseline", "HEAD")
    assert asked.verdicts == {"square[n=2000]": "unchanged"}


def test_benchmarks_may_lie_outside_the_repository(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    text = (repository / "benchmarks/bench_work.py").read_text()
    (outside / "bench_mine.py").write_text(text.replace("def square", "def mine"))
    git(repository, "rm", "--quiet", "-r", "benchmarks")
    commit(repository, {"pkg/__init__.py": FASTER})
    ran = check(repository, "--benchmarks", "../elsewhere")
    assert ran.verdicts == {"mine[n=2000]": "faster"}


def test_a_source_layout_is_found_and_each_side_runs_its_own(tmp_path: Path) -> None:
    from tests.conftest import new_repository

    repository = new_repository(
        tmp_path / "r", {"src/pkg/__init__.py": WORK, "benchmarks/bench_work.py": BENCH}
    )
    commit(repository, {"src/pkg/__init__.py": SLOWER})
    ran = check(repository)
    assert ran.verdicts == {"square[n=2000]": "slower"}
    assert ran.result is not None
    assert ran.result.baseline.loaded == ("src/pkg/__init__.py",)


def test_a_benchmark_that_never_loads_the_code_under_test_is_refused(repository: Path) -> None:
    bench = BENCH.replace("from pkg import work", "def work(n):\n        return sum(range(n))")
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository)
    assert ran.code == 3
    assert ran.verdicts == {"square[n=2000]": "refused"}
    assert [r.code for r in ran.case("square[n=2000]").reasons][-1] == "code-not-proven"


def test_a_baseline_that_imports_the_candidates_code_is_an_error_with_both_paths(
    repository: Path,
) -> None:
    bench = f"import sys\nsys.path.insert(0, {str(repository)!r})\n" + BENCH.replace("\n    ", "\n")
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": FASTER})
    ran = check(repository)
    assert ran.code == 2
    assert f"baseline worker 0 loaded {repository}/pkg/__init__.py" in ran.err
    assert re.search(r"instead of its own under \S+/baseline", ran.err)


def test_a_case_that_raises_on_one_side_is_broken_and_the_others_go_on(repository: Path) -> None:
    bench = (
        BENCH
        + """
    @benchmark
    def fragile():
        import pkg
        return lambda: pkg.fragile()
    """
    )
    commit(
        repository,
        {"benchmarks/bench_work.py": bench, "pkg/__init__.py": WORK + "    fragile = lambda: 1\n"},
    )
    commit(
        repository,
        {"pkg/__init__.py": FASTER + "    def fragile():\n        raise ValueError('boom')\n"},
    )
    ran = check(repository)
    assert ran.code == 1
    assert ran.verdicts == {"square[n=2000]": "faster", "fragile": "broken"}
    (reason,) = ran.case("fragile").reasons
    assert ran.case("fragile").broken_sides == ("candidate",)
    assert "ValueError: boom" in reason.text
    assert "in fragile" in reason.detail
    assert "raise ValueError('boom')" in ran.out


def test_a_case_that_raises_on_both_sides_is_no_fault_of_the_candidate(repository: Path) -> None:
    commit(
        repository,
        {"benchmarks/bench_work.py": BENCH.replace("return lambda: work(n)", "return 3")},
    )
    ran = check(repository)
    assert ran.code == 3
    case = ran.case("square[n=2000]")
    assert case.broken_sides == ("baseline", "candidate")
    assert "returned int, so there is nothing to time" in case.reasons[0].text


def test_added_removed_and_moved_cases_are_named(repository: Path) -> None:
    more = (
        BENCH.replace("def square", "def cube")
        + """
    @benchmark
    def new():
        import pkg
        return pkg.new
    """
    )
    commit(
        repository,
        {"benchmarks/bench_work.py": more, "pkg/__init__.py": WORK + "    new = lambda: 1\n"},
    )
    ran = check(repository)
    assert ran.code == 3
    assert ran.verdicts["square[n=2000]"] == "removed"
    assert ran.verdicts["cube[n=2000]"] == "unchanged"  # a new benchmark of old code compares
    assert ran.verdicts["new"] == "added"
    assert "has no attribute 'new'" in ran.case("new").reasons[0].text


def test_a_benchmark_of_code_that_the_baseline_lacks_is_added(repository: Path) -> None:
    extra = BENCH.replace("pkg import", "pkg.extra import").replace("square", "extra")
    commit(repository, {"benchmarks/bench_extra.py": extra, "pkg/extra.py": WORK})
    ran = check(repository)
    assert ran.verdicts == {"square[n=2000]": "unchanged", "extra[n=2000]": "added"}
    assert ran.code == 0


def test_a_benchmark_file_that_no_longer_loads_on_the_baseline_falls_back_to_its_own(
    repository: Path,
) -> None:
    moved = BENCH.replace("from pkg import work", "from pkg.fast import work")
    commit(
        repository,
        {"benchmarks/bench_work.py": moved, "pkg/fast.py": FASTER, "pkg/__init__.py": ""},
    )
    ran = check(repository)
    assert ran.verdicts == {"square[n=2000]": "faster"}


def test_a_benchmark_file_that_does_not_load_is_broken_and_the_others_go_on(
    repository: Path,
) -> None:
    commit(repository, {"benchmarks/bench_bad.py": "raise SystemExit(3)\n"})
    ran = check(repository)
    assert ran.verdicts == {"square[n=2000]": "unchanged", "bench_bad.py": "broken"}
    assert "bench_bad.py does not load" in ran.out


def test_two_cases_with_one_id_are_refused_with_both_places(repository: Path) -> None:
    commit(repository, {"benchmarks/bench_work.py": BENCH + BENCH})
    ran = check(repository)
    assert ran.code == 2
    assert re.search(r"bench_work.py:\d+ and .*bench_work.py:\d+", ran.err)


def test_a_filter_chooses_cases_by_pattern_or_part(repository: Path) -> None:
    bench = BENCH.replace("[2000]", "[200, 2000]")
    commit(repository, {"benchmarks/bench_work.py": bench})
    assert list(check(repository, "--filter", "n=200]").verdicts) == ["square[n=200]"]
    nothing = check(repository, "--filter", "absent")
    assert nothing.code == 5
    assert "no case matches absent" in nothing.err
    assert "the cases are: square[n=200], square[n=2000]" in nothing.err


def test_the_baselines_policy_governs_where_asked(repository: Path) -> None:
    bench = BENCH.replace('{"n": [2000]}', '{"n": [2000]}, tolerance=0.9')
    commit(repository, {"benchmarks/bench_work.py": bench, "pkg/__init__.py": SLOWER,
                        "sns-gate.toml": "tolerance = 0.8\n"})  # fmt: skip
    quick = [word for word in QUICK if word not in ("--tolerance", "90%")]
    loose = sns_gate(repository, "check", *quick, "--baseline", "HEAD~1")
    assert loose.case("square[n=2000]").tolerance == 0.9
    strict = sns_gate(
        repository, "check", *quick, "--baseline", "HEAD~1", "--policy-from", "baseline"
    )
    case = strict.case("square[n=2000]")
    assert (case.tolerance, case.verdict.value) == (0.02, "slower")
    assert "the candidate asks for a tolerance of 90%, the baseline's 2% governs" in strict.out
    assert "the candidate sets tolerance to 0.8, the baseline's 0.02 governs" in strict.out


def test_builds_run_in_both_revisions_and_what_they_install_comes_first(repository: Path) -> None:
    (repository / "sns-gate.toml").write_text(
        'build = ["{python} make.py {prefix}"]\npythonpath = ["nothing"]\n'
    )
    make = "import shutil, sys\nshutil.copytree('pkg', sys.argv[1] + '/pkg')\n"
    commit(repository, {"make.py": make})
    commit(repository, {"pkg/__init__.py": SLOWER})
    ran = check(repository)
    assert ran.verdicts == {"square[n=2000]": "slower"}
    assert ran.result is not None
    assert all(
        "-prefix/pkg/__init__.py" in s.loaded[0]
        for s in (ran.result.baseline, ran.result.candidate)
    )


def test_a_build_that_fails_ends_with_its_output(repository: Path) -> None:
    ran = check(repository, "--baseline", "HEAD", "--build", "{python} -c 'print(1/0)'")
    assert ran.code == 2
    assert "build of the baseline failed" in ran.err
    assert "ZeroDivisionError" in ran.err
    unknown = check(repository, "--baseline", "HEAD", "--build", "make {target}")
    assert unknown.code == 2
    assert "names {target}; known are {worktree}" in unknown.err


def test_a_worker_that_hangs_is_killed_at_its_time_limit(repository: Path) -> None:
    bench = (
        BENCH
        + """
    @benchmark
    def stuck():
        import time
        return lambda: time.sleep(600)
    """
    )
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository, "--timeout", "3")
    assert ran.verdicts == {"square[n=2000]": "unchanged", "stuck": "broken"}
    assert ran.case("stuck").reasons[0].code == "worker-hung"
    assert "within 3 s" in ran.case("stuck").reasons[0].text


def test_the_time_limit_of_a_case_is_not_that_of_importing_its_file(repository: Path) -> None:
    bench = "import time\n\ntime.sleep(4)\n" + textwrap.dedent(BENCH)
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository, "--timeout", "3")
    assert ran.unchanged("square[n=2000]"), ran.out + ran.err


def test_benchmarks_that_print_exit_and_leave_threads_do_no_harm(repository: Path) -> None:
    bench = (
        BENCH
        + """
    import os, sys, threading, time

    @benchmark
    def noisy():
        os.chdir("/")
        threading.Thread(target=time.sleep, args=(600,)).start()
        def call():
            print("x" * 10000)
            os.write(1, b"y")
            sys.stderr.write("z")
            return work(2000)
        return call

    @benchmark
    def quits():
        return lambda: os._exit(7)

    @benchmark
    def leaves():
        return lambda: sys.exit(0)
    """
    )
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository)
    assert ran.verdicts == {
        "square[n=2000]": "unchanged", "noisy": "unchanged", "quits": "broken", "leaves": "broken",
    }  # fmt: skip
    assert "exited with 7" in ran.case("quits").reasons[0].text


def test_the_workers_environment_is_an_allowlist(repository: Path) -> None:
    bench = (
        BENCH
        + """
    import os

    @benchmark
    def hidden():
        assert "GITHUB_TOKEN" not in os.environ
        assert os.environ["LET_THROUGH"] == "yes"
        return lambda: work(2000)
    """
    )
    commit(repository, {"benchmarks/bench_work.py": bench})
    ran = check(repository, "--pass-env", "LET_THROUGH", GITHUB_TOKEN="t", LET_THROUGH="yes")  # noqa: S106
    assert ran.verdicts["hidden"] == "unchanged"
