"""Reads result files, with suspicion, and describes them."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from sns_gate.errors import ResultFileError
from sns_gate.plain import plain
from sns_gate.report.writing import CASES_BEGIN, CASES_END
from sns_gate.types import CaseResult, Conclusion, GateResult, MeasurementTier, Outcome, Verdict
from sns_gate.verdict import ExitCode, conclusion, exit_code, judge, outcome

#: A check of 2,000 cases writes about 60 MB; with many processes and placements it is more.
MOST_BYTES = 1 << 30
#: Of what somebody else may have written.
MOST_HOSTILE_BYTES = 96 << 20
#: Verdicts that an interval alone decides.
_JUDGED = (Verdict.SLOWER, Verdict.FASTER, Verdict.UNCHANGED, Verdict.NOT_SLOWER)
#: Clocks of two machines differ, and not by more.
_CLOCKS_DIFFER_BY = timedelta(hours=1)


def read(path: Path, most_bytes: int = MOST_BYTES) -> GateResult:
    """Read a result file.

    Args:
        path: of it.
        most_bytes: of a file that is read at all.

    Raises:
        ResultFileError: it cannot be read, or is no result of this schema.
    """
    try:
        if path.stat().st_size > most_bytes:
            raise ResultFileError(
                f"{path} is larger than {most_bytes >> 20} MiB, so it is not read; name the file "
                f"that 'sns-gate check --json' wrote, or check fewer cases at a time"
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
    """A result in which everything that is concluded follows from what was measured.

    Raises:
        ResultFileError: it was edited, so it is not believed.
    """
    problem = _case_problem(result) or _whole_problem(result)
    if problem:
        raise ResultFileError(
            f"{problem}, so it is not believed; it was edited, or written by another version"
        )
    return result


def _case_problem(result: GateResult) -> str:
    """What is wrong with one of the cases, empty where nothing is."""
    ids = {case.id for case in result.cases}
    if len(ids) < len(result.cases):
        return "the result holds a case twice"
    for case in result.cases:
        if case.verdict not in _JUDGED:
            continue
        if case.tier not in (MeasurementTier.A, MeasurementTier.B):
            return f"the result calls a case {case.verdict.value} that has no tier for a verdict"
        if _judged(case) is not case.verdict:
            return f"the result calls a case {case.verdict.value} whose interval says otherwise"
    return ""


def _judged(case: CaseResult) -> Verdict | None:
    speedup = case.speedup
    return judge(speedup, case.tolerance, case.at_least).verdict if speedup else None


def _whole_problem(result: GateResult) -> str:
    """What does not follow from the cases, empty where everything does."""
    if result.accepted:
        return "the result names people who accept its cases, which is read from GitHub alone"
    if datetime.fromisoformat(result.started_at) > datetime.now(UTC) + _CLOCKS_DIFFER_BY:
        return f"the result was begun at {result.started_at}, which is yet to come"
    said = (result.exit_code, result.conclusion, result.verdict)
    if not result.complete:
        passes = Outcome.PASS is result.verdict or result.conclusion != "failure"
        known = result.exit_code in set(ExitCode) - {ExitCode.OK}
        return "" if known and not passes else f"an unfinished check cannot end as {_ended(said)}"
    asked = exit_code(result.cases)
    ends = conclusion(asked, result)
    due = (int(ExitCode.OK if ends == "success" else asked), ends, outcome(asked))
    return "" if said == due else f"the result says {_ended(said)} and its cases {_ended(due)}"


def _ended(said: tuple[int, Conclusion, Outcome]) -> str:
    code, ends, verdict = said
    return f"'{verdict.value}', exit code {code}, conclusion '{ends}'"


def schema() -> str:
    """The JSON schema of result files."""
    return json.dumps(GateResult.model_json_schema(), indent=2)


def _schema_of(text: str) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        return f"(schema {json.loads(text)['schema_version']!r:.20})"
    return "(no schema version)"
