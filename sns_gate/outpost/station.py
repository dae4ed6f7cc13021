"""One outpost with workers: what it is asked after it was lost breaks that case and no other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sns_gate import protocol, session
from sns_gate.errors import PlaceLost
from sns_gate.outpost.messages import (
    BlockDone,
    Close,
    Describe,
    Described,
    Done,
    Event,
    Measure,
    Measured,
    Open,
    Opened,
)
from sns_gate.outpost.near import Outpost
from sns_gate.rig import Infos
from sns_gate.session import CaseOutcome, PlannedCase, Progress
from sns_gate.types import EnvironmentFingerprint, Reason, Side


class RemoteStation:
    """An outpost with the workers of both sides; as ``Station``."""

    def __init__(self, outpost: Outpost) -> None:
        self._outpost = outpost
        self._opened: Opened | None = None

    def open(self, asked: Open) -> None:
        """Start the workers; where the place is lost by that, it is known afterwards."""
        with suppress(PlaceLost):
            self._opened = self._outpost.ask(asked, Opened)

    @property
    def name(self) -> str:
        """What the result calls it."""
        return f"{self._outpost.name}: {self._outpost.device}"

    @property
    def lost(self) -> bool:
        """Whether nothing can be measured there any more."""
        return self._outpost.lost

    @property
    def loaded(self) -> Mapping[Side, protocol.Loaded | None]:
        """What a worker of each side has loaded there.

        Raises:
            PlaceLost: none has.
        """
        return self._told.loaded

    @property
    def disclosures(self) -> Sequence[Reason]:
        """What a reader should know of how the workers started, or that the place is lost."""
        if self._outpost.loss is not None:
            return [_why(self._outpost.loss)]
        return self._told.disclosures

    @property
    def _told(self) -> Opened:
        if self._opened is None:
            raise self._outpost.loss or PlaceLost(f"{self.name} has no workers; check again")
        return self._opened

    def measure(
        self, case: PlannedCase, deadline_s: float, progress: Progress, cases: int
    ) -> CaseOutcome:
        """One case; broken where the place is lost by then or meanwhile."""
        start_s = time.monotonic()

        def hear(event: Event) -> None:
            if isinstance(event, BlockDone):
                progress.block_done(case.spec.id, event.standing)

        asked = Measure(case=case, seconds=max(0.0, deadline_s - start_s), cases=cases)
        try:
            outcome = self._outpost.ask(asked, Measured, hear).outcome
        except PlaceLost as error:
            return session.without_place(case, _why(error), time.monotonic() - start_s)
        return outcome if outcome.result.id == case.id else self._distrusted(case)

    def _distrusted(self, case: PlannedCase) -> CaseOutcome:
        self._outpost.leave()
        text = f"{self.name} measured another case than asked, so nothing of it counts; check again"
        return session.without_place(case, Reason(code="place-lost", text=text), 0.0)

    def describe(self, known: Infos) -> Infos:
        """What is known of both sides; no more than before where the place is lost."""
        try:
            told = self._outpost.ask(Describe(baseline=known[0], candidate=known[1]), Described)
        except PlaceLost:
            return known
        return told.baseline, told.candidate

    def fingerprint(self) -> EnvironmentFingerprint:
        """The candidate's toolchain on the device there."""
        return self._told.fingerprint

    def close(self) -> None:
        """Hang up; who waits for an answer is told."""
        self._outpost.leave()

    def end_workers(self) -> None:
        """End the workers and keep the place, unless an answer of it is still to come."""
        if not (self._outpost.lost or self._outpost.busy):
            with suppress(PlaceLost):
                self._outpost.ask(Close(), Done)


def _why(error: PlaceLost) -> Reason:
    return Reason(code="place-lost", text=error.text, detail=error.detail)
