"""The check's result as it grows: saved after every case, so that no ending loses one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sns_gate.types import CaseResult, GateResult, Outcome, Reason, RevisionInfo
from sns_gate.verdict import ExitCode, conclusion, exit_code, outcome, words_of_policy


@dataclass
class Ledger:
    """Collects cases and saves the whole after each.

    Attributes:
        header: everything but the cases and what follows from them.
        save: called with the result after every change.
        order: ids in the order to show; what it does not name follows.
    """

    header: GateResult
    save: Callable[[GateResult], None]
    order: tuple[str, ...] = ()
    _cases: dict[str, CaseResult] = field(default_factory=dict)
    _started_s: float = field(default_factory=time.monotonic)

    def add(self, *cases: CaseResult) -> None:
        """Add or replace cases, and save."""
        self._cases.update({case.id: case for case in cases})
        self.save(self.result(complete=False))

    def disclose(self, reasons: Iterable[Reason]) -> None:
        """Add what a reader should know of the whole check, each thing once."""
        known = {(reason.code, reason.text) for reason in self.header.disclosures}
        new = [reason for reason in reasons if (reason.code, reason.text) not in known]
        self._update(disclosures=(*self.header.disclosures, *new))

    def expect(self, more: Sequence[str]) -> None:
        """Add ids to the order to show."""
        self.order = (*self.order, *more)

    def part_of(self, whole: str | None) -> None:
        """Say from which list of cases these are a part."""
        self._update(case_list=whole)

    def compared_with(self, further: Iterable[RevisionInfo]) -> None:
        """Name further baselines."""
        self._update(further_baselines=tuple(further))

    def describe(self, baseline: RevisionInfo, candidate: RevisionInfo) -> None:
        """Replace what is known of the two sides."""
        self._update(baseline=baseline, candidate=candidate)

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """All cases so far, in the order to show."""
        ranks = {id_: rank for rank, id_ in enumerate(self.order)}
        return tuple(sorted(self._cases.values(), key=lambda case: ranks.get(case.id, len(ranks))))

    def case(self, id_: str) -> CaseResult:
        """The case of this id as it stands."""
        return self._cases[id_]

    def close(self) -> GateResult:
        """Save and return the complete result."""
        code = exit_code(self.cases)
        if code is not ExitCode.OK and conclusion(code, self.header) == "success":
            self.disclose([Reason(code="policy-success", text=words_of_policy(code))])
        final = self.result(complete=True)
        self.save(final)
        return final

    def cut_short(self, code: ExitCode) -> None:
        """Save what there is of a check that ends before its last case."""
        partial = self.result(complete=False)
        self.save(partial.model_copy(update={"exit_code": int(code), "verdict": Outcome.REFUSED}))

    def result(self, *, complete: bool) -> GateResult:
        """The result with the cases so far; until it is complete it is no pass."""
        code = exit_code(self.cases)
        verdict = outcome(code)
        if not complete and code is ExitCode.OK:
            code, verdict = ExitCode.REFUSED, Outcome.REFUSED
        ends = conclusion(code, self.header) if complete else "failure"
        if ends == "success":
            code = ExitCode.OK
        return self.header.model_copy(
            update={
                "cases": self.cases,
                "exit_code": int(code),
                "conclusion": ends,
                "verdict": verdict,
                "complete": complete,
                "seconds": round(time.monotonic() - self._started_s, 3),
            }
        )

    def _update(self, **changes: object) -> None:
        self.header = self.header.model_copy(update=changes)
