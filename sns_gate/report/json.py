"""Reads result files, with suspicion, and describes them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from pydantic import ValidationError

from sns_gate.errors import ResultFileError
from sns_gate.report.words import plain
from sns_gate.report.writing import CASES_BEGIN, CASES_END
from sns_gate.types import CaseResult, GateResult, Verdict
from sns_gate.verdict import ExitCode, exit_code, judge

#: A check of 2,000 cases writes about 60 MB.
MOST_BYTES = 96 << 20
#: Verdicts that an interval alone decides.
_JUDGED = (Verdict.SLOWER, Verdict.FASTER, Verdict.UNCHANGED, Verdict.NOT_SLOWER)


def read(path: Path) -> GateResult:
    """Read a result file.

    Raises:
        ResultFileError: it cannot be read, or is no result of this schema.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ResultFileError(
                f"{path} is larger than {MOST_BYTES >> 20} MiB, which no check writes, so it is "
                f"not read; name the file that 'sns-gate check --json' wrote"
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ResultFileError(
            f"{path} cannot be read: {reason}; name the file that 'sns-gate check --json' wrote"
        ) from None
    try:
        return _consistent(GateResult.model_validate_json(_whole(text)))
    except ValidationError as error:
        first = error.errors()[0]
        where = plain(".".join(map(str, first["loc"])))[:80] or "the file"
        raise ResultFileError(
            f"{path} is no result of sns-gate {_schema_of(text)}: {where}: {first['msg']}; it was "
            f"cut off, edited, or written by another version"
        ) from None


def _whole(text: str) -> str:
    """A result whose end was cut off while it grew, up to its last whole case; any other as it is.

    A check that is killed may leave half a case behind those that it had finished; of a complete
    result nothing may be missing.
    """
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text)
        return text
    head, begin, rest = text.partition(CASES_BEGIN.decode())
    decoder, at = json.JSONDecoder(), 0
    with contextlib.suppress(ValueError, RecursionError):
        while True:
            _, end = decoder.raw_decode(rest, at + (at > 0))
            at = end
    grew = at and '"complete":false' in head
    return f"{head}{begin}{rest[:at]}{CASES_END.decode()}" if grew else text


def _consistent(result: GateResult) -> GateResult:
    """A result whose verdicts follow from its intervals, and whose exit code from its verdicts.

    Raises:
        ResultFileError: it was edited, so it is not believed.
    """
    for case in result.cases:
        if case.verdict in _JUDGED and _judged(case) is not case.verdict:
            raise ResultFileError(
                f"the result calls a case {case.verdict.value} whose interval says otherwise, so "
                f"it is not believed; it was edited, or written by another version"
            )
    asked = exit_code(result.cases)
    forgiven = any(reason.code == "policy-success" for reason in result.disclosures)
    fits = result.exit_code == asked or (forgiven and result.exit_code == ExitCode.OK)
    if result.complete and not fits:
        raise ResultFileError(
            f"the result says exit code {result.exit_code} and its cases ask for {int(asked)}, so "
            f"it is not believed; it was edited, or written by another version"
        )
    if result.accepted:
        raise ResultFileError(
            "the result names people who accept its cases, so it is not believed: that is read "
            "from GitHub alone; it was edited"
        )
    if result.exit_code not in set(ExitCode) or (not result.complete and not result.exit_code):
        raise ResultFileError(f"{result.exit_code} is no exit code of an unfinished check")
    return result


def _judged(case: CaseResult) -> Verdict | None:
    speedup = case.speedup
    return judge(speedup, case.tolerance, case.at_least).verdict if speedup else None


def schema() -> str:
    """The JSON schema of result files."""
    return json.dumps(GateResult.model_json_schema(), indent=2)


def _schema_of(text: str) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        return f"(schema {json.loads(text)['schema_version']!r:.20})"
    return "(no schema version)"
