"""The action: its inputs are the command's, and a real runner executes it from event to comment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sns_gate.cli.step import INPUT_PREFIX, MARK, clean_environment
from sns_gate.config import setting_options
from sns_gate.github.runner import Runner as GateRunner
from sns_gate.types import Verdict
from tests.conftest import BENCH, WORK, commit, git, new_repository
from tests.fake_github import FakeGitHub
from tests.runner import built_wheels, run_event
from tests.test_report import CASES, result

ROOT = Path(__file__).resolve().parents[1]
ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
#: Inputs that are no settings of a check, and settings whose default a workflow has otherwise.
OF_THE_ACTION = {"mode", "baseline", "candidate", "json", "wheels", "token", "name", "author",
                 "comment", "check", "status"}  # fmt: skip
OTHERWISE = {"device": "cuda"}
WORKFLOW = """
    on: pull_request
    permissions: {}
    jobs:
      perf:
        runs-on: self-hosted
        steps:
          - uses: actions/checkout@v4
          - id: gate
            uses: ./.gate
            with:
              mode: all
              device: cpu
              processes: 3
              placements: 2
              tolerance: 90%
              wheels: WHEELS
              python: PYTHON
              state-dir: STATE
          - if: always()
            shell: bash
            env:
              VERDICT: ${{ steps.gate.outputs.verdict }}
              CODE: ${{ steps.gate.outputs.exit-code }}
            run: echo "outputs are '$VERDICT' and '$CODE'"
