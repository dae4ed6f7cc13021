"""The command that tells GitHub of a result; heavy imports wait for it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sns_gate.errors import GateError, PostError, PostUnreachable, UsageError

if TYPE_CHECKING:
    from sns_gate.github import Client, Message, Target, Wanted
    from sns_gate.github.runner import Runner
    from sns_gate.types import GateResult

_EXIT_OK, _EXIT_FAIL, _EXIT_USAGE, _EXIT_REFUSED = 0, 1, 2, 3


def post(options: argparse.Namespace) -> int:
    """Tell GitHub of a result, or of its lack where that is asked for."""
    from sns_gate import github
    from sns_gate.github.runner import Runner

    missing = options.missing_fails and not Path(options.result).exists()
    result = None if missing else _read(Path(options.result))
    target = github.read_event(os.environ).target
    runner = Runner(os.environ, sys.stdout)
    if options.dry_run:
        runner.show(_message(result, target), target)
        return _EXIT_OK
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        runner.tell(_message(result, target), result)
        raise UsageError(
            "GITHUB_TOKEN is not set, so nothing was posted beyond the job summary; hand the "
            "job's token to the step that posts, and to no other"
        )
    with github.Client(target.api_url, target.repository, token) as client:
        if result is None:
            return _post_none(target, _wanted(options), client, runner)
        return _post(result, target, _wanted(options), client, runner)


def _read(path: Path) -> GateResult:
    from sns_gate.report import json as result_file

    result = result_file.read(path, result_file.MOST_HOSTILE_BYTES)
    if result.shard is not None:
        raise UsageError(
            f"{path} is part {result.shard} of a check's cases, so posted alone the others would "
            f"pass unseen; post what 'sns-gate merge' makes of all parts"
        )
    return result


def _wanted(options: argparse.Namespace) -> Wanted:
    from sns_gate import github

    if not github.is_name(options.name):
        raise UsageError(
            f"'{options.name}' is no name that a comment is found again by, so each run would add "
            f"another one; take up to 50 letters, digits, '.', '_' and '-'"
        )
    return github.Wanted(
        name=options.name,
        author=options.author,
        comment=not options.no_comment,
        check=not options.no_check,
        status=options.status,
    )


def _message(result: GateResult | None, target: Target) -> Message:
    from sns_gate.github import of_no_result, of_result

    return of_no_result(target) if result is None else of_result(result, target)


def _post(
    result: GateResult, target: Target, wanted: Wanted, client: Client, runner: Runner
) -> int:
    from sns_gate import github

    try:
        github.require_bound(result, target, client)
    except GateError:
        runner.tell(_message(result, target), result)
        raise
    target, problem = github.locate(target, client)
    accepted = github.find_accepted(result, target, wanted.name, client)
    result = accepted.result
    message = _message(result, target)
    runner.tell(message, result)
    posted = github.post(message, target, wanted, client)
    runner.end(result, posted, accepted.notes)
    failed = _failed((*problem, *posted.failures))
    if failed:
        return failed
    return _EXIT_OK if result.conclusion != "failure" else result.exit_code or _EXIT_FAIL


def _post_none(target: Target, wanted: Wanted, client: Client, runner: Runner) -> int:
    """Say that there is no result, which is never a pass."""
    from sns_gate import github

    target, problem = github.locate(target, client)
    message = _message(None, target)
    runner.tell(message, None)
    posted = github.post(message, target, wanted, client)
    return _failed((*problem, *posted.failures)) or _EXIT_REFUSED


def _failed(failures: tuple[PostError, ...]) -> int:
    """The exit code of what could not be posted, once it has been said; 0 where all was."""
    for failure in failures:
        sys.stderr.write(f"sns-gate: not posted: {failure}\n")
    if not failures:
        return 0
    return _EXIT_REFUSED if isinstance(failures[0], PostUnreachable) else _EXIT_USAGE
