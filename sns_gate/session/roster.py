"""Which cases to compare: what both sides define, what was added, removed or does not load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sns_gate.discovery import repeated_ids
from sns_gate.errors import UsageError
from sns_gate.protocol import CaseSpec, Loaded, LoadFailure
from sns_gate.types import CaseResult, Reason, Side, Verdict


@dataclass(frozen=True)
class PlannedCase:
    """A case that both sides can run.

    Attributes:
        spec: as the candidate's file defines it.
        tolerance: that governs it, by the policy's revision.
        notes: what a reader should know of its definition.
    """

    spec: CaseSpec
    tolerance: float
    notes: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Roster:
    """All expected cases: those to measure and those whose verdict is known already."""

    planned: tuple[PlannedCase, ...]
    decided: tuple[CaseResult, ...]


@dataclass(frozen=True)
class Policy:
    """What governs a case's tolerance.

    Attributes:
        tolerance: the configured one.
        from_baseline: whether the baseline's decorators govern.
    """

    tolerance: float
    from_baseline: bool


def agree(
    candidate: Loaded,
    baseline: Loaded,
    own: Loaded,
    policy: Policy,
    wanted: Callable[[str], bool],
) -> Roster:
    """Compare what the sides define.

    Args:
        candidate: the candidate's files on the candidate's code.
        baseline: the candidate's files on the baseline's code.
        own: the baseline's own files on the baseline's code.
        policy: what governs tolerances.
        wanted: whether a case's id was asked for.

    Raises:
        UsageError: two cases have one id.
    """
    _refuse_repeats(candidate.cases)
    runs_on_baseline = {case.id for case in baseline.cases}
    theirs = {case.id: case for case in own.cases}
    planned, decided = [], []
    for spec in candidate.cases:
        if not wanted(spec.id):
            continue
        if spec.id in runs_on_baseline:
            planned.append(_plan(spec, theirs.get(spec.id), policy))
        elif spec.id in theirs:
            decided.append(_broken(spec, ("baseline",), baseline.failures, policy))
        else:
            decided.append(_decided(spec, Verdict.ADDED, policy))
    known = {case.id for case in candidate.cases}
    failed = {Path(failure.file).name: failure for failure in candidate.failures}
    for spec in own.cases:
        if spec.id in known or not wanted(spec.id):
            continue
        if Path(spec.file).name in failed:
            decided.append(_broken(spec, ("candidate",), candidate.failures, policy))
        else:
            decided.append(_decided(spec, Verdict.REMOVED, policy))
    decided.extend(_unknown(candidate, baseline, own, policy))
    return Roster(tuple(planned), tuple(decided))


def _refuse_repeats(cases: Sequence[CaseSpec]) -> None:
    for id_ in repeated_ids(case.id for case in cases):
        places = [f"{case.file}:{case.line}" for case in cases if case.id == id_]
        raise UsageError(
            f"two cases have the id '{id_}', so their results could not be told apart: "
            f"{' and '.join(places)}; give one of them @benchmark(name=...)"
        )


def _plan(spec: CaseSpec, own: CaseSpec | None, policy: Policy) -> PlannedCase:
    asked = spec.tolerance if spec.tolerance is not None else policy.tolerance
    if not policy.from_baseline:
        return PlannedCase(spec, asked)
    governing = own.tolerance if own and own.tolerance is not None else policy.tolerance
    if governing == asked:
        return PlannedCase(spec, governing)
    note = Reason(
        code="policy-from-baseline",
        text=f"the candidate asks for a tolerance of {100 * asked:g}%, the baseline's "
        f"{100 * governing:g}% governs until this change is merged",
    )
    return PlannedCase(spec, governing, (note,))


def _decided(spec: CaseSpec, verdict: Verdict, policy: Policy) -> CaseResult:
    text = {
        Verdict.ADDED: "the baseline has no such case, so there is nothing to compare with",
        Verdict.REMOVED: "the baseline has this case and the candidate does not; accept that, or "
        "bring it back",
    }[verdict]
    return CaseResult(
        id=spec.id,
        file=spec.file,
        line=spec.line,
        verdict=verdict,
        reasons=(Reason(code=verdict.value, text=text),),
        tolerance=spec.tolerance or policy.tolerance,
    )


def _broken(
    spec: CaseSpec, sides: tuple[Side, ...], failures: Sequence[LoadFailure], policy: Policy
) -> CaseResult:
    mine = [f for f in failures if Path(f.file).name == Path(spec.file).name]
    return CaseResult(
        id=spec.id,
        file=spec.file,
        line=spec.line,
        verdict=Verdict.BROKEN,
        broken_sides=sides,
        reasons=tuple(_load_reason(failure, sides[0]) for failure in mine[-1:])
        or (Reason(code="not-defined", text=f"the {sides[0]} does not define it"),),
        tolerance=spec.tolerance or policy.tolerance,
    )


def _unknown(candidate: Loaded, baseline: Loaded, own: Loaded, policy: Policy) -> list[CaseResult]:
    """Files that do not load and whose cases nobody knows stand for themselves."""
    known = {Path(case.file).name for case in (*candidate.cases, *own.cases)}
    on_baseline = {Path(failure.file).name for failure in baseline.failures}
    results = []
    for failure in candidate.failures:
        name = Path(failure.file).name
        if name in known:
            continue
        sides: tuple[Side, ...] = (
            ("baseline", "candidate") if name in on_baseline else ("candidate",)
        )
        results.append(
            CaseResult(
                id=name,
                file=failure.file,
                verdict=Verdict.BROKEN,
                broken_sides=sides,
                reasons=(_load_reason(failure, "candidate"),),
                tolerance=policy.tolerance,
            )
        )
    return results


def _load_reason(failure: LoadFailure, side: Side) -> Reason:
    return Reason(
        code="not-loaded",
        text=f"{Path(failure.file).name} does not load on the {side}: {failure.error}; where it "
        f"needs something built, set 'build'",
        detail=failure.traceback,
    )
