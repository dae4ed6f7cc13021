"""The story of one check, from what is asked to a judged result; every effect is passed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from sns_gate import session
from sns_gate.config import read_file
from sns_gate.errors import NothingCompared, RefusedRun, Terminated, WorkerError
from sns_gate.revisions import Revision, scratch_folder
from sns_gate.rig import (
    CheckRequest,
    FunctionsRequest,
    FunctionsRig,
    FurtherBaseline,
    Rig,
    Start,
    Station,
    both_revisions,
    further_baselines,
    settle,
    spread,
    stations,
    taken_apart,
    unexplained,
)
from sns_gate.rig.heading import dirty, empty_submodules, header, info, several_bases
from sns_gate.rig.machine import short_file
from sns_gate.session import CaseOutcome, Deadlines, Ledger, PlannedCase, Roster
from sns_gate.types import (
    CaseResult,
    GateResult,
    Reason,
    RevisionInfo,
    Side,
    Verdict,
)
from sns_gate.verdict import ExitCode
from sns_gate.workers import nothing_left_in


class Progress(session.Progress, Protocol):
    """Hears how a check comes along."""

    def stage(self, text: str) -> None:
        """A stage that takes seconds begins."""

    def cases_known(self, count: int) -> None:
        """So many cases will be measured."""

    def case_started(self, case: str, *, confirming: bool) -> None:
        """A case's measurement begins, for the second time where it confirms."""

    def case_finished(self, result: CaseResult) -> None:
        """A case has its verdict, which a confirmation may still replace."""


#: Further processes a side in a confirmation: were workers to fall into two speeds, all of one side
#: drawing the slower one twice must be beyond chance.
MORE_TO_CONFIRM = 2

Save = Callable[[GateResult], None]


def check(request: CheckRequest, progress: Progress, save: Save) -> GateResult:
    """Time the candidate against a freshly timed baseline and judge every case.

    Args:
        request: what is asked.
        progress: hears of stages, blocks and cases.
        save: called with the whole result after every case.

    Raises:
        UsageError: what was asked cannot be done as asked.
        NothingCompared: there is nothing to compare.
        RefusedRun: this machine cannot give a verdict now.
        Terminated: a signal ended it; what was measured has been saved.
    """
    progress.stage("preparing both revisions")
    with (
        scratch_folder() as scratch,
        nothing_left_in(scratch),
        both_revisions(
            request.folder, request.baseline, request.candidate, scratch, request.outputs
        ) as sides,
    ):
        settings, notes = settle(request, sides)
        _refuse_identical(request, sides)
        rig = Rig(request, settings, sides, scratch)
        rig.build(progress.stage)
        both = info(sides["baseline"]), info(sides["candidate"])
        ledger = Ledger(header(settings, rig.devices.name, *both), save)
        ledger.disclose((*notes, *several_bases(sides["baseline"])))
        ledger.disclose((*dirty(sides["candidate"]), *empty_submodules(sides)))
        with further_baselines(request, settings, sides, scratch) as (further, same):
            for one in further:
                one.rig.build(progress.stage, ("baseline",))
            ledger.disclose(same)
            ledger.compared_with(one.info for one in further)
            return _judged(_Run(rig, ledger, progress, further))


def compare(request: FunctionsRequest, progress: Progress, save: Save) -> GateResult:
    """Time one set-up function's work against another's and judge every case; as ``check``.

    Both run the code as it lies in the request's folder, so no repository is needed.
    """
    with scratch_folder() as scratch, nothing_left_in(scratch):
        settings = request.layers.over(read_file(request.folder))
        rig = FunctionsRig(request, settings, scratch)
        names = RevisionInfo(ref=request.baseline), RevisionInfo(ref=request.candidate)
        ledger = Ledger(header(settings, rig.devices.name, *names), save)
        return _judged(_Run(rig, ledger, progress))


@dataclass(frozen=True)
class _Run:
    """A check under way: what it measures on, where results go, who hears of it."""

    rig: Rig | FunctionsRig
    ledger: Ledger
    progress: Progress
    further: Sequence[FurtherBaseline] = ()

    def stations(
        self, start: Start, name: str, processes: int
    ) -> AbstractContextManager[list[Station]]:
        """One a device, with new workers."""
        return stations(self.rig.settings, self.rig.devices.each, start, name, processes)

    def deadlines(self, cases: int) -> Deadlines:
        """The budget shared out to so many cases."""
        return Deadlines(self.rig.settings.budget, cases, len(self.rig.devices.each))

    def keep(self, station: Station, result: CaseResult, shown: CaseResult) -> None:
        """Save a case, and only then say so."""
        several = len(self.rig.devices.each) > 1
        where = {"device": station.device.name} if several else {}
        self.ledger.add(_located(result, self.rig).model_copy(update=where))
        self.progress.case_finished(shown)


