"""``sns-gate init``: what it writes, what its critics say of it, and a first check by a runner."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sns_gate.scaffold import Runner
from sns_gate.scaffold import workflows as pins
from sns_gate.scaffold.workflows import ACTION, workflows
from tests.conftest import commit, git, new_repository, sns_gate
from tests.fake_github import FakeGitHub
from tests.runner import action_copied, built_wheels, run_event

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "github"
ONE = (Runner("gpu", ("self-hosted", "gpu")),)
TWO = (Runner("h100", ("self-hosted", "h100")), Runner("a100", ("self-hosted", "a100")))
VARIANTS: dict[str, Mapping[str, str]] = {
    "private": workflows("private", ONE, "", "main"),
    "public": workflows("public", ONE, "", "main"),
    "matrix": workflows("private", TWO, "", "main"),
    "public-matrix": workflows("public", TWO, "", "main"),
}
EVERY = [(variant, name) for variant, made in VARIANTS.items() for name in made]


def parsed(variant: str, name: str) -> Any:  # noqa: ANN401 (YAML)
    return YAML(typ="safe").load(VARIANTS[variant][name])


def fresh(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


# ------------------------------------------------------------------ what is written


def test_an_empty_repository_gets_all_it_needs_to_begin_with(tmp_path: Path) -> None:
    repository = fresh(tmp_path / "new")
    ran = sns_gate(repository, "init")
    assert ran.code == 0, ran.err
    files = {str(f.relative_to(repository)) for f in repository.rglob("*") if f.is_file()}
    assert {f for f in files if not f.startswith(".git/")} == {
        "sns-gate.toml", ".gitignore", "kernels.py", "benchmarks/bench_first.py",
        ".github/workflows/sns-gate.yml",
    }  # fmt: skip
    assert ran.out.count("wrote") == 5
    assert "self-hosted, gpu" in ran.out


def test_nothing_that_is_there_is_written_over(tmp_path: Path) -> None:
    repository = fresh(tmp_path / "new")
    (repository / "sns-gate.toml").write_text("tolerance = 0.5\n")
    assert sns_gate(repository, "init", "--device", "cpu").code == 0
    before = {f: f.read_text() for f in repository.rglob("*.toml")}
    before |= {f: f.read_text() for f in repository.rglob("*.py")}
    again = sns_gate(repository, "init", "--device", "cpu", "--public")
    assert "wrote  .github/workflows/sns-gate-post.yml" in again.out
    assert len(before) == 3
    assert all(path.read_text() == text for path, text in before.items())
    assert (repository / "sns-gate.toml").read_text() == "tolerance = 0.5\n"
    assert "kept   sns-gate.toml" in again.out


def test_what_stays_and_is_not_what_was_asked_for_is_said_with_the_difference(
    tmp_path: Path,
) -> None:
    repository = fresh(tmp_path / "new")
    (repository / ".gitignore").write_text("result.json*\n")
    first = sns_gate(repository, "init")
    assert "+bisect.json*" in first.out
    assert "+result.json*" not in first.out
    assert "to have that, add these lines" in first.out
    assert "remove it" not in first.out, "nothing would bring the user's own lines back"
    same = sns_gate(repository, "init")
    assert "runs-on" not in same.out
    other = sns_gate(repository, "init", "--runner", "fast")
    assert "differs from what is asked" in other.out
    assert "-    runs-on: [self-hosted, gpu]" in other.out
    assert "+    runs-on: [fast]" in other.out
    assert "remove it and run this command again" in other.out
    (repository / ".github/workflows/sns-gate.yml").unlink()
    assert "runs-on" not in sns_gate(repository, "init", "--runner", "fast").out
    assert "runs-on: [fast]" in (repository / ".github/workflows/sns-gate.yml").read_text()


def test_a_workflow_of_other_options_that_still_runs_is_named(tmp_path: Path) -> None:
    repository = fresh(tmp_path / "new")
    sns_gate(repository, "init", "--public")
    private = sns_gate(repository, "init")
    said = "kept   .github/workflows/sns-gate-post.yml: a workflow that these options do without"
    assert said in private.out
    assert said not in sns_gate(repository, "init", "--no-workflow").out


@pytest.mark.parametrize(
    ("file", "package"),
    [("src/fused/__init__.py", "fused"), ("fused/__init__.py", "fused"), ("fused.py", "fused")],
)
def test_a_first_benchmark_loads_the_code_that_there_is(
    tmp_path: Path, file: str, package: str
) -> None:
    repository = new_repository(
        tmp_path / "new", {file: "", "tests/__init__.py": "", "setup.py": ""}
    )
    ran = sns_gate(repository, "init", "--device", "cpu", "--no-workflow")
    bench = (repository / "benchmarks" / "bench_first.py").read_text()
    assert f"import {package}  # noqa" in bench
    assert not (repository / "kernels.py").exists()
    assert not (repository / ".github").exists()
    assert "push" not in ran.out


def test_settings_that_the_project_file_has_stay_there(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "new", {"pyproject.toml": "[tool.sns-gate]\n"})
    ran = sns_gate(repository, "init")
    assert "kept   pyproject.toml" in ran.out
    assert not (repository / "sns-gate.toml").exists()


def test_the_default_branch_is_not_the_one_that_is_worked_on(tmp_path: Path) -> None:
    repository = fresh(tmp_path / "new")
    commit(repository, {"a.py": ""})
    git(repository, "switch", "--quiet", "--create", "feat/x")
    assert "pull requests into main" in sns_gate(repository, "init").out


def test_a_workflow_reads_labels_and_branches_as_they_are_spelled() -> None:
    runners = (Runner("1.0", ("self-hosted", "1.0")), Runner("no", ("on", "1e3")))
    text = workflows("private", runners, "", "c++!")["sns-gate.yml"]
    found = YAML(typ="safe").load(text)
    rows = found["jobs"]["measure"]["strategy"]["matrix"]["include"]
    assert rows == [{"gpu": "1.0", "runner": ["self-hosted", "1.0"]},
                    {"gpu": "no", "runner": ["on", "1e3"]}]  # fmt: skip
    assert found["jobs"]["post"]["strategy"]["matrix"]["gpu"] == ["1.0", "no"]
    assert found[True if True in found else "on"]["push"]["branches"] == ["c\\+\\+\\!"]


def test_the_default_branch_is_the_one_that_is_pushed_to(tmp_path: Path) -> None:
    repository = fresh(tmp_path / "new")
    git(repository, "symbolic-ref", "HEAD", "refs/heads/trunk")
    sns_gate(repository, "init")
    assert "branches: [trunk]" in (repository / ".github/workflows/sns-gate.yml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--runner", "a b"), "names no runner"),
        (("--runner", "x=${{ evil }}"), "names no runner"),
        (("--runner", "self-hosted", "--runner", "other"), "several runners need a name each"),
    ],
)
def test_what_init_cannot_make_it_says(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    repository = fresh(tmp_path / "new")
    ran = sns_gate(repository, "init", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert not (repository / ".github").exists()


def test_without_a_repository_it_says_what_to_do(tmp_path: Path) -> None:
    ran = sns_gate(tmp_path, "init")
    assert (ran.code, "run 'git init' first" in ran.err) == (2, True)


# ------------------------------------------------------------------ what workflows may do


def test_the_examples_are_what_init_writes() -> None:
    for variant, made in VARIANTS.items():
        for name, text in made.items():
            path = EXAMPLES / variant / name
            if "UPDATE_GOLDEN" in os.environ:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            assert path.read_text() == text
    there = {str(f.relative_to(EXAMPLES)) for f in EXAMPLES.rglob("*.yml")}
    assert there == {f"{variant}/{name}" for variant, name in EVERY}


@pytest.mark.parametrize(("variant", "name"), EVERY)
def test_each_job_may_do_the_least_that_it_needs(variant: str, name: str) -> None:
    workflow = parsed(variant, name)
    assert workflow["permissions"] == {}
    for job_name, job in workflow["jobs"].items():
        may = job["permissions"]
        uses = [step["uses"].partition("@") for step in job["steps"]]
        assert all(re.fullmatch(r"[0-9a-f]{40}", sha.split()[0]) for _, _, sha in uses)
        slugs = [slug for slug, _, _ in uses]
        if job_name == "measure":
            assert may == {"contents": "read"}
            assert "ubuntu" not in str(job["runs-on"])
            assert job["steps"][0]["with"]["persist-credentials"] is False
        else:
            assert "actions/checkout" not in slugs, "nobody's code is where the token is"
            assert job["runs-on"] == "ubuntu-latest"
            assert {p for p, level in may.items() if level == "write"} == {
                "pull-requests", "checks",
            }  # fmt: skip


@pytest.mark.parametrize("variant", ["public", "public-matrix"])
def test_in_a_public_repository_no_workflow_measures_and_posts(variant: str) -> None:
    assert list(parsed(variant, "sns-gate.yml")["jobs"]) == ["measure"]
    posting = parsed(variant, "sns-gate-post.yml")
    assert list(posting["jobs"]) == ["post"]
    assert posting[True if True in posting else "on"]["workflow_run"]["workflows"] == ["sns-gate"]


def test_a_matrix_keeps_results_and_comments_apart() -> None:
    jobs = parsed("matrix", "sns-gate.yml")["jobs"]
    measured = [entry["gpu"] for entry in jobs["measure"]["strategy"]["matrix"]["include"]]
    assert measured == jobs["post"]["strategy"]["matrix"]["gpu"] == ["h100", "a100"]
    assert jobs["post"]["steps"][-1]["with"]["name"] == "sns-gate-${{ matrix.gpu }}"


def test_the_pinned_commit_holds_the_action() -> None:
    shallow = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    if shallow != "false":
        pytest.skip("the history that the pin is of is not here")
    found = git(ROOT, "show", f"{ACTION.sha}:action.yml")
    assert "mode:" in found


CRITICS = [
    ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    ("zizmor", "--offline", "--persona", "auditor", "--quiet"),
    ("actionlint", "-shellcheck", str(Path(sys.prefix) / "bin" / "shellcheck"),
     "-config-file", str(ROOT / "tests" / "actionlint.yaml")),
]  # fmt: skip


@pytest.mark.parametrize("command", CRITICS, ids=lambda command: command[0])
def test_the_examples_are_what_their_critics_want(command: tuple[str, ...]) -> None:
    program = Path(sys.prefix) / "bin" / command[0]
    files = sorted(str(EXAMPLES / variant / name) for variant, name in EVERY)
    done = subprocess.run(
        [str(program), *command[1:], *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (CRITICS[0], ("runs-on", "runs-onn")),
        (CRITICS[1], ("persist-credentials: false", "persist-credentials: true")),
        (CRITICS[2], ("needs.measure.result", "needs.nosuch.result")),
    ],
    ids=lambda part: part[0],
)
def test_a_critic_finds_what_is_wrong(
    tmp_path: Path, command: tuple[str, ...], fault: tuple[str, str]
) -> None:
    path = tmp_path / "sns-gate.yml"
    path.write_text(VARIANTS["private"]["sns-gate.yml"].replace(*fault))
    program = Path(sys.prefix) / "bin" / command[0]
    done = subprocess.run([str(program), *command[1:], str(path)], capture_output=True, check=False)
    assert done.returncode != 0


# ------------------------------------------------------------------ a first check

UPLOAD = """
    name: upload
    description: keeps a file
    inputs: {name: {required: true}, path: {required: true}}
    runs:
      using: composite
      steps:
        - shell: bash
          run: cp "${{ inputs.path }}" "$ARTIFACTS/${{ inputs.name }}"
