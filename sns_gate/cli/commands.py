"""What each command does with its options; heavy imports wait for their command."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sns_gate.cli.folders import project_root
from sns_gate.errors import RefusedRun, UsageError

if TYPE_CHECKING:
    from sns_gate.config import Settings
    from sns_gate.doctor import Diagnosis
    from sns_gate.scaffold import Plan, Written

_EXIT_OK, _EXIT_REFUSED = 0, 3


def init(options: argparse.Namespace) -> int:
    """Write what a repository needs to begin with."""
    from sns_gate import scaffold
    from sns_gate.revisions import root_and_branch

    root, branch = root_and_branch(Path.cwd())
    visibility: scaffold.Visibility = "public" if options.public else "private"
    usual = "self-hosted" if options.device == "cpu" else "self-hosted,gpu"
    runners = [scaffold.Runner.parse(text) for text in options.runner or [usual]]
    plan = scaffold.Plan(
        visibility=None if options.no_workflow else visibility,
        runners=runners,
        device="cpu" if options.device == "cpu" else "",
        branch=branch,
    )
    written = scaffold.write(root, plan)
    for file in written:
        there = "wrote" if file.new else "kept "
        sys.stdout.write(f"{there}  {file.name}: {file.what}\n{_kept_otherwise(file)}")
    sys.stdout.write(_after_init(plan))
    return _EXIT_OK


def _kept_otherwise(file: Written) -> str:
    """How a file that stays differs from what is asked, and how to have that."""
    from sns_gate.plain import plain

    if not file.difference:
        return ""
    lines = "".join(f"         {plain(line)}\n" for line in file.difference)
    mend = "change it so, or remove it and run this command again"
    if all(line.startswith("+") for line in file.difference):
        mend = "add these lines"  # to a list that is the user's own, and that nothing brings back
    return f"       it differs from what is asked:\n{lines}       to have that, {mend}\n"


def _after_init(plan: Plan) -> str:
    device = " --device cpu" if plan.device else ""
    steps = [
        "put a call of your own into benchmarks/bench_first.py",
        "sns-gate doctor, which says what this machine can reach",
        "git add --all && git commit --message 'Add a performance gate'",
        f"change your code, then: sns-gate check --baseline HEAD{device}",
    ]
    if plan.visibility is not None:
        labels = " or ".join(", ".join(runner.labels) for runner in plan.runners)
        steps.append(
            f"push; pull requests into {plan.branch} wait for a runner with the labels {labels}"
        )
    lines = [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join(["", "Next:", *lines, ""])


def report(options: argparse.Namespace) -> int:
    """Show a result file again."""
    from sns_gate.report import json as result_file
    from sns_gate.report.terminal import console_for, render

    result = result_file.read(Path(options.result))
    render(result, console_for(sys.stdout), quiet=options.detail == "quiet")
    if options.junit:
        from sns_gate.report.junit import junit

        _write(options.junit, junit(result))
    if options.html:
        from sns_gate.report import html

        _write(options.html, html.render(result))
    if options.markdown:
        from sns_gate.report.markdown import comment

        _write(options.markdown, comment(result))
    return result.exit_code


def history(options: argparse.Namespace) -> int:
    """Show how cases went over many checks."""
    from sns_gate import history as past
    from sns_gate.config import read_environment, read_file, resolve
    from sns_gate.plain import plain
    from sns_gate.report import json as result_file
    from sns_gate.report import trend
    from sns_gate.report.terminal import console_for

    root = project_root()
    configured = resolve(read_file(root), read_environment(os.environ)).history
    path = options.history or (root / configured if configured else None)
    if path is None:
        raise UsageError(
            "no history is configured; name its file with --history FILE, or set 'history' so that "
            "every check adds to it"
        )
    for name in options.add or ():
        found = result_file.read(Path(name))
        count, why = past.add(Path(path), found), past.why_not(found)
        sys.stdout.write(f"{name}: {f'not added: {why}' if why else f'{count} cases added'}\n")
    trends = past.trends(Path(path), options.case)
    if options.case and not trends:
        known = ", ".join(dict.fromkeys(plain(one.case) for one in past.trends(Path(path))))
        raise UsageError(
            f"no case of {path} matches {options.case}, so there is nothing to show; the cases "
            f"are: {known or 'none'}"
        )
    trend.render(trends, console_for(sys.stdout))
    if options.html:
        _write(options.html, trend.page(trends))
    return _EXIT_OK


def merge(options: argparse.Namespace) -> int:
    """Make one result of several."""
    from sns_gate.merging import merge
    from sns_gate.report import json as result_file
    from sns_gate.report.terminal import console_for, render
    from sns_gate.report.writing import ResultFile

    merged = merge([result_file.read(Path(name)) for name in options.results])
    file = ResultFile(Path(options.json).absolute())
    file.require_writable()
    file.save(merged)
    if file.failure is not None:
        raise file.failure
    render(merged, console_for(sys.stdout), quiet=options.detail == "quiet")
    return merged.exit_code


def completion(options: argparse.Namespace) -> int:
    """Print what a shell needs to complete this command's words."""
    import shtab

    from sns_gate.cli.parser import parser_for

    every = ("check", "compare", "calibrate", "explain", "list", "bisect")
    sys.stdout.write(shtab.complete(parser_for(every), shell=options.shell) + "\n")
    return _EXIT_OK