@dataclass
class _Round:
    """Cases that the workers of one kind of pool can measure, and what they measured."""

    start: Start
    outcomes: list[tuple[PlannedCase, CaseOutcome]] = field(default_factory=list)

    @property
    def slower(self) -> list[tuple[PlannedCase, CaseOutcome]]:
        """What is about to be called slower."""
        return [(c, o) for c, o in self.outcomes if o.result.verdict is Verdict.SLOWER]


def _judged(run: _Run) -> GateResult:
    """Measure, confirm and close, or save what there is."""
    try:
        with run.rig.devices.to_themselves(run.progress.stage):
            rounds = _measure_all(run)
            _confirm_slower(run, rounds)
            _explain_changed(run, rounds)
    except (Terminated, KeyboardInterrupt) as error:
        run.ledger.cut_short(_ending(error))
        raise
    except (RefusedRun, WorkerError):
        run.ledger.cut_short(ExitCode.REFUSED)
        raise
    return run.ledger.close()


def _measure_all(run: _Run) -> list[_Round]:
    """Every case, on workers that stay alive for all cases of their kind."""
    rig, ledger, processes = run.rig, run.ledger, run.rig.settings.processes
    run.progress.stage(f"starting {_workers(run, processes)} workers")
    revisions, references = _Round(rig.pool), _Round(rig.reference_pool)
    with rig.baseline_cases() as own, run.stations(rig.pool, "first", processes) as there:
        roster = rig.roster(there[0].pool, own)
        ledger.order = roster.order
        for station in there:
            ledger.disclose(station.pool.disclosures)
        ledger.describe(*_described(run, there[0]))
        ledger.add(*(_located(case, rig) for case in roster.decided))
        run.progress.cases_known(len(roster.order))
        deadlines = run.deadlines(len(roster.order))
        _measure(run, revisions, roster.planned, there, deadlines, describing=True)
    governed = {case.spec.id: case for case in roster.planned}
    if roster.against_references:
        run.progress.stage(f"starting {_workers(run, processes)} workers for the references")
        with run.stations(rig.reference_pool, "first", processes) as there:
            _measure(run, references, roster.against_references, there, deadlines)
    return [revisions, references, *(_measure_against(run, one, governed) for one in run.further)]


def _workers(run: _Run, processes: int) -> int:
    return 2 * processes * len(run.rig.devices.each)


def _measure_against(
    run: _Run, further: FurtherBaseline, governed: Mapping[str, PlannedCase]
) -> _Round:
    """Every case that a further baseline has as well, held to what governs it anyway."""
    found, processes = _Round(further.rig.pool), run.rig.settings.processes
    run.progress.stage(f"starting {_workers(run, processes)} workers against {further.name}")
    with run.stations(further.rig.pool, "first", processes) as there:
        roster = further.rig.roster(there[0].pool, lambda: None)
        cases = [
            replace(governed[case.spec.id], against=further.name)
            for case in roster.planned
            if case.spec.id in governed
        ]
        run.ledger.expect([case.id for case in cases])
        run.ledger.disclose(_without_counterpart(further, roster))
        run.progress.cases_known(len(run.ledger.order))
        _measure(run, found, cases, there, run.deadlines(len(cases)))
    return found


def _measure(
    run: _Run,
    found: _Round,
    cases: Sequence[PlannedCase],
    there: Sequence[Station],
    deadlines: Deadlines,
    *,
    describing: bool = False,
) -> None:
    """Measure cases wherever a station is free, and keep each."""

    def do(station: Station, case: PlannedCase) -> CaseOutcome:
        run.progress.case_started(case.id, confirming=False)
        count = len(run.ledger.order)
        return station.machine.measure(case, station.pool, deadlines.next(), run.progress, count)

    def keep(station: Station, case: PlannedCase, outcome: CaseOutcome) -> None:
        run.keep(station, _provisional(outcome), outcome.result)
        found.outcomes.append((case, outcome))
        if describing:
            run.ledger.describe(*_described(run, station))

    spread(there, cases, do, keep)


