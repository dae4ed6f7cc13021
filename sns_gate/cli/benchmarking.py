"""What the commands do that run benchmarks; heavy imports wait for their command."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sns_gate.cli.folders import project_root
from sns_gate.errors import ResultFileError, UsageError

if TYPE_CHECKING:
    from sns_gate.config import Layers
    from sns_gate.gate import Progress, Save
    from sns_gate.types import GateResult

_EXIT_OK, _EXIT_FAIL, _EXIT_REFUSED = 0, 1, 3


def check(options: argparse.Namespace) -> int:
    """Judge a candidate revision against a baseline."""
    if shutil.which("git") is None:
        raise UsageError("there is no git on PATH, so no revision can be read; install git")
    from sns_gate import gate
    from sns_gate.rig import CheckRequest

    request = CheckRequest(
        folder=Path.cwd(),
        baseline=options.baseline,
        candidate=options.candidate,
        layers=_layers(options),
        environment=dict(os.environ),
        outputs=(Path(options.json).resolve(),),
    )

    def run(progress: Progress, save: Save) -> GateResult:
        result = gate.check(request, progress, save)
        _remember(request.layers, result)
        return result

    return _judged(options, run)


def _remember(layers: Layers, result: GateResult) -> None:
    """Add a check to the configured history, if there is one."""
    from sns_gate import history
    from sns_gate.config import Source, read_file

    root = project_root()
    own = read_file(root)
    if layers.over(own).policy_from == "baseline":
        own = Source(own.name, {})  # a change has no say in where this writes
    file = layers.over(own).history
    if file is None:
        return
    if why := history.why_not(result):
        sys.stderr.write(f"sns-gate: not added to the history: {why}\n")
        return
    try:
        history.add(root / file, result)
    except UsageError as error:
        sys.stderr.write(f"sns-gate: not added to the history: {error}\n")


def compare(options: argparse.Namespace) -> int:
    """Judge one set-up function against another."""
    from sns_gate import gate
    from sns_gate.rig import FunctionsRequest

    if options.at_least is not None and not 0 < options.at_least < math.inf:
        raise UsageError(f"--at-least is a speedup, such as 1.2, got {options.at_least}")
    request = FunctionsRequest(
        folder=Path.cwd(),
        candidate=options.candidate,
        baseline=options.baseline,
        at_least=options.at_least,
        layers=_layers(options),
        environment=dict(os.environ),
    )
    return _judged(options, lambda progress, save: gate.compare(request, progress, save))


def explain(options: argparse.Namespace) -> int:
    """Say where the time inside both sides' calls goes."""
    from sns_gate import inspection
    from sns_gate.report import explained
    from sns_gate.report.progress import progress_for
    from sns_gate.report.terminal import console_for
    from sns_gate.rig import CheckRequest
    from sns_gate.types import Explanation

    options.filter = [options.case]
    request = CheckRequest(
        Path.cwd(), options.baseline, options.candidate, _layers(options), dict(os.environ)
    )
    console = console_for(sys.stdout)
    progress = progress_for(console)
    progress.start()
    try:
        found = list(inspection.explain(request, progress))
    finally:
        progress.stop()
    for case, one in found:
        if isinstance(one, Explanation):
            explained.render(case, one, console)
        else:
            why = one.text if one else "the profiler saw nothing of it"
            console.print(f"{case}: {why}", markup=False)
    return _EXIT_OK if any(isinstance(one, Explanation) for _, one in found) else _EXIT_REFUSED


def bisect(options: argparse.Namespace) -> int:
    """Find the commit that changed a case."""
    from sns_gate import bisection
    from sns_gate.report import bisected
    from sns_gate.report.progress import progress_for
    from sns_gate.report.terminal import console_for
    from sns_gate.report.words import counted
    from sns_gate.report.writing import write_atomically
    from sns_gate.revisions import Repository
    from sns_gate.rig import CheckRequest

    repository, state = Repository(Path.cwd()), Path(options.state).absolute()
    console = console_for(sys.stdout)
    builds = state.with_name(f"{state.name}.builds")
    request = CheckRequest(
        Path.cwd(), options.good, options.bad, _layers(options), dict(os.environ), builds
    )
    progress = progress_for(console, options.detail)

    def tell(commit: str, left: int) -> None:
        text = f"{counted(left, 'commit')} left, trying {repository.subject(commit)}"
        console.print(text, markup=False, style="bold")

    earlier = bisection.read_state(state)
    progress.start()
    try:
        found = bisection.bisect(
            request,
            options.case,
            (progress, tell),
            lambda so_far: write_atomically(state, so_far.model_dump_json(indent=2) + "\n"),
            earlier,
        )
    finally:
        progress.stop()
    shutil.rmtree(builds, ignore_errors=True)
    bisected.render(found, repository.subject, console)
    return _EXIT_OK


