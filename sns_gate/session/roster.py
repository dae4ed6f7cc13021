"""Which cases to compare: what both sides define, what was added, removed or does not load."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sns_gate.discovery import repeated_ids
from sns_gate.errors import UsageError
from sns_gate.protocol import CaseSpec, Loaded, LoadFailure
from sns_gate.session.blocks import stable_seed
from sns_gate.types import CHECKED, SIDES, CaseResult, OutputCheck, Reason, Side, Verdict


@dataclass(frozen=True)
class PlannedCase:
    """A case that both sides can run.

    Attributes:
        spec: as the candidate's file defines it.
        tolerance: that governs it, by the policy's revision.
        notes: what a reader should know of its definition.
        known: the baseline's own files define it too, so that it is not new.
        at_least: speedup over the reference that is asked for, None where the tolerance says it.
        proven: sides that must be seen to have loaded code of their revision.
        outputs: whether and how both sides' outputs are compared.
        memory_tolerance: largest increase in peak memory to let pass, None for any.
        against: name of a further baseline that this compares with, empty for the check's own.
        again: it is measured a second time, on other data at other addresses.
    """

    spec: CaseSpec
    tolerance: float
    notes: tuple[Reason, ...] = ()
    known: bool = True
    at_least: float | None = None
    proven: tuple[Side, ...] = SIDES
    outputs: OutputCheck = CHECKED
    memory_tolerance: float | None = None
    against: str = ""
    again: bool = False

    def seed(self, of_check: int) -> int:
        """The seed of its data and addresses; what they do to a time must not come back by it."""
        return stable_seed(of_check, "again") if self.again else of_check

    @property
    def id(self) -> str:
        """Its id in the result; workers know it by its specification's."""
        return f"{self.spec.id} against {self.against}" if self.against else self.spec.id


@dataclass(frozen=True)
class Roster:
    """All expected cases.

    Attributes:
        planned: to measure with the workers that listed them.
        decided: whose verdict is known already.
        against_references: to measure with workers that run references on the candidate's code.
        whole: digest of all cases' ids, where this is a part of them.
    """

    planned: tuple[PlannedCase, ...]
    decided: tuple[CaseResult, ...]
    against_references: tuple[PlannedCase, ...] = ()
    whole: str | None = None

    def part(self, number: int, count: int) -> Roster:
        """Every so-many-th case, such that all parts together hold each case once."""
        ids = [*self.order, *(case.id for case in self.decided)]
        mine = set(ids[number - 1 :: count])
        return Roster(
            tuple(case for case in self.planned if case.id in mine),
            tuple(case for case in self.decided if case.id in mine),
            tuple(case for case in self.against_references if case.id in mine),
            hashlib.blake2b(
                "\n".join(ids).encode(errors="surrogatepass"), digest_size=16
            ).hexdigest(),
        )

    @property
    def order(self) -> tuple[str, ...]:
        """Ids of the cases to measure, in their order."""
        return tuple(case.id for case in (*self.planned, *self.against_references))


@dataclass(frozen=True)
class Policy:
    """What governs a case's tolerances.

    Attributes:
        tolerance: the configured one.
        from_baseline: whether the baseline's decorators govern.
        memory_tolerance: the configured one, None where peak memory is only shown.
    """

    tolerance: float
    from_baseline: bool
    memory_tolerance: float | None = None

    def governs(self, spec: CaseSpec, own: CaseSpec | None) -> PlannedCase:
        """A case with the tolerance and ``at_least`` that hold, and where the sides differ.

        Args:
            spec: as the candidate defines it.
            own: as the baseline's own files do, None where they do not.
        """
        asked = spec.tolerance if spec.tolerance is not None else self.tolerance
        memory = self._memory(spec)
        if not self.from_baseline:
            return PlannedCase(
                spec,
                asked,
                known=own is not None,
                at_least=spec.at_least,
                outputs=outputs_asked(spec),
                memory_tolerance=memory,
            )
        tolerance = own.tolerance if own and own.tolerance is not None else self.tolerance
        at_least = own.at_least if own else None
        notes = []
        if tolerance != asked:
            notes.append(_governed(f"a tolerance of {100 * asked:g}%", f"{100 * tolerance:g}%"))
        if at_least != spec.at_least:
            wanted = "none" if spec.at_least is None else f"{spec.at_least:g}"
            holds = "none" if at_least is None else f"{at_least:g}"
            notes.append(_governed(f"at_least {wanted}", holds))
        outputs = _governing(own, spec)
        if outputs != outputs_asked(spec):
            notes.append(_governed(_says(outputs_asked(spec)), _says(outputs)))
        held = self._memory(own)
        if held != memory:
            notes.append(_governed(f"a memory tolerance of {_share(memory)}", _share(held)))
        return PlannedCase(
            spec,
            tolerance,
            tuple(notes),
            own is not None,
            at_least,
            outputs=outputs,
            memory_tolerance=held,
        )

    def _memory(self, spec: CaseSpec | None) -> float | None:
        own = spec.memory_tolerance if spec is not None else None
        return self.memory_tolerance if own is None else own


