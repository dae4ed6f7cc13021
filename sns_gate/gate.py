"""The story of one check, from what is asked to a judged result; every effect is passed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from sns_gate import session
from sns_gate.config import read_file
from sns_gate.errors import NothingCompared, RefusedRun, Terminated, WorkerError
from sns_gate.revisions import Revision, TrackedFiles, scratch_folder
from sns_gate.rig import (
    CheckRequest,
    FunctionsRequest,
    FunctionsRig,
    FurtherBaseline,
    Here,
    Places,
    Rig,
    Station,
    Team,
    both_revisions,
    further_baselines,
    require_here,
    settle,
    spread,
    unexplained,
)
from sns_gate.rig.heading import dirty, empty_submodules, header, info, several_bases, touched
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
        rig = Rig(settings, sides, scratch, request.environment, request.kept_builds)
        with (
            further_baselines(request, settings, sides, scratch) as (further, same),
            _places(
                request, [rig, *(one.rig for one in further)], scratch, progress.stage
            ) as places,
        ):
            places.prepare(progress.stage)
            both = info(sides["baseline"]), info(sides["candidate"])
            ledger = Ledger(header(settings, places.device, *both), save)
            ledger.disclose((*notes, *several_bases(sides["baseline"])))
            ledger.disclose((*dirty(sides["candidate"]), *empty_submodules(sides), *same))
            ledger.disclose(_identical(sides))
            ledger.compared_with(one.info for one in further)
            files = TrackedFiles(sides["candidate"], request.outputs)
            return _judged(_Run(rig, places, ledger, progress, files, further))


def compare(request: FunctionsRequest, progress: Progress, save: Save) -> GateResult:
    """Time one set-up function's work against another's and judge every case; as ``check``.

    Both run the code as it lies in the request's folder, so no repository is needed.
    """
    with scratch_folder() as scratch, nothing_left_in(scratch):
        settings = request.layers.over(read_file(request.folder))
        require_here(settings, "a comparison of functions")
        rig = FunctionsRig(request, settings, scratch)
        places = Here(rig)
        names = RevisionInfo(ref=request.baseline), RevisionInfo(ref=request.candidate)
        ledger = Ledger(header(settings, places.device, *names), save)
        return _judged(_Run(rig, places, ledger, progress, TrackedFiles()))


@contextmanager
def _places(
    request: CheckRequest, rigs: Sequence[Rig], scratch: Path, stage: Callable[[str], None]
) -> Iterator[Places]:
    """This machine, or wherever the launchers lead."""
    if not rigs[0].settings.launcher:
        yield Here(rigs[0], rigs[1:])
        return
    from sns_gate.outpost import outposts  # costs time that checks here need not pay

    with outposts(rigs, scratch, request.environment, stage) as there:
        yield there


@dataclass(frozen=True)
class _Run:
    """A check under way: what it measures on, where results go, who hears of it."""

    rig: Rig | FunctionsRig
    places: Places
    ledger: Ledger
    progress: Progress
    files: TrackedFiles
    further: Sequence[FurtherBaseline] = ()

    @contextmanager
    def stations(self, team: Team, name: str, processes: int) -> Iterator[Sequence[Station]]:
        """With new workers everywhere, and what a reader should know of how they started."""
        with self.places.stations(team, name, processes) as there:
            for station in there:
                self.ledger.disclose(station.disclosures)
            yield there
            for station in there:  # a place may have been lost between two cases
                self.ledger.disclose(station.disclosures)

    @property
    def shards(self) -> int:
        """Checks like this one that share the cases: together they must not cry wolf either."""
        return self.rig.settings.part[1]

    def deadlines(self, cases: int) -> Deadlines:
        """The budget shared out to so many cases."""
        return Deadlines(self.rig.settings.budget, cases, self.places.count)

    def keep(self, station: Station, result: CaseResult, shown: CaseResult) -> None:
        """Save a case, and only then say so."""
        where = {"device": station.name} if self.places.is_named else {}
        self.ledger.add(_located(result, self.rig).model_copy(update=where))
        self.progress.case_finished(shown)

    def describe(self, station: Station) -> None:
        """Say what both sides run on, and which of their files were seen loaded."""
        known = self.ledger.header
        self.ledger.describe(*station.describe((known.baseline, known.candidate)))


@dataclass
class _Round:
    """Cases that one kind of workers can measure, and what they measured."""

    team: Team
    outcomes: list[tuple[PlannedCase, CaseOutcome]] = field(default_factory=list)

    @property
    def slower(self) -> list[tuple[PlannedCase, CaseOutcome]]:
        """What is about to be called slower."""
        return [(c, o) for c, o in self.outcomes if o.result.verdict is Verdict.SLOWER]


def _judged(run: _Run) -> GateResult:
    """Measure, confirm and close, or save what there is."""
    try:
        with run.places.to_themselves(run.progress.stage):
            rounds = _measure_all(run)
            _confirm_slower(run, rounds)
            run.ledger.disclose(touched(run.files.touched()))
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
    revisions, references = _Round(Team(rig)), _Round(Team(rig, references=True))
    with (
        run.places.own_cases(rig) as own,
        run.stations(revisions.team, "first", processes) as there,
    ):
        roster = rig.roster(there[0].loaded, own)
        ledger.order = roster.order
        ledger.part_of(roster.whole)
        run.describe(there[0])
        ledger.add(*(_located(case, rig) for case in roster.decided))
        run.progress.cases_known(len(roster.order))
        deadlines = run.deadlines(len(roster.order))
        _measure(run, revisions, roster.planned, there, deadlines, describing=True)
    governed = {case.spec.id: case for case in roster.planned}
    if roster.against_references:
        run.progress.stage(f"starting {_workers(run, processes)} workers for the references")
        with run.stations(references.team, "first", processes) as there:
            _measure(run, references, roster.against_references, there, deadlines)
    return [revisions, references, *(_measure_against(run, one, governed) for one in run.further)]


def _workers(run: _Run, processes: int) -> int:
    return 2 * processes * run.places.count


def _measure_against(
    run: _Run, further: FurtherBaseline, governed: Mapping[str, PlannedCase]
) -> _Round:
    """Every case that a further baseline has as well, held to what governs it anyway."""
    found, processes = _Round(Team(further.rig)), run.rig.settings.processes
    run.progress.stage(f"starting {_workers(run, processes)} workers against {further.name}")
    with run.stations(found.team, "first", processes) as there:
        roster = further.rig.roster(there[0].loaded, lambda: None)
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
        count = len(run.ledger.order) * run.shards
        return station.measure(case, deadlines.next(), run.progress, count)

    def keep(station: Station, case: PlannedCase, outcome: CaseOutcome) -> None:
        run.keep(station, _provisional(outcome), outcome.result)
        found.outcomes.append((case, outcome))
        if describing:
            run.describe(station)

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
    cases = sum(len(one.outcomes) for one in rounds) * run.shards
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
        return station.measure(replace(case, again=True), deadlines.next(), run.progress, cases)

    def keep(station: Station, work: tuple[PlannedCase, CaseOutcome], second: CaseOutcome) -> None:
        result = session.confirmed(work[1], second, cases)
        run.keep(station, result, result)

    with run.stations(one.team, "second", processes) as there:
        spread(there, one.slower, do, keep)


def _explain_changed(run: _Run, rounds: Sequence[_Round]) -> None:
    """Where the time of changed cases went, by a profiler, in workers that time nothing."""
    for one in rounds:
        cases = [case for case, _ in one.outcomes if _is_to_explain(run, case)]
        if not cases:
            continue
        run.progress.stage("taking calls apart")
        try:
            for case, found in run.places.taken_apart(one.team, cases):
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
    baseline = sides["baseline"]
    if request.baseline is None and _are_identical(sides):
        raise NothingCompared(
            f"the candidate's files are those of its baseline ({baseline.ref}, "
            f"{baseline.commit[:9]}), so there is nothing to compare; name another baseline, for "
            f"example --baseline HEAD~1"
        )


def _identical(sides: Mapping[Side, Revision]) -> Iterator[Reason]:
    if _are_identical(sides):
        text = "both sides have the same files, so this shows the noise of this machine alone"
        yield Reason(code="same-files", text=text)


def _are_identical(sides: Mapping[Side, Revision]) -> bool:
    baseline, candidate = sides["baseline"], sides["candidate"]
    return baseline.tree == candidate.tree and not candidate.runs_other_code


def _ending(error: BaseException) -> ExitCode:
    return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED


def _located(case: CaseResult, rig: Rig | FunctionsRig) -> CaseResult:
    """Its file relative to the repository, the same for every machine that reads the result."""
    if case.file is None:
        return case
    file = case.file
    for root in rig.roots.values():
        file = short_file(file, root)
    return case.model_copy(update={"file": file})