"""
DOWNLOAD = """
    name: download
    description: brings it back
    inputs: {name: {required: true}, path: {required: true}}
    runs:
      using: composite
      steps:
        - shell: bash
          run: |
            mkdir -p "${{ inputs.path }}"
            mv "$ARTIFACTS/${{ inputs.name }}" "${{ inputs.path }}/result.json"
"""


def test_from_nothing_to_a_first_comment_on_a_forks_pull_request(tmp_path: Path) -> None:
    """Six commands: git init, sns-gate init, commit, a change, commit, push (here, ``act``).

    What measures has a token that may only read, as GitHub gives it to forks.
    """
    repository, home = fresh(tmp_path / "new"), tmp_path / "home"
    assert sns_gate(repository, "init", "--public", "--device", "cpu").code == 0
    # It sleeps, so that other work on this machine does not make the gate refuse, as it should.
    work = "import time\n\n\ndef work(x):\n    time.sleep(2e-6 * len(x))\n"
    commit(repository, {"kernels.py": work, ".gitignore": "result.json\n__pycache__/\n"}, "Begin")
    head = commit(repository, {"kernels.py": work.replace("2e-6", "12e-6")}, "Do more")
    stubs = {"upload": UPLOAD, "download": DOWNLOAD}
    for name, text in stubs.items():
        (home / name).mkdir(parents=True)
        (home / name / "action.yml").write_text(textwrap.dedent(text))
    (home / "artifacts").mkdir()
    local = {ACTION: action_copied(home / "sns-gate"), pins.UPLOAD: home / "upload",
             pins.DOWNLOAD: home / "download"}  # fmt: skip
    options = [
        *(f"--local-repository={pin.slug}@{pin.sha}={folder}" for pin, folder in local.items()),
        "--platform=gpu=-self-hosted", "--platform=ubuntu-latest=-self-hosted",
        f"--env=ARTIFACTS={home / 'artifacts'}", "--env=PIP_NO_INDEX=1",
        f"--env=PIP_FIND_LINKS={built_wheels()}", f"--env=SNS_GATE_STATE_DIR={home / 'state'}",
        "--env=SNS_GATE_PROCESSES=3", "--env=SNS_GATE_PLACEMENTS=2",
        "--env=SNS_GATE_FILTER=n=1000]",
    ]  # fmt: skip
    fork = {"full_name": "eve/kernels"}
    pull = {"number": 1, "head": {"sha": head, "repo": fork}, "base": {"sha": "a" * 40}}
    run = {"id": 7, "conclusion": "success", "head_sha": head, "head_repository": fork,
           "event": "pull_request"}  # fmt: skip
    with FakeGitHub() as hub:
        hub.add_pull(1, head, git(repository, "rev-parse", "HEAD^"), "eve", head_repo="eve/kernels")
        event: dict[str, object] = {"action": "opened", "pull_request": pull}
        reading = [*options, f"--secret=GITHUB_TOKEN={hub.fork_token}"]
        code, measured = run_event(repository, home, hub, "pull_request", event, reading)
        assert code == 0, "the job that measures leaves the verdict to the other\n" + measured
        assert not hub.requests, "it asks GitHub for nothing"
        code, posted = run_event(
            repository, home, hub, "workflow_run", {"workflow_run": run}, options
        )
        assert code == 1, posted
        assert not hub.violations
        (comment,) = hub.comments_on(1)
        assert "1 of 1 case is slower than" in comment.body, comment.body
        (check,) = hub.check_runs.values()
        assert (check.head_sha, check.conclusion) == (head, "failure")
    assert hub.token not in measured + posted