def _governing(own: CaseSpec | None, spec: CaseSpec) -> OutputCheck:
    """How the baseline wants outputs compared; its comparator runs as the candidate has it.

    So one that the candidate changes has no say before that is merged.
    """
    outputs = outputs_asked(own) if own else CHECKED
    if outputs.own and outputs.own != spec.own_check:
        return OutputCheck(poison=outputs.poison)
    return outputs


def outputs_asked(spec: CaseSpec) -> OutputCheck:
    """Whether and how a benchmark wants both sides' outputs compared."""
    return OutputCheck(
        wanted=spec.check,
        rtol=spec.rtol,
        atol=spec.atol,
        own=spec.own_check,
        poison=spec.poison,
    )


def _says(check: OutputCheck) -> str:
    """A check of outputs in words."""
    if not check.wanted:
        return "no check of outputs"
    if check.own:
        return "a comparator of its own"
    given = (("rtol", check.rtol), ("atol", check.atol))
    parts = [f"{name} {value:g}" for name, value in given if value is not None]
    return f"a check of outputs with {' and '.join(parts) or 'each type' + chr(39) + 's tolerance'}"


def _share(tolerance: float | None) -> str:
    return "any size" if tolerance is None else f"{100 * tolerance:g}%"


def _governed(asked: str, holds: str) -> Reason:
    text = f"the candidate asks for {asked}, the baseline's {holds} governs until this is merged"
    return Reason(code="policy-from-baseline", text=text)


def agree(
    candidate: Loaded,
    baseline: Loaded,
    own: Loaded,
    policy: Policy,
    wanted: Callable[[str], bool],
    folders: Sequence[Path],
) -> Roster:
    """Compare what the sides define.

    Args:
        candidate: the candidate's files on the candidate's code.
        baseline: the candidate's files on the baseline's code.
        own: the baseline's own files on the baseline's code.
        policy: what governs tolerances.
        wanted: whether a case's id was asked for.
        folders: of the benchmarks, so that one file of both sides is known as one.

    Raises:
        UsageError: two cases have one id.
    """
    _refuse_repeats(candidate.cases)
    names = _Names(folders)
    on_baseline = {case.id: case for case in baseline.cases}
    theirs = {case.id: case for case in own.cases}
    fell_back = {names.of(file) for file in baseline.fell_back}
    failed_own = {names.of(failure.file) for failure in own.failures}
    asked = [spec for spec in candidate.cases if wanted(spec.id)]
    references = [
        _against_reference(spec, theirs.get(spec.id), policy) for spec in asked if spec.reference
    ]
    planned: list[PlannedCase] = []
    decided: list[CaseResult] = []
    for spec in asked:
        if spec.reference:
            continue
        there, name = on_baseline.get(spec.id), names.of(spec.source)
        if there is not None:
            case = policy.governs(spec, theirs.get(spec.id))
            if name in fell_back and (not there.digest or there.digest != spec.digest):
                decided.append(_other_body(case))
            else:
                planned.append(case)
        elif spec.id in theirs or name in failed_own:
            failures = [f for f in (*baseline.failures, *own.failures) if names.of(f.file) == name]
            decided.append(_broken(spec, "baseline", failures, policy))
        else:
            decided.append(_decided(spec, Verdict.ADDED, policy))
    decided += _gone(candidate, own, policy, wanted, names)
    decided += _unknown(candidate, baseline, own, policy, names)
    return Roster(tuple(planned), tuple(decided), tuple(references))


