"""The command line: every command with its options and what its help teaches."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sns_gate import __version__
from sns_gate.cli import benchmarking, commands, posting
from sns_gate.cli.nearest import Parser
from sns_gate.cli.options import (
    DEFAULT_RESULT,
    CheckHelp,
    KeptLines,
    add_quiet,
    add_result,
    add_revisions,
    add_settings,
)


def parser_for(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; settings, whose import costs time, wait for a command that has them."""
    parser: argparse.ArgumentParser = Parser(
        prog="sns-gate",
        description="Times a candidate revision against a freshly timed baseline on the same GPU "
        "and says whether it is slower, how surely, and where it cannot know.",
        epilog="Start with: sns-gate check --baseline HEAD",
    )
    parser.add_argument("--version", action="version", version=f"sns-gate {__version__}")
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_check(added, with_settings="check" in given)
    _add_compare(added, with_settings="compare" in given)
    _add_explain(added, with_settings="explain" in given)
    _add_bisect(added, with_settings="bisect" in given)
    _add_calibrate(added, with_settings="calibrate" in given)
    _add_reading(added, given)
    _add_init(added)
    _add_post(added)
    _add_machine(added)
    schema = added.add_parser("schema", help="print the JSON schema of result files")
    schema.set_defaults(run=commands.schema)
    completion = added.add_parser(
        "completion",
        help="print what a shell needs to complete these commands",
        description="Prints a script for your shell's start-up file, for example: "
        "sns-gate completion bash > ~/.local/share/bash-completion/completions/sns-gate",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(run=commands.completion)
    return parser


def _add_reading(
    added: argparse._SubParsersAction[argparse.ArgumentParser], given: Sequence[str]
) -> None:
    """Commands that read results, and the list of cases."""
    report = added.add_parser(
        "report",
        help="show a result file again, without a GPU",
        epilog="It ends with the exit code of the check that wrote the file; see 'sns-gate check "
        "--help'.",
    )
    report.add_argument("result", metavar="FILE", help="what 'sns-gate check --json' wrote")
    add_quiet(report)
    report.add_argument("--html", metavar="FILE", help="write it as one page with plots too")
    report.add_argument(
        "--junit", metavar="FILE", help="write it as JUnit's XML, for systems that show tests"
    )
    report.add_argument(
        "--markdown", metavar="FILE", help="write what a pull request would be told, as Markdown"
    )
    report.set_defaults(run=commands.report)
    _add_list(added, with_settings="list" in given)
    history = added.add_parser(
        "history",
        help="show how cases went over many checks",
        description="Shows each case on each kind of machine over many checks, and where its times "
        "changed. Times are compared at tier A alone; nothing is ever judged by them.",
    )
    history.add_argument(
        "case", metavar="CASE", nargs="?", default="", help="id or a part of it (default: all)"
    )
    history.add_argument("--history", metavar="FILE", help="the file (default: as configured)")
    history.add_argument(
        "--add", metavar="RESULT", action="append", help="add a result first; may be repeated"
    )
    history.add_argument("--html", metavar="FILE", help="write plots as one page too")
    history.set_defaults(run=commands.history)
    merge = added.add_parser(
        "merge",
        help="make one result of several shards, or of several kinds of machines",
        description="Makes one result of several of one change: of all parts that '--shard I/N' "
        "measured, or of checks on several kinds of GPU, where each case says on which it was "
        "measured. A missing shard is an error, so that no case passes unseen.",
        epilog="example: sns-gate merge h100.json a100.json --json result.json",
    )
    merge.add_argument("results", metavar="FILE", nargs="+", help="what 'sns-gate check' wrote")
    merge.add_argument(
        "--json", metavar="FILE", default=DEFAULT_RESULT,
        help=f"where the one result is kept (default: {DEFAULT_RESULT})",
    )  # fmt: skip
    add_quiet(merge)
    merge.set_defaults(run=commands.merge)


def _add_machine(added: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Commands about this machine."""
    doctor = added.add_parser(
        "doctor",
        help="say what this machine can reach, and what would mend the rest",
        epilog="It ends with 0 where verdicts can be reached here (with --clocks: tier A), else "
        "with 3.",
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
    doctor.set_defaults(run=commands.doctor)
    restore = added.add_parser(
        "restore", help="give back clocks that a check which is gone had pinned"
    )
    restore.add_argument("--state-dir", metavar="DIR", help="folder of clock journals")
    restore.set_defaults(run=commands.restore)


def _add_check(
    added: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    check = added.add_parser(
        "check",
        help="judge a candidate revision against a baseline",
        description="Judges every benchmark case of the candidate against the baseline: both are "
        "timed now, alternately, in several processes on the same device.",
        formatter_class=KeptLines,
        add_help=False,
    )
    check.set_defaults(run=benchmarking.check)
    check.add_argument("-h", "--help", action=CheckHelp, help="show this help and exit")
    add_revisions(check)
    add_result(check)
    if with_settings:  # they cost an import that 'sns-gate --help' need not wait for
        add_settings(check, of_revisions=True)


def _add_list(
    added: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    listing = added.add_parser(
        "list",
        help="show the cases, where each is written, and how long they may take",
        description="Shows the cases that a check would measure, without further baselines. No "
        "device is needed; times are those of the last result, or what a first rotation usually "
        "takes. Building, starting workers, and measuring again what looks slower come on top.",
        epilog="It ends with 1 where a file does not load or two cases share an id, else with 0.",
    )
    listing.set_defaults(run=benchmarking.list_cases)
    listing.add_argument(
        "--candidate", metavar="REF", help="revision to list (default: the working tree as it is)"
    )
    listing.add_argument(
        "--json", metavar="FILE", default=DEFAULT_RESULT,
        help=f"earlier result to take times from (default: {DEFAULT_RESULT})",
    )  # fmt: skip
    if with_settings:
        unused = ("explain", "also-against", "history", "clocks", "shard")
        add_settings(listing, of_revisions=True, without=unused)


def _add_explain(
    added: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    explain = added.add_parser(
        "explain",
        help="say where the time inside both sides' calls goes",
        description="Takes a case's call apart on both sides by a profiler, kernel by kernel on a "
        "GPU, by torch's operators or Python's functions on the CPU, and puts the parts beside "
        "each other. It judges nothing: a profiler slows calls down.",
        epilog="example: sns-gate explain 'softmax[n=4096]' --baseline HEAD~1\n\nIt ends with 0 "
        "where any call was taken apart, else with 3.",
        formatter_class=KeptLines,
    )
    explain.set_defaults(run=benchmarking.explain)
    explain.add_argument("case", metavar="CASE", help="id, a part of it, or a pattern")
    add_revisions(explain)
    if with_settings:
        unused = ("explain", "filter", "also-against", "history", "clocks", "shard")
        add_settings(explain, of_revisions=True, without=unused)


def _add_bisect(
    added: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    bisect = added.add_parser(
        "bisect",
        help="find the commit that made a case slower, or faster",
        description="Checks commits between two ends against the good one, halving what is left "
        "each time, until it has the first that is like the bad end. Each commit is measured as "
        "precisely as the difference between the ends needs; commits that cannot be built or "
        "measured are passed over. What is known is kept, so that a second run goes on from it.",
        epilog="example: sns-gate bisect v1.2 HEAD --case 'softmax[n=4096]'",
    )
    bisect.set_defaults(run=benchmarking.bisect)
    bisect.add_argument("good", metavar="GOOD", help="commit to compare with")
    bisect.add_argument("bad", metavar="BAD", help="later commit whose case differs")
    bisect.add_argument("--case", metavar="CASE", required=True, help="id of the case to follow")
    bisect.add_argument(
        "--state",
        metavar="FILE",
        default="bisect.json",
        help="where what is known is kept (default: bisect.json)",
    )
    add_quiet(bisect)
    if with_settings:
        unused = ("explain", "filter", "also-against", "history", "shard")
        add_settings(bisect, of_revisions=True, without=unused)


def _add_compare(
    added: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    compare = added.add_parser(
        "compare",
        help="judge one set-up function's work against another's, without any repository",
        description="Judges the work of one set-up function against another's: both are timed now, "
        "alternately, in several processes on the same device, from the code as it lies here.",
        epilog="example:\n  sns-gate compare kernels:fused_softmax kernels:torch_softmax "
        "--at-least 1.2\n\nEach builds its inputs and returns the callable to time, as under "
        "@benchmark, whose\nparameters hold for both where the candidate has them.",
        formatter_class=KeptLines,
        add_help=False,
    )
    compare.set_defaults(run=benchmarking.compare)
    compare.add_argument("-h", "--help", action=CheckHelp, help="show this help and exit")
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
    add_result(compare)
    if with_settings:
        add_settings(compare, of_revisions=False)


def _add_init(added: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    init = added.add_parser(
        "init",
        help="write settings, a first benchmark and the workflows that fit",
        description="Writes what a repository needs to begin with: settings, a first benchmark, "
        "and workflows for GitHub that measure on your own runner. It never writes over a file, "
        "and says how one that is there differs from what is asked.",
        epilog="example: two kinds of runners of a public repository\n  sns-gate init --public "
        "--runner h100=self-hosted,h100 --runner a100=self-hosted,a100",
        formatter_class=KeptLines,
    )
    init.add_argument(
        "--public",
        action="store_true",
        help="for a repository whose pull requests come from forks: two workflows, so that no code "
        "of a fork meets the token that posts",
    )
    init.add_argument(
        "--runner",
        metavar="[NAME=]LABEL,...",
        action="append",
        help="labels of the runner that measures; again, with names, for several kinds of GPU "
        "(default: self-hosted,gpu, on the CPU self-hosted)",
    )
    init.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="what the runner measures on"
    )
    init.add_argument("--no-workflow", action="store_true", help="write no workflow")
    init.set_defaults(run=commands.init)


def _add_post(added: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    post = added.add_parser(
        "post",
        help="tell GitHub: comment, check, job summary, annotations",
        description="Posts a result to where the workflow's event came from. It reads GITHUB_TOKEN "
        "and what GitHub sets in every job; what it cannot post it says, and the result stays.",
    )
    post.add_argument("result", metavar="FILE", help="what 'sns-gate check --json' wrote")
    post.add_argument(
        "--name", default="sns-gate", help="of comment and check, one of each a name "
        "(default: sns-gate)",
    )  # fmt: skip
    post.add_argument(
        "--author", default="github-actions[bot]", metavar="LOGIN",
        help="whose comment is edited (default: github-actions[bot])",
    )  # fmt: skip
    post.add_argument("--no-comment", action="store_true", help="leave the pull request alone")
    post.add_argument("--no-check", action="store_true", help="create no check run")
    post.add_argument("--status", action="store_true", help="set a commit status too")
    post.add_argument("--dry-run", action="store_true", help="print what would be sent")
    post.add_argument(
        "--missing-fails", action="store_true", help="where there is no such file, post a check "
        "that failed, so that nobody waits for it",
    )  # fmt: skip
    post.set_defaults(run=posting.post)


def _add_calibrate(
    added: argparse._SubParsersAction[argparse.ArgumentParser], *, with_settings: bool
) -> None:
    calibrate = added.add_parser(
        "calibrate",
        help="measure a revision against itself: this runner's noise, and settings that suit it",
        description="Checks a revision against itself several times: how wide the intervals are, "
        "how often identical code looks different, what slowdown can be seen, and which tolerance "
        "and placements suit this runner.",
    )
    calibrate.set_defaults(run=benchmarking.calibrate)
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
        unused = ("also-against", "history", "explain")
        add_settings(calibrate, of_revisions=True, without=unused)
