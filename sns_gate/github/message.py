"""What is said of a result on GitHub: the texts and annotations of comment, check and status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sns_gate.github.event import Target
from sns_gate.plain import plain
from sns_gate.report import markdown, words
from sns_gate.types import CaseResult, Conclusion, GateResult, Verdict

Annotation = Mapping[str, object]
_LEVELS = {
    Verdict.SLOWER: "failure",
    Verdict.WRONG: "failure",
    Verdict.BROKEN: "failure",
    Verdict.REFUSED: "warning",
    Verdict.INCONCLUSIVE: "notice",
}
#: Before any check, so that the lack of a result takes no result's place, and any takes its.
_NEVER = "1970-01-01T00:00:00+00:00"
_NO_RESULT = (
    "### 🔴 There is no result, so this is no pass.\n\nThe job that measures left none: it ended "
    "before its check began, was cancelled, never ran, or what several left does not fit together. "
    "The log says which"
)


@dataclass(frozen=True)
class Message:
    """What is said.

    Attributes:
        title: of the check, one line.
        text: Markdown of comment and check.
        conclusion: of the check.
        begun_at: when what is told of began, ISO 8601 in UTC.
        complete: whether all cases were measured.
        annotations: at files and lines, in the order to show them.
    """

    title: str
    text: str
    conclusion: Conclusion
    begun_at: str
    complete: bool
    annotations: Sequence[Annotation] = ()


def of_result(result: GateResult, target: Target) -> Message:
    """What is said of a result, finished or not."""
    return Message(
        title=markdown.title(result),
        text=markdown.comment(result, run_url=target.run_url),
        conclusion=result.conclusion,
        begun_at=result.started_at,
        complete=result.complete,
        annotations=_annotations(result.cases),
    )


def of_no_result(target: Target) -> Message:
    """What is said where the measuring job left nothing; a required check must not wait for it."""
    link = f": [run]({target.run_url})." if target.run_url else "."
    return Message(
        title="no result",
        text=f"{_NO_RESULT}{link}",
        conclusion="failure",
        begun_at=_NEVER,
        complete=False,
    )


def _annotations(cases: Sequence[CaseResult]) -> list[Annotation]:
    """At the benchmark's own file and line, for each case that needs a look."""
    return [
        {
            "path": case.file,
            "start_line": case.line,
            "end_line": case.line,
            "annotation_level": _LEVELS[case.verdict],
            "title": plain(f"{case.id}: {words.verdict(case)}")[:255],
            "message": plain(annotation_text(case)),
        }
        for case in words.ordered(cases)
        if case.verdict in _LEVELS and case.file and case.line and not case.file.startswith("/")
    ]


def annotation_text(case: CaseResult) -> str:
    """What an annotation says: the numbers, or else the reasons."""
    if case.speedup is not None:
        times = f"{words.duration(case.baseline_ms)} to {words.duration(case.candidate_ms)}"
        return f"{times}, speedup {words.speedup(case)}"
    return "; ".join(reason.text for reason in case.reasons) or words.verdict(case)