def _write(path: str, text: str) -> None:
    """Write a report where the user wants it.

    Raises:
        UsageError: it cannot be written there.
    """
    from sns_gate.report.writing import write_atomically

    try:
        write_atomically(Path(path).absolute(), text)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror}), so there is no such report; the result "
            f"itself is kept, so name another place"
        ) from None
    sys.stdout.write(f"wrote {path}\n")


def doctor(options: argparse.Namespace) -> int:
    """Say what this machine can reach."""
    from sns_gate.doctor import as_json, examine, say

    configured = _configured()
    python = Path(options.python or configured.python or sys.executable).absolute()
    options.pass_env = options.pass_env or list(configured.pass_env)
    state_dir = _state_dir(options)
    found = examine(python, state_dir)
    wanted = "AB"
    if options.clocks:
        found = _with_clocks_tried(options, found, python, state_dir)
        wanted = "A"
    if options.json:
        sys.stdout.write(as_json(found) + "\n")
    else:
        say(found, sys.stdout.write)
    return _EXIT_OK if found.reachable.value in wanted else _EXIT_REFUSED


def _with_clocks_tried(
    options: argparse.Namespace, found: Diagnosis, python: Path, state_dir: Path
) -> Diagnosis:
    """Go to tier A and back with a comparison of one kernel with itself."""
    from sns_gate import gate
    from sns_gate.cli.benchmarking import keep_nothing
    from sns_gate.config import Layers, Source
    from sns_gate.doctor.trial import LOAD, try_clocks
    from sns_gate.report.progress import PlainProgress
    from sns_gate.report.terminal import console_for
    from sns_gate.rig import FunctionsRequest
    from sns_gate.telemetry import uuid_of

    index = options.device.removeprefix("cuda").removeprefix(":") or "0"
    uuid = uuid_of(int(index), os.environ) if index.isdigit() else None
    if uuid is None:
        raise UsageError(
            f"'{options.device}' is no GPU that NVML knows here, so there are no clocks to try; "
            f"name one with --device cuda:N"
        )
    asked = {
        "clocks": options.clocks, "device": f"cuda:{index}", "python": str(python),
        "state-dir": str(state_dir), "processes": 3, "placements": 2,
        "pass-env": tuple(options.pass_env or ()),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="sns-gate-") as folder:
        request = FunctionsRequest(
            folder=Path(folder),
            candidate=LOAD,
            baseline=LOAD,
            at_least=None,
            layers=Layers(Source("the environment", {}), Source("the command line", asked)),
            environment=dict(os.environ),
        )
        progress = PlainProgress(console_for(sys.stderr))
        return try_clocks(
            found, uuid, state_dir, lambda: gate.compare(request, progress, keep_nothing)
        )


def _state_dir(options: argparse.Namespace) -> Path:
    """Where checks of this folder keep their journals: option, variable, file, default."""
    return Path(options.state_dir or _configured().state_dir).absolute()


def _configured() -> Settings:
    """The settings that hold here without any option."""
    from sns_gate.config import read_environment, read_file, resolve

    return resolve(read_file(project_root()), read_environment(os.environ))


def restore(options: argparse.Namespace) -> int:
    """Give back clocks whose check is gone."""
    from sns_gate.clocks import journals, undo

    folder = _state_dir(options)
    found = journals(folder)
    if not found:
        sys.stdout.write(f"{folder} holds no journal of pinned clocks: nothing to give back\n")
    for path, journal in found:
        if journal.owner_alive:
            raise RefusedRun(
                "clocks-in-use",
                f"process {journal.pid} has pinned the clocks of {journal.uuid} and still runs, so "
                f"they are left to it; end that check first",
            )
        undo(path, journal)
        sys.stdout.write(f"{journal.uuid}: clocks given back\n")
    return _EXIT_OK


def schema(_: argparse.Namespace) -> int:
    """Print the schema of result files."""
    from sns_gate.report import json as result_file

    sys.stdout.write(result_file.schema() + "\n")
    return _EXIT_OK
