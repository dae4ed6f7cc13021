"""What the runner itself shows: job summary, workflow annotations, step outputs; no API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from sns_gate.github.event import Target
from sns_gate.github.message import Message, annotation_text
from sns_gate.github.post import Posted
from sns_gate.plain import plain
from sns_gate.report import words
from sns_gate.types import CaseResult, GateResult, Verdict

#: GitHub shows so many of each kind a step.
_MOST_OF_A_KIND = 10
_KINDS = {
    Verdict.SLOWER: "error",
    Verdict.WRONG: "error",
    Verdict.BROKEN: "error",
    Verdict.REFUSED: "warning",
    Verdict.INCONCLUSIVE: "warning",
}


class Runner:
    """The job that this process runs in.

    Args:
        environment: with the files that the runner reads.
        log: that the runner scans for commands.
    """

    def __init__(self, environment: Mapping[str, str], log: TextIO) -> None:
        self._environment, self._log = environment, log

    def show(self, message: Message, target: Target) -> None:
        """Print what would be sent."""
        pull = f"#{target.pull}" if target.pull else "no pull request known"
        self._log.write(
            f"to {target.repository} at {target.sha[:9]}, {pull}\n"
            f"conclusion: {message.conclusion}\ntitle: {message.title}\n\n{message.text}\n"
        )

    def tell(self, message: Message, result: GateResult | None) -> None:
        """Write the job summary and annotate the log, where there is a result."""
        self._append("GITHUB_STEP_SUMMARY", f"{message.text}\n")
        shown: Counter[str] = Counter()
        for case in words.ordered(result.cases if result is not None else ()):
            kind = _KINDS.get(case.verdict)
            if kind is not None and shown[kind] < _MOST_OF_A_KIND:
                shown[kind] += 1
                self._log.write(_command(kind, case) + "\n")

    def end(self, result: GateResult, posted: Posted, notes: Sequence[str] = ()) -> None:
        """Set the step's outputs and say what was left alone, ``notes`` of acceptance first."""
        outputs = {
            "verdict": result.verdict.value,
            "exit-code": str(result.exit_code),
            "conclusion": result.conclusion,
            "comment-url": posted.comment_url,
            "check-url": posted.check_url,
            **self.counts(result),
        }
        lines = [f"{name}={_one_line(value)}" for name, value in outputs.items()]
        self._append("GITHUB_OUTPUT", "\n".join(lines) + "\n")
        for note in (*notes, *posted.notes):
            self._log.write(f"{plain(_one_line(note))}\n")

    @staticmethod
    def counts(result: GateResult) -> dict[str, str]:
        """How many cases have each verdict, by its name as an output."""
        found = Counter(case.verdict for case in result.cases)
        return {kind.value.replace(" ", "-"): str(found[kind]) for kind in Verdict}

    def _append(self, variable: str, text: str) -> None:
        path = self._environment.get(variable)
        if path:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)


def _command(kind: str, case: CaseResult) -> str:
    """A workflow command; its parameters and its message are escaped as the runner reads them."""
    place = f"file={_property(case.file)},line={case.line}," if case.file and case.line else ""
    title = _property(f"{case.id}: {words.verdict(case)}")
    return f"::{kind} {place}title={title}::{_message(annotation_text(case))}"


def _message(text: str) -> str:
    return plain(_one_line(text)).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _one_line(text: str) -> str:
    return " ".join(text.split())
