"""One step of the action: it starts itself again in a clean environment, then runs a command.

``/proc`` shows the environment that a process was started with for as long as it lives, so what the
gate must not have is left out before it starts, not removed after.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sns_gate.cli import endings
from sns_gate.config import ENVIRONMENT_PREFIX, setting_options
from sns_gate.errors import RevisionError, UsageError
from sns_gate.github.checkout import Checkout
from sns_gate.github.event import read_event
from sns_gate.github.runner import Runner
from sns_gate.report import json as result_file
from sns_gate.report.writing import sweep_beside
from sns_gate.revisions import Repository, is_left_behind, sweep
from sns_gate.workers import end_left_behind

INPUT_PREFIX = "GATE_INPUT_"
_TOKEN = "GATE_TOKEN"  # noqa: S105 (a variable's name)
MARK = "GATE_CLEAN_START"
#: What a step keeps of the job's environment; a token is kept by the step that posts alone.
_KEPT = (
    "PATH", "HOME", "USER", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER", "CUDA_HOME", "CC", "CXX", "VIRTUAL_ENV", "RUNNER_TEMP",
    "RUNNER_TRACKING_ID", "GITHUB_ACTIONS", "GITHUB_API_URL", "GITHUB_EVENT_NAME",
    "GITHUB_EVENT_PATH", "GITHUB_OUTPUT", "GITHUB_REPOSITORY", "GITHUB_RUN_ATTEMPT",
    "GITHUB_RUN_ID", "GITHUB_SERVER_URL", "GITHUB_SHA", "GITHUB_STEP_SUMMARY",
    "GITHUB_WORKSPACE", MARK, "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
)  # fmt: skip
#: Kept by either of their spellings, and beside the code under test only if nobody is named in it.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def main(arguments: Sequence[str]) -> int:
    """Run one step: ``measure``, ``clean`` or ``post``."""
    (name,) = arguments
    if MARK not in os.environ:
        clean = clean_environment(os.environ, with_token=name == "post")
        os.execve(sys.executable, [sys.executable, "-P", "-m", __spec__.name, name], clean)  # noqa: S606 (itself)
    steps = {"measure": measure, "clean": clean_up, "post": tell}
    return endings.guarded(lambda: steps[name](os.environ))


def clean_environment(environment: Mapping[str, str], *, with_token: bool) -> dict[str, str]:
    """The variables that a step keeps.

    Args:
        environment: of the job.
        with_token: for the step that posts.
    """
    passed = environment.get(f"{INPUT_PREFIX}PASS_ENV", "").split()
    kept = {
        name: value
        for name, value in environment.items()
        if name in _KEPT
        or name in passed
        or name.startswith((INPUT_PREFIX, ENVIRONMENT_PREFIX))
        or (name.upper() in _PROXIES and (with_token or "@" not in value))
    }
    if with_token and environment.get(_TOKEN):
        kept["GITHUB_TOKEN"] = environment[_TOKEN]
    return kept | {MARK: "1"}


def given(environment: Mapping[str, str], name: str) -> str:
    """An input of the action, empty where it was left out."""
    return environment.get(INPUT_PREFIX + name.upper().replace("-", "_"), "").strip()


def measure(environment: Mapping[str, str]) -> int:
    """Fetch, drop the checkout's credentials, check; fails only where no result is left."""
    result = Path(given(environment, "json") or "result.json").absolute()
    result.unlink(missing_ok=True)
    _output(environment, {"result": str(result)})  # at once: this step may be killed
    code = endings.guarded(lambda: _checked(environment, result))
    if not result.exists():
        return code or 1
    found = result_file.read(result)
    _output(environment, {
        "verdict": found.verdict.value, "exit-code": str(code), **Runner.counts(found),
    })  # fmt: skip
    # What was interrupted was interrupted; what was measured is judged where it is posted.
    return code if code in (130, 143) else 0


def _checked(environment: Mapping[str, str], result: Path) -> int:
    event = read_event(environment)
    checkout = Checkout(Path.cwd())
    baseline = given(environment, "baseline")
    if baseline:
        baseline = checkout.named(baseline)
    else:
        checkout.fetch(event)
    checkout.credentials.drop()
    checkout.credentials.require_none()
    return endings.run_command([
        "check", "--json", str(result), "--baseline", baseline or checkout.baseline(event),
        *_candidate(environment), *_settings(environment),
    ])  # fmt: skip


def _candidate(environment: Mapping[str, str]) -> list[str]:
    candidate = given(environment, "candidate")
    return ["--candidate", candidate] if candidate else []


def _settings(environment: Mapping[str, str]) -> list[str]:
    """Options from inputs of the same name; a list has one entry a line.

    Workers run in the job's own interpreter, and what passes is said by the baseline, unless the
    workflow says otherwise.
    """
    job_python = shutil.which("python", path=environment.get("PATH")) or sys.executable
    defaults = {"python": job_python, "policy-from": "baseline"}
    options = []
    for option in setting_options():
        value = given(environment, option.name) or defaults.get(option.name, "")
        lines = value.splitlines() if option.repeats else [value]
        options += [f"--{option.name}={line.strip()}" for line in lines if line.strip()]
    return options


def clean_up(environment: Mapping[str, str]) -> int:
    """Take away what a killed check left: processes, worktrees, files, pinned clocks."""
    for name in end_left_behind(is_left_behind):
        sys.stdout.write(f"ended {name}, which a killed check had left\n")
    sweep()
    sweep_beside(Path.cwd())
    with contextlib.suppress(RevisionError):
        Repository(Path.cwd()).forget_worktrees(is_left_behind)
    folder = given(environment, "state-dir")
    return endings.run_command(["restore", *([f"--state-dir={folder}"] if folder else [])])


def tell(environment: Mapping[str, str]) -> int:
    """Post the result that the measuring step, or another job, has left."""
    options = ["--name", given(environment, "name") or "sns-gate"]
    options += ["--author", given(environment, "author") or "github-actions[bot]"]
    for name, option in (("comment", "--no-comment"), ("check", "--no-check")):
        options += [option] if given(environment, name) == "false" else []
    options += ["--status"] if given(environment, "status") == "true" else []
    return endings.run_command(["post", *options, "--missing-fails", one_result(environment)])


def one_result(environment: Mapping[str, str]) -> str:
    """The result to post; where several are named, one a line or by a pattern, all of them merged.

    There is no such file where they do not fit together, which has been said then.
    """
    lines = (given(environment, "json") or "result.json").splitlines()
    patterns = [line.strip() for line in lines if line.strip()]
    names = [
        name
        for pattern in patterns
        for name in sorted(glob.glob(pattern)) or [pattern]  # noqa: PTH207 (a path of any kind)
    ]
    if len(names) == 1:
        return names[0]
    folder = environment.get("RUNNER_TEMP") or tempfile.gettempdir()
    merged = Path(folder) / "sns-gate-merged.json"
    merged.unlink(missing_ok=True)
    endings.run_command(["merge", *names, "--json", str(merged), "--quiet"])
    return str(merged)


def _output(environment: Mapping[str, str], values: Mapping[str, str]) -> None:
    path = environment.get("GITHUB_OUTPUT")
    if not path:
        raise UsageError("GITHUB_OUTPUT is not set, so this is no step of a workflow")
    with Path(path).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