def calibrate(options: argparse.Namespace) -> int:
    """Measure a revision against itself, and recommend settings."""
    from sns_gate import calibration, gate
    from sns_gate.report import calibration as page
    from sns_gate.report.progress import progress_for
    from sns_gate.report.terminal import console_for
    from sns_gate.report.writing import ResultFile, write_atomically
    from sns_gate.rig import CheckRequest

    if options.rounds < 1:
        raise UsageError(f"--rounds is a number of checks, at least 1, got {options.rounds}")
    kept = Path(options.json).absolute() if options.json else None
    if kept is not None:
        ResultFile(kept).require_writable()
    console = console_for(sys.stdout)
    results = []
    for round_ in range(options.rounds):
        # Each round has other placements and orders: the seed stands in its result.
        seed = {"seed": round_} if options.seed is None else {}
        layers = _layers(options, {**seed, "also-against": ()})
        request = CheckRequest(
            Path.cwd(), options.revision, options.revision, layers, dict(os.environ)
        )
        progress = progress_for(console)
        console.print(f"round {round_ + 1} of {options.rounds}")
        progress.start()
        try:
            results.append(gate.check(request, progress, keep_nothing))
        finally:
            progress.stop()
    found = calibration.calibrate(results)
    page.render(found, console)
    if kept is not None:
        write_atomically(kept, found.model_dump_json(indent=2) + "\n")
    if options.write and found.tolerance is not None:
        console.print(f"written into {page.write(found, project_root())}", markup=False)
    return _EXIT_OK if found.tolerance is not None else _EXIT_REFUSED


def list_cases(options: argparse.Namespace) -> int:
    """Show the cases that a check would measure."""
    from sns_gate import inspection
    from sns_gate.discovery import repeated_ids
    from sns_gate.report import json as result_file
    from sns_gate.report import listing
    from sns_gate.report.progress import PlainProgress
    from sns_gate.report.terminal import console_for
    from sns_gate.rig import CheckRequest
    from sns_gate.rig.mount import is_wanted, refuse_filter

    request = CheckRequest(Path.cwd(), None, options.candidate, _layers(options), dict(os.environ))
    loaded, root, settings = inspection.list_cases(request, PlainProgress(console_for(sys.stderr)))
    cases = [case for case in loaded.cases if is_wanted(case.id, settings.filter)]
    if loaded.cases and not cases:
        refuse_filter(settings.filter, loaded.cases)
    earlier = listing.Earlier()
    if Path(options.json).exists():
        with contextlib.suppress(ResultFileError):
            earlier = listing.Earlier.of(result_file.read(Path(options.json)))
    blocks = settings.processes * settings.placements
    listing.render(cases, loaded.failures, earlier, blocks, root, console_for(sys.stdout))
    unclear = bool(loaded.failures or repeated_ids(case.id for case in cases))
    return _EXIT_FAIL if unclear else _EXIT_OK


def _judged(options: argparse.Namespace, run: Callable[[Progress, Save], GateResult]) -> int:
    """Run a check under its progress, keep its result, and show it."""
    from sns_gate.report.progress import progress_for
    from sns_gate.report.terminal import console_for, render
    from sns_gate.report.writing import ResultFile

    console = console_for(sys.stdout)
    progress = progress_for(console, options.detail)
    quiet = options.detail == "quiet"
    file = ResultFile(Path(options.json).absolute())
    file.require_writable()
    file.discard_old()
    progress.start()
    try:
        result = run(progress, file.save)
    except BaseException:
        progress.stop()
        file.finish()
        if aside := file.put_aside():
            sys.stderr.write(f"sns-gate: the earlier result is kept as {aside.name}\n")
        if file.latest is not None and file.latest.cases:
            render(file.latest, console, quiet=quiet)
        raise
    progress.stop()
    file.finish()
    render(result, console, quiet=quiet)
    if file.failure is not None:
        raise file.failure
    return result.exit_code


def keep_nothing(result: GateResult) -> None:
    """For a check whose result is shown and not saved."""
    del result


def _layers(options: argparse.Namespace, more: Mapping[str, object] | None = None) -> Layers:
    from sns_gate.config import Layers, Source, read_environment, setting_options

    given = {
        option.name: value
        for option in setting_options()
        if (value := getattr(options, option.name.replace("-", "_"), None)) is not None
    }
    for name in ("benchmarks", "python", "state-dir", "history"):  # as the user's shell means them
        if name in given:
            given[name] = str(Path(given[name]).absolute())
    values = {**given, **(more or {})}
    return Layers(read_environment(os.environ), Source("the command line", values))