def _without_counterpart(further: FurtherBaseline, roster: Roster) -> Iterator[Reason]:
    missing = [case.id for case in roster.decided if case.verdict is not Verdict.REMOVED]
    if missing:
        text = (
            f"{further.name} has no {', '.join(missing)}, so those are compared with no further one"
        )
        yield Reason(code="no-counterpart", text=text)


def _confirm_slower(run: _Run, rounds: Sequence[_Round]) -> None:
    """Cases about to be called slower once more, in new processes with fresh caches."""
    cases = sum(len(one.outcomes) for one in rounds)
    for one in rounds:
        if not one.slower:
            continue
        run.progress.stage(f"confirming {len(one.slower)} slower in new workers")
        try:
            _measure_again(run, one, cases)
        except (RefusedRun, WorkerError) as error:
            # What has no second measurement stands as unconfirmed already.
            text = f"a second measurement could not be made: {error}"
            run.ledger.disclose([Reason(code="unconfirmed", text=text)])


def _measure_again(run: _Run, one: _Round, cases: int) -> None:
    deadlines = run.deadlines(len(one.slower))
    processes = run.rig.settings.processes + MORE_TO_CONFIRM

    def do(station: Station, work: tuple[PlannedCase, CaseOutcome]) -> CaseOutcome:
        case, _ = work
        run.progress.case_started(case.id, confirming=True)
        return station.machine.measure(case, station.pool, deadlines.next(), run.progress, cases)

    def keep(station: Station, work: tuple[PlannedCase, CaseOutcome], second: CaseOutcome) -> None:
        result = session.confirmed(work[1], second, cases)
        run.keep(station, result, result)

    with run.stations(one.start, "second", processes) as there:
        spread(there, one.slower, do, keep)


def _explain_changed(run: _Run, rounds: Sequence[_Round]) -> None:
    """Where the time of changed cases went, by a profiler, in workers that time nothing."""
    for one in rounds:
        cases = [case for case, _ in one.outcomes if _is_to_explain(run, case)]
        if not cases:
            continue
        run.progress.stage("taking calls apart")
        try:
            for case, found in taken_apart(run.rig, one.start, cases):
                if isinstance(found, Reason):
                    run.ledger.disclose([found])
                else:
                    run.ledger.add(session.with_explanation(run.ledger.case(case.id), found))
        except (RefusedRun, WorkerError) as error:
            # What it does to a case's verdict is nothing: this is beside the measurement.
            run.ledger.disclose([unexplained("calls", error)])


def _is_to_explain(run: _Run, case: PlannedCase) -> bool:
    wanted, verdict = run.rig.settings.explain, run.ledger.case(case.id).verdict
    if wanted == "none":
        return False
    changed = verdict in (Verdict.SLOWER, Verdict.FASTER)
    return changed or (wanted == "all" and run.ledger.case(case.id).speedup is not None)


def _provisional(outcome: CaseOutcome) -> CaseResult:
    """A slower case stands as unconfirmed in the file until its second measurement."""
    slower = outcome.result.verdict is Verdict.SLOWER
    return session.unconfirmed(outcome) if slower else outcome.result


def _refuse_identical(request: CheckRequest, sides: Mapping[Side, Revision]) -> None:
    baseline, candidate = sides["baseline"], sides["candidate"]
    same = baseline.tree == candidate.tree and not candidate.runs_other_code
    if request.baseline is None and same:
        raise NothingCompared(
            f"the candidate's files are those of its baseline ({baseline.ref}, "
            f"{baseline.commit[:9]}), so there is nothing to compare; name another baseline, for "
            f"example --baseline HEAD~1"
        )


def _ending(error: BaseException) -> ExitCode:
    return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED


def _described(run: _Run, station: Station) -> tuple[RevisionInfo, RevisionInfo]:
    known, roots = run.ledger.header, run.rig.roots
    machine, pool = station.machine, station.pool

    def described() -> tuple[RevisionInfo, RevisionInfo]:
        pool.revive()
        return (
            machine.describe("baseline", known.baseline, roots["baseline"], pool),
            machine.describe("candidate", known.candidate, roots["candidate"], pool),
        )

    try:
        return described()
    except WorkerError:  # what the last case did to it showed late; a new one says the same
        return described()


def _located(case: CaseResult, rig: Rig | FunctionsRig) -> CaseResult:
    """Its file relative to the repository, the same for every machine that reads the result."""
    if case.file is None:
        return case
    file = case.file
    for root in rig.roots.values():
        file = short_file(file, root)
    return case.model_copy(update={"file": file})
