"""Results of one change from several machines or shards as one; it measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from sns_gate.errors import UsageError
from sns_gate.types import (
    CaseResult,
    EnvironmentFingerprint,
    GateResult,
    MachineInfo,
    Outcome,
    Reason,
)
from sns_gate.verdict import ExitCode, conclusion, exit_code, outcome, words_of_policy

#: Fields that tell two machines apart for a reader, the most telling first.
_TELLING = ("gpu_name", "cpu_model", "torch_version", "driver_version", "power_limit_w")


def merge(results: Sequence[GateResult]) -> GateResult:
    """All cases of several results; where machines differ, each case says on which it was measured.

    Args:
        results: of the same two revisions and tolerance.

    Returns:
        A result that is complete where all are, judged anew from all cases.

    Raises:
        UsageError: they compare other revisions, two hold one case of one kind of machine, or a
            shard is missing.
    """
    if not results:
        raise UsageError("there is no result to merge; name the files of one change's checks")
    _refuse_unlike(results)
    groups = _by_machine(results)
    names = _names([group[0] for group in groups])
    for name, group in zip(names, groups, strict=True):
        _refuse_repeats(name, group)
        _refuse_gaps(name, group)
    several = len(groups) > 1
    cases = tuple(
        _on(case, name) if several else case
        for name, group in zip(names, groups, strict=True)
        for result in group
        for case in result.cases
    )
    first = results[0]
    merged = first.model_copy(
        update={
            "cases": cases,
            "machines": tuple(map(_machine, names, groups)) if several else (),
            "shard": None,
            "case_list": None,
            "complete": all(result.complete for result in results),
            "seconds": max(result.seconds for result in results),
            "started_at": min(result.started_at for result in results),
            "disclosures": _disclosures(results),
        }
    )
    return _judged(merged)


def _judged(merged: GateResult) -> GateResult:
    code = exit_code(merged.cases)
    if not merged.complete and code is ExitCode.OK:
        code = ExitCode.REFUSED
    ends = conclusion(code, merged) if merged.complete else "failure"
    by_policy = ends == "success" and code is not ExitCode.OK
    note = Reason(code="policy-success", text=words_of_policy(code))
    return merged.model_copy(
        update={
            "disclosures": (*merged.disclosures, *([note] if by_policy else [])),
            "exit_code": int(ExitCode.OK if ends == "success" else code),
            "conclusion": ends,
            "verdict": Outcome.REFUSED if not merged.complete else outcome(code),
        }
    )


def _refuse_unlike(results: Sequence[GateResult]) -> None:
    for name in ("baseline", "candidate"):
        commits = {getattr(result, name).commit or getattr(result, name).ref for result in results}
        if len(commits) > 1:
            raise UsageError(
                f"the results have other {name}s ({', '.join(sorted(map(str, commits)))}), so "
                f"together they would say nothing; merge results of one change"
            )
    policies = {(result.on_refused, result.on_inconclusive) for result in results}
    if len(policies) > 1:
        raise UsageError(
            "the results have other policies for what is refused or inconclusive, so it is unclear "
            "what passes; check with one of them"
        )
    tolerances = {result.tolerance for result in results}
    if len(tolerances) > 1:
        raise UsageError(
            f"the results were judged by other tolerances ({', '.join(map(str, tolerances))}); "
            f"check with one of them"
        )


def _by_machine(results: Sequence[GateResult]) -> list[list[GateResult]]:
    """Results of equal fingerprints together, in the order in which they first come."""
    groups: list[list[GateResult]] = []
    for result in results:
        for group in groups:
            if _fingerprint(result).matches(_fingerprint(group[0])):
                group.append(result)
                break
        else:
            groups.append([result])
    return groups


def _fingerprint(result: GateResult) -> EnvironmentFingerprint:
    return result.candidate.fingerprint or EnvironmentFingerprint()


def _names(results: Sequence[GateResult]) -> list[str]:
    """A short name a machine: what tells it from the others, or its number where nothing does."""
    found = [_fingerprint(result) for result in results]
    telling = [field for field in _TELLING if len({getattr(one, field) for one in found}) > 1]
    if "gpu_name" not in telling and any(one.gpu_name for one in found):
        telling.insert(0, "gpu_name")
    names = []
    for number, one in enumerate(found, 1):
        parts = [_part(field, getattr(one, field)) for field in telling[:2]]
        name = ", ".join(filter(None, parts)) or f"machine {number}"
        names.append(name if name not in names else f"{name} ({number})")
    return names


def _part(field: str, value: object) -> str:
    if value is None:
        return ""
    kind = field.partition("_")[0]
    return str(value) if field in ("gpu_name", "cpu_model") else f"{kind} {value}"


def _on(case: CaseResult, name: str) -> CaseResult:
    return case.model_copy(update={"id": f"{case.id} on {name}", "machine": name})


def _machine(name: str, group: Sequence[GateResult]) -> MachineInfo:
    first = group[0]
    return MachineInfo(
        name=name,
        device=first.device,
        baseline=first.baseline.fingerprint,
        candidate=first.candidate.fingerprint,
    )


def _refuse_repeats(name: str, group: Sequence[GateResult]) -> None:
    seen: set[str] = set()
    for case in chain.from_iterable(result.cases for result in group):
        if case.id in seen:
            raise UsageError(
                f"two results of {name} hold the case '{case.id}', so it is unclear which one "
                f"counts; leave one of them out"
            )
        seen.add(case.id)


def _refuse_gaps(name: str, group: Sequence[GateResult]) -> None:
    shards = [result.shard for result in group if result.shard is not None]
    if not shards:
        return
    counts = {shard.partition("/")[2] for shard in shards}
    if len(counts) > 1 or len(shards) < len(group):
        raise UsageError(f"the results of {name} are shards of other divisions: {shards}")
    if len({result.case_list for result in group}) > 1:
        raise UsageError(
            f"the shards of {name} were cut out of unlike lists of cases, as where a file "
            f"does not load on one of the machines, so a case may be in none of them; measure all "
            f"shards with the same files"
        )
    count = int(counts.pop())
    numbers = [int(shard.partition("/")[0]) for shard in shards]
    if len(set(numbers)) < len(numbers) or not all(1 <= one <= count for one in numbers):
        raise UsageError(
            f"of {name} there are the shards {', '.join(shards)}, which no division makes; merge "
            f"each of its parts once"
        )
    missing = sorted(set(range(1, count + 1)) - set(numbers))
    if missing:
        raise UsageError(
            f"of {count} shards of {name} number {', '.join(map(str, missing))} is missing, so its "
            f"cases would pass unseen; merge all of them"
        )


def _disclosures(results: Sequence[GateResult]) -> tuple[Reason, ...]:
    found = {(r.code, r.text): r for result in results for r in result.disclosures}
    return tuple(reason for reason in found.values() if reason.code != "policy-success")