"""


def test_the_inputs_are_the_settings_of_a_check() -> None:
    inputs = ACTION["inputs"]
    settings = {option.name for option in setting_options()}
    assert set(inputs) == settings | OF_THE_ACTION
    for name in settings:
        assert inputs[name]["default"] == OTHERWISE.get(name, ""), "left out, the command's holds"
    for option in setting_options():
        assert option.help.split(" (default:")[0].split("; may be")[0] in inputs[option.name][
            "description"
        ].replace("'", '"').replace('"', "'")


def test_no_input_is_put_into_a_script_and_each_reaches_its_step() -> None:
    steps = {step["name"]: step for step in ACTION["runs"]["steps"]}
    assert all("${{" not in step["run"] for step in steps.values())
    assert not any("uses" in step for step in steps.values())
    passed = steps["Measure"]["env"]
    for option in setting_options():
        name = INPUT_PREFIX + option.name.upper().replace("-", "_")
        assert passed[name] == f"${{{{ inputs.{option.name} }}}}"
    assert all(steps[name]["run"].startswith("exec ") for name in ("Measure", "Post", "Clean up"))


@pytest.mark.parametrize(
    ("mode", "steps"),
    [("measure", ["Measure", "Clean up"]), ("post", ["Post"]),
     ("all", ["Measure", "Clean up", "Post"])],
)  # fmt: skip
def test_each_mode_has_its_steps_and_any_other_word_none(mode: str, steps: list[str]) -> None:
    def runs(step: dict[str, Any], word: str) -> bool:
        return f"inputs.mode == '{word}'" in step["if"]

    asked = [step for step in ACTION["runs"]["steps"] if "if" in step]
    assert [step["name"] for step in asked if runs(step, mode)] == steps
    install = ACTION["runs"]["steps"][0]["run"]
    for word, code in ((mode, 0), ("Post", 2)):
        script = install.partition("esac\n")[0] + "esac\n"
        done = subprocess.run(["bash", "-c", script], env={"GATE_MODE": word}, check=False)
        assert done.returncode == code


def test_the_token_reaches_the_step_that_posts_alone() -> None:
    steps = {step["name"]: step for step in ACTION["runs"]["steps"]}
    with_token = [name for name, step in steps.items() if "token" in str(step.get("env"))]
    assert with_token == ["Post"]
    job = {"GATE_TOKEN": "secret", "GITHUB_TOKEN": "secret", "AWS_SECRET": "secret", "PATH": "/bin"}
    assert "secret" not in clean_environment(job, with_token=False).values()
    proxies = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "http://us:pass@proxy:3128"}
    assert clean_environment(proxies, with_token=False).keys() == {"HTTPS_PROXY", MARK}
    assert clean_environment(proxies, with_token=True).keys() == {*proxies, MARK}
    posting = clean_environment(job, with_token=True)
    assert [k for k, v in posting.items() if v == "secret"] == ["GITHUB_TOKEN"]


# ------------------------------------------------------------------ a real runner


@pytest.fixture(scope="module")
def wheels() -> Path:
    return built_wheels()


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        yield fake
        assert not fake.violations


class Runner:
    """A repository with a workflow, and a runner on this host."""

    def __init__(self, folder: Path, wheels: Path, hub: FakeGitHub) -> None:
        self.hub, self.home = hub, folder / "home"
        self.home.mkdir()
        workflow = WORKFLOW.replace("WHEELS", str(wheels)).replace("PYTHON", sys.executable)
        self.repository = new_repository(
            folder / "repo",
            {"pkg/__init__.py": WORK, "benchmarks/bench_work.py": BENCH,
             ".gitignore": "result.json\n__pycache__/\n",
             ".gate/action.yml": (ROOT / "action.yml").read_text(encoding="utf-8"),
             ".github/workflows/perf.yml": workflow.replace("STATE", str(folder / "state"))},
        )  # fmt: skip

    def run(self, head: str) -> tuple[int, str]:
        """The exit code and the log of a pull request with this head."""
        source = {"sha": head, "repo": {"full_name": self.hub.name}}
        pull = {"number": 1, "head": source, "base": {"sha": "a" * 40}}
        event = {"action": "opened", "pull_request": pull}
        return run_event(self.repository, self.home, self.hub, "pull_request", event)


def comments(hub: FakeGitHub) -> list[Any]:
    return [c for c in hub.comments_on(1) if c.body.startswith("<!-- sns-gate ")]


def test_a_pull_request_becomes_a_comment_and_a_second_run_edits_it(
    tmp_path: Path, wheels: Path, hub: FakeGitHub
) -> None:
    runner = Runner(tmp_path, wheels, hub)
    slower = WORK.replace("range(n)", "range(6 * n)")
    head = commit(runner.repository, {"pkg/__init__.py": slower})
    hub.add_pull(1, head, git(runner.repository, "rev-parse", "HEAD^"), "ada")
    code, log = runner.run(head)
    assert code == 1, log
    assert "outputs are 'fail' and '1'" in log
    assert "1/1 square[n=2000]" in log, "a log has lines, and the case's whole name"
    (first,) = comments(hub)
    assert "1 of 1 case is slower than" in first.body
    (run,) = hub.check_runs.values()
    assert (run.head_sha, run.conclusion) == (head, "failure")
    assert run.annotations[0]["path"] == "benchmarks/bench_work.py"

    head = commit(runner.repository, {"pkg/__init__.py": slower + "\n    # the same\n"})
    hub.push(1, head)
    code, log = runner.run(head)
    assert code == 0, log
    assert "outputs are 'pass' and '0'" in log
    (second,) = comments(hub)
    assert second.id == first.id
    assert "No case is slower than" in second.body


def test_each_verdict_is_counted_in_an_output() -> None:
    kinds = {verdict.value.replace(" ", "-") for verdict in Verdict}
    assert kinds < set(ACTION["outputs"])
    assert kinds == set(GateRunner.counts(result()))
    assert GateRunner.counts(result(*CASES))["slower"] == "2"
    assert GateRunner.counts(result(*CASES))["wrong"] == "0"


def test_no_file_that_lies_about_runs_in_a_step(tmp_path: Path) -> None:
    """An artifact, or a checkout, may hold modules of any name."""
    for name in ("venv", "pip", "argparse", "json", "requests", "rich", "sns_gate", "os"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hostile code ran')\n")
    for name in ("post", "clean"):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "sns_gate.cli.step", name], cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "GATE_TOKEN": "t", "PYTHONPATH": str(ROOT),
                 "GATE_INPUT_STATE_DIR": str(tmp_path / "state")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "hostile code ran" not in done.stdout + done.stderr
    install = next(s["run"] for s in ACTION["runs"]["steps"] if s["name"] == "Install sns-gate")
    assert install.count("-I -m venv") == 1
    assert install.count("-I -m pip") == install.count("-m pip") == 2


@pytest.mark.parametrize("step", ACTION["runs"]["steps"], ids=lambda step: step["name"])
def test_the_scripts_of_the_action_are_what_shellcheck_wants(step: dict[str, Any]) -> None:
    done = subprocess.run(
        [str(Path(sys.prefix) / "bin/shellcheck"), "--shell=bash", "-"], input=step["run"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("check-jsonschema", "--builtin-schema", "vendor.github-actions"),
        ("zizmor", "--offline", "--persona", "auditor", "--quiet"),
    ],
    ids=lambda command: command[0],
)
def test_the_action_is_what_its_critics_want(command: tuple[str, ...]) -> None:
    program = Path(sys.prefix) / "bin" / command[0]
    done = subprocess.run(
        [str(program), *command[1:], str(ROOT / "action.yml")], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