class _Names:
    """A benchmark file's name relative to its folder, the same on both sides."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def of(self, file: str) -> str:
        path = Path(file)
        for folder in self._folders:
            if path.is_relative_to(folder):
                return str(path.relative_to(folder))
        return file


def _refuse_repeats(cases: Sequence[CaseSpec]) -> None:
    for id_ in repeated_ids(case.id for case in cases):
        places = [f"{case.file}:{case.line}" for case in cases if case.id == id_]
        raise UsageError(
            f"two cases have the id '{id_}', so their results could not be told apart: "
            f"{' and '.join(places)}; give one of them @benchmark(name=...)"
        )


def _against_reference(spec: CaseSpec, own: CaseSpec | None, policy: Policy) -> PlannedCase:
    """A case of two callables of one revision; the baseline's code has no part in it."""
    case = policy.governs(spec, own)
    notes = case.notes
    if policy.from_baseline and own is not None and own.digest != spec.digest:
        text = f"the candidate changes this benchmark or {spec.reference}, which it is judged by"
        notes = (*notes, Reason(code="reference-changed", text=text))
    return replace(case, notes=notes, known=True, proven=("candidate",))


def _gone(
    candidate: Loaded, own: Loaded, policy: Policy, wanted: Callable[[str], bool], names: _Names
) -> list[CaseResult]:
    """Cases of the baseline that the candidate does not define, or cannot load."""
    here = {case.id for case in candidate.cases}
    results = []
    for spec in own.cases:
        if spec.id in here or not wanted(spec.id):
            continue
        name = names.of(spec.source)
        failures = [f for f in candidate.failures if names.of(f.file) == name]
        if failures:
            results.append(_broken(spec, "candidate", failures, policy))
        else:
            results.append(_decided(spec, Verdict.REMOVED, policy))
    return results


def _unknown(
    candidate: Loaded, baseline: Loaded, own: Loaded, policy: Policy, names: _Names
) -> list[CaseResult]:
    """Files that do not load and whose cases nobody knows stand for themselves."""
    known = {names.of(case.source) for case in (*candidate.cases, *own.cases)}
    on_baseline = {names.of(failure.file) for failure in baseline.failures}
    results = []
    for failure in candidate.failures:
        name = names.of(failure.file)
        if name in known:
            continue
        results.append(
            CaseResult(
                id=name,
                file=failure.file,
                verdict=Verdict.BROKEN,
                broken_sides=SIDES if name in on_baseline else ("candidate",),
                reasons=(_load_reason(failure, "candidate"),),
                tolerance=policy.tolerance,
            )
        )
    return results


def _decided(spec: CaseSpec, verdict: Verdict, policy: Policy) -> CaseResult:
    text = {
        Verdict.ADDED: "the baseline has no such case, so there is nothing to compare with",
        Verdict.REMOVED: "the baseline has this case and the candidate does not; bring it back, or "
        "name a baseline without it",
    }[verdict]
    return CaseResult(
        id=spec.id,
        file=spec.file,
        line=spec.line,
        verdict=verdict,
        reasons=(Reason(code=verdict.value, text=text),),
        tolerance=spec.tolerance or policy.tolerance,
    )


def _other_body(case: PlannedCase) -> CaseResult:
    reason = Reason(
        code="different-benchmarks",
        text="the candidate's benchmark does not load on the baseline, whose own one has another "
        "body, so unlike work would be compared; change code and benchmark in two steps",
    )
    return CaseResult(
        id=case.id,
        file=case.spec.file,
        line=case.spec.line,
        verdict=Verdict.REFUSED,
        note=reason.code,
        reasons=(*case.notes, reason),
        tolerance=case.tolerance,
    )


def _broken(
    spec: CaseSpec, side: Side, failures: Sequence[LoadFailure], policy: Policy
) -> CaseResult:
    reasons = tuple(_load_reason(failure, side) for failure in failures[-1:])
    return CaseResult(
        id=spec.id,
        file=spec.file,
        line=spec.line,
        verdict=Verdict.BROKEN,
        broken_sides=(side,),
        reasons=reasons or (Reason(code="not-defined", text=f"the {side} does not define it"),),
        tolerance=spec.tolerance or policy.tolerance,
    )


def _load_reason(failure: LoadFailure, side: Side) -> Reason:
    return Reason(
        code="not-loaded",
        text=f"{Path(failure.file).name} does not load on the {side}: {failure.error}; where it "
        f"needs something built, set 'build'; where this Python lacks a module, name another one "
        f"with --python FILE",
        detail=failure.traceback,
    )
