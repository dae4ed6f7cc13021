"""Arguments to calls and exceptions to exit codes; heavy imports wait for their command."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from sns_gate import __version__
from sns_gate.errors import (
    GateError,
    NothingCompared,
    RefusedRun,
    Terminated,
    UsageError,
    WorkerError,
)

if TYPE_CHECKING:
    from sns_gate.config import Layers
    from sns_gate.doctor import Diagnosis
    from sns_gate.gate import Progress, Save
    from sns_gate.types import GateResult

_EXIT_OK, _EXIT_FAIL, _EXIT_USAGE, _EXIT_REFUSED, _EXIT_NOTHING, _EXIT_INTERNAL = 0, 1, 2, 3, 5, 70
DEFAULT_RESULT = "result.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser(given).parse_args(given)
        with _signals_raise():
            return int(options.run(options))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_FAIL
    except (GateError, KeyboardInterrupt) as error:
        return _expected_ending(error)
    except Exception as error:  # noqa: BLE001 (the one broad catch: a bug ends in 70, never in a pass)
        traceback.print_exc()
        return _say(
            f"internal {type(error).__name__}, which is a fault of sns-gate, so there is no "
            f"verdict; please report it with the lines above",
            _EXIT_INTERNAL,
        )


def _expected_ending(error: BaseException) -> int:
    """The exit code of an ending that has a name, once it has been said."""
    match error:
        case Terminated():
            return _say(str(error), 128 + signal.SIGTERM)
        case NothingCompared():
            return _say(str(error), _EXIT_NOTHING)
        case WorkerError():
            tail = f"\n{error.traceback}" if error.traceback else ""
            return _say(f"refused: {error}{tail}", _EXIT_REFUSED)
        case RefusedRun():
            return _say(f"refused: {error}", _EXIT_REFUSED)
        case UsageError():
            return _say(str(error), _EXIT_USAGE)
        case _:
            return _say("interrupted", 128 + signal.SIGINT)


def _check(options: argparse.Namespace) -> int:
    if shutil.which("git") is None:
        raise UsageError("there is no git on PATH, so no revision can be read; install git")
    from sns_gate.gate import check
    from sns_gate.rig import CheckRequest

    request = CheckRequest(
        folder=Path.cwd(),
        baseline=options.baseline,
        candidate=options.candidate,
        layers=_layers(options),
        environment=dict(os.environ),
    )
    return _judged(lambda progress, save: check(request, progress, save), Path(options.json))


def _compare(options: argparse.Namespace) -> int:
    from sns_gate.gate import compare
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
    return _judged(lambda progress, save: compare(request, progress, save), Path(options.json))


def _calibrate(options: argparse.Namespace) -> int:
    from sns_gate.calibration import calibrate
    from sns_gate.gate import check
    from sns_gate.report import calibration as page
    from sns_gate.report.terminal import LiveProgress, PlainProgress, console_for
    from sns_gate.rig import CheckRequest

    if options.rounds < 1:
        raise UsageError(f"--rounds is a number of checks, at least 1, got {options.rounds}")
    console = console_for(sys.stdout)
    results = []
    for round_ in range(options.rounds):
        # Each round has other placements and orders: the seed stands in its result.
        layers = _layers(options, seed=round_ if options.seed is None else None)
        request = CheckRequest(
            Path.cwd(), options.revision, options.revision, layers, dict(os.environ)
        )
        progress = LiveProgress(console) if console.is_terminal else PlainProgress(console)
        console.print(f"round {round_ + 1} of {options.rounds}")
        progress.start()
        try:
            results.append(check(request, progress, _keep_nothing))
        finally:
            progress.stop()
    found = calibrate(results)
    page.render(found, console)
    if options.json:
        Path(options.json).write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
    if options.write and found.tolerance is not None:
        console.print(f"written into {page.write(found, Path.cwd())}", markup=False)
    return _EXIT_OK if found.tolerance is not None else _EXIT_REFUSED


def _judged(run: Callable[[Progress, Save], GateResult], path: Path) -> int:
    """Run a check under its progress, keep its result, and show it."""
    from sns_gate.report.json import ResultFile
    from sns_gate.report.terminal import LiveProgress, PlainProgress, console_for, render

    console = console_for(sys.stdout)
    progress = LiveProgress(console) if console.is_terminal else PlainProgress(console)
    file = ResultFile(path.absolute())
    file.require_writable()
    file.discard_old()
    progress.start()
    try:
        result = run(progress, file.save)
    except BaseException:
        progress.stop()
        if file.latest is not None and file.latest.cases:
            render(file.latest, console)
        raise
    progress.stop()
    render(result, console)
    if file.failure is not None:
        raise file.failure
    return result.exit_code


def _report(options: argparse.Namespace) -> int:
    from sns_gate.report import json as result_file
    from sns_gate.report.terminal import console_for, render

    result = result_file.read(Path(options.result))
    render(result, console_for(sys.stdout))
    return result.exit_code


def _doctor(options: argparse.Namespace) -> int:
    from sns_gate.clocks import DEFAULT_STATE_DIR
    from sns_gate.doctor import as_json, examine, say

    python = Path(options.python or sys.executable).absolute()
    state_dir = Path(options.state_dir or DEFAULT_STATE_DIR).absolute()
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
    from sns_gate.config import Layers, Source
    from sns_gate.doctor.trial import LOAD, try_clocks
    from sns_gate.gate import compare
    from sns_gate.report.terminal import PlainProgress, console_for
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
        return try_clocks(found, uuid, state_dir, lambda: compare(request, progress, _keep_nothing))


def _keep_nothing(result: GateResult) -> None:
    del result


def _restore(options: argparse.Namespace) -> int:
    from sns_gate.clocks import DEFAULT_STATE_DIR, journals, undo

    folder = Path(options.state_dir or DEFAULT_STATE_DIR)
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


def _schema(_: argparse.Namespace) -> int:
    from sns_gate.report.json import schema

    sys.stdout.write(schema() + "\n")
    return _EXIT_OK


def _layers(options: argparse.Namespace, seed: int | None = None) -> Layers:
    from sns_gate.config import Layers, Source, read_environment, setting_options

    given = {
        option.name: value
        for option in setting_options()
        if (value := getattr(options, option.name.replace("-", "_"), None)) is not None
    }
    for name in ("benchmarks", "python", "state-dir"):  # as the user's shell means them
        if name in given:
            given[name] = str(Path(given[name]).absolute())
    if seed is not None:
        given["seed"] = seed
    return Layers(read_environment(os.environ), Source("the command line", given))


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sns-gate",
        description="Times a candidate revision against a freshly timed baseline on the same GPU "
        "and says whether it is slower, how surely, and where it cannot know.",
        epilog="Start with: sns-gate check --baseline HEAD~1",
    )
    parser.add_argument("--version", action="version", version=f"sns-gate {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_check(commands, with_settings="check" in given)
    _add_compare(commands, with_settings="compare" in given)
    _add_calibrate(commands, with_settings="calibrate" in given)
    report = commands.add_parser("report", help="show a result file again, without a GPU")
    report.add_argument("result", metavar="FILE", help="what 'sns-gate check --json' wrote")
    report.set_defaults(run=_report)
    doctor = commands.add_parser(
        "doctor", help="say what this machine can reach, and what would mend the rest"
    )
    doctor.add_argument("--python", metavar="FILE", help="interpreter of the workers")
    doctor.add_argument("--state-dir", metavar="DIR", help="folder of locks and clock journals")
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.add_argument(
        "--clocks",
        metavar="MHZ[,WATTS]",
        help="go to tier A and back: pin them, time a kernel under load, give them back",
    )
    doctor.add_argument(
        "--device", metavar="DEVICE", default="cuda:0", help="GPU to try them on (default: cuda:0)"
    )
    doctor.add_argument(
        "--pass-env", metavar="NAME", action="append", help="variable to hand to the workers"
    )
    doctor.set_defaults(run=_doctor)
    restore = commands.add_parser(
        "restore", help="give back clocks that a check which is gone had pinned"
    )
    restore.add_argument("--state-dir", metavar="DIR", help="folder of clock journals")
    restore.set_defaults(run=_restore)
    schema = commands.add_parser("schema", help="print the JSON schema of result files")
    schema.set_defaults(run=_schema)
    return parser


def _add_check(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    check = commands.add_parser(
        "check",
        help="judge a candidate revision against a baseline",
        description="Judges every benchmark case of the candidate against the baseline: both are "
        "timed now, alternately, in several processes on the same device.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    check.set_defaults(run=_check)
    check.add_argument("-h", "--help", action=_CheckHelp, help="show this help and exit")
    check.add_argument(
        "--baseline",
        metavar="REF",
        help="revision to compare with (default: the merge base with the remote's default branch)",
    )
    check.add_argument(
        "--candidate",
        metavar="REF",
        help="revision to judge (default: the working tree as it is, uncommitted changes included)",
    )
    _add_result(check)
    if with_settings:  # they cost an import that 'sns-gate --help' need not wait for
        _add_settings(check, of_revisions=True)


def _add_compare(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    compare = commands.add_parser(
        "compare",
        help="judge one set-up function's work against another's, without any repository",
        description="Judges the work of one set-up function against another's: both are timed now, "
        "alternately, in several processes on the same device, from the code as it lies here.",
        epilog="example:\n  sns-gate compare kernels:fused_softmax kernels:torch_softmax "
        "--at-least 1.2\n\nEach builds its inputs and returns the callable to time, as under "
        "@benchmark, whose\nparameters hold for both where the candidate has them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    compare.set_defaults(run=_compare)
    compare.add_argument("-h", "--help", action=_CheckHelp, help="show this help and exit")
    what = "module:function or file.py:function"
    compare.add_argument("candidate", metavar="CANDIDATE", help=f"set-up to judge, {what}")
    compare.add_argument("baseline", metavar="BASELINE", help=f"set-up to compare with, {what}")
    compare.add_argument(
        "--at-least",
        metavar="SPEEDUP",
        type=float,
        help="speedup below which it is slower, 1.2 for a fifth faster (default: no slower than "
        "the tolerance)",
    )
    _add_result(compare)
    if with_settings:
        _add_settings(compare, of_revisions=False)


def _add_calibrate(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    calibrate = commands.add_parser(
        "calibrate",
        help="measure a revision against itself: this runner's noise, and settings that suit it",
        description="Checks a revision against itself several times: how wide the intervals are, "
        "how often identical code looks different, what slowdown can be seen, and which tolerance "
        "and placements suit this runner.",
    )
    calibrate.set_defaults(run=_calibrate)
    calibrate.add_argument(
        "--revision", metavar="REF", default="HEAD", help="revision to measure (default: HEAD)"
    )
    calibrate.add_argument(
        "--rounds", metavar="N", type=int, default=3, help="checks, each in new processes "
        "(default: 3)",
    )  # fmt: skip
    calibrate.add_argument(
        "--write", action="store_true", help="put the recommended settings into the configuration"
    )
    calibrate.add_argument("--json", metavar="FILE", help="keep all figures there")
    if with_settings:
        _add_settings(calibrate, of_revisions=True)


def _add_result(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json",
        metavar="FILE",
        default=DEFAULT_RESULT,
        help=f"where the result is kept, saved after every case (default: {DEFAULT_RESULT})",
    )


def _add_settings(command: argparse.ArgumentParser, *, of_revisions: bool) -> None:
    """Every setting is an option of the same name."""
    from sns_gate.config import setting_options

    for option in setting_options():
        if option.of_revisions and not of_revisions:
            continue
        command.add_argument(
            f"--{option.name}",
            metavar=option.metavar,
            action="append" if option.repeats else "store",
            default=None,
            help=option.help.replace("%", "%%"),
        )


class _CheckHelp(argparse.Action):
    """Shows the help with the exit codes behind it."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002 (argparse's name)
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        from sns_gate.verdict import EXIT_MEANINGS

        del namespace, values, option_string
        rows = "\n".join(f"  {int(code):>3}  {text}" for code, text in EXIT_MEANINGS.items())
        parser.epilog = "\n\n".join(filter(None, (parser.epilog, f"exit codes:\n{rows}")))
        parser.print_help()
        parser.exit(_EXIT_OK)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP end the check like Ctrl-C: through its own clean-up."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        # A second signal must not cut the clean-up short; SIGKILL always can.
        for caught in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(caught, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Terminated(number)

    before = {}
    for caught in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(caught) is not signal.SIG_IGN:
            before[caught] = signal.signal(caught, end)
    try:
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"sns-gate: {text}\n")
    return code
