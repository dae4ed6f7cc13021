"""Where the time inside a call went, from both sides' profiles; in words and as rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sns_gate.report.words import counted, duration
from sns_gate.types import Explanation, Profile, ProfiledPart, Verdict

_OUTSIDE = {
    "kernels": "between kernels",
    "operators": "outside of torch's operators",
    "functions": "outside of Python's functions",
}
_NOUNS = {"kernels": "kernel", "operators": "operator", "functions": "function"}
#: A first cause that holds this much of the change stands alone.
_MOST_OF_IT = 0.7
_LONGEST_NAME = 60
#: A template's stand behind a name; Python's <lambda> and <locals> stand for one.
_ARGUMENTS = re.compile(r"(?<=[\w)}> ])<[^<>]*>")
#: Torch's kernels that do whatever their template's argument says; its name tells them apart.
_GENERAL = re.compile(r"(?:elementwise|reduce)_kernel$")
_NATIVE = re.compile(r"at::native::(?:\w+::)*(\w+)")
_WRAPPERS = re.compile(r"\w*gpu_kernel\w*|[AB]?UnaryFunctor|BinaryFunctor|ReduceOp|func_wrapper_t")
#: Parts whose change is a smaller share of all changes are not worth a row.
_CONTRARY = 3
_WORTH_A_ROW = 0.01
#: A change below this share of the call is what two profiles of one call differ by.
_SAME_SHARE = 0.02


@dataclass(frozen=True)
class PartChange:
    """A part of a call on both sides; None where a side has no such part."""

    name: str
    baseline: ProfiledPart | None
    candidate: ProfiledPart | None

    @property
    def more_us(self) -> float:
        """How much more time the candidate spends in it, microseconds in a call."""
        return _us(self.candidate) - _us(self.baseline)

    @property
    def how(self) -> str:
        """What happened to it, in a word or a few."""
        if self.baseline is None:
            return "new"
        if self.candidate is None:
            return "gone"
        if self.baseline.calls != self.candidate.calls:
            before, after = _number(self.baseline.calls), _number(self.candidate.calls)
            return f"called {after} times instead of {before}"
        return "slower" if self.more_us > 0 else "faster"


def changes(found: Explanation) -> list[PartChange]:
    """Every part of both calls, the one whose time changed most first."""
    before = {part.name: part for part in found.baseline.parts}
    after = {part.name: part for part in found.candidate.parts}
    rows = [PartChange(name, before.get(name), after.get(name)) for name in before | after]
    outside = PartChange(
        _OUTSIDE[found.candidate.source],
        ProfiledPart(name="", calls=1, us=found.baseline.outside_us),
        ProfiledPart(name="", calls=1, us=found.candidate.outside_us),
    )
    if _us(outside.baseline) or _us(outside.candidate):
        rows.append(outside)
    return sorted(rows, key=lambda row: -abs(row.more_us))


def telling(rows: Sequence[PartChange], most: int) -> list[PartChange]:
    """The rows that are worth a reader's time."""
    whole = sum(abs(row.more_us) for row in rows)
    return [row for row in rows if abs(row.more_us) > _WORTH_A_ROW * whole][:most]


def sentence(found: Explanation, verdict: Verdict | None = None) -> str:
    """Where the difference is, as one sentence.

    Args:
        found: both calls, taken apart.
        verdict: of the timing, None where there was none; a profiler, which slows small calls down
            most, may see the opposite.
    """
    total_us = spent_us(found.candidate) - spent_us(found.baseline)
    if abs(total_us) <= _SAME_SHARE * max(spent_us(found.baseline), spent_us(found.candidate)):
        return "under a profiler both calls take the same time, so it shows no cause"
    rows = [row for row in changes(found) if row.more_us * total_us > 0]
    causes, held = [], 0.0
    for row in rows[:3]:
        causes.append(f"{short(row.name)} ({row.how})" if row.how else short(row.name))
        held += row.more_us
        if abs(held) >= _MOST_OF_IT * abs(total_us):
            break
    where = " and ".join(causes)
    if (verdict is Verdict.SLOWER and total_us < 0) or (verdict is Verdict.FASTER and total_us > 0):
        changed = [row for row in telling(changes(found), _CONTRARY) if row.how]
        parts = " and ".join(f"{short(row.name)} ({row.how})" for row in changed) or where
        contrary = "less" if total_us < 0 else "more"
        return (
            f"under a profiler, which slows small calls down most, it takes {contrary} time; what "
            f"changed: {parts}"
        )
    if found.candidate.source == "functions":  # which a profiler slows down many times over
        return f"the {'extra' if total_us > 0 else 'saved'} time is in {where}"
    extra = duration(abs(total_us) / 1e3)
    if total_us > 0:
        return f"the extra {extra} under the profiler are in {where}"
    return f"the {extra} less under the profiler are in {where}"


def launches(found: Explanation) -> str:
    """How many kernels both sides launch in a call; empty where there are none."""
    before, after = (_launched(side) for side in (found.baseline, found.candidate))
    if not (before and after):
        return ""
    return f"{after} a call, the baseline {before}" if before != after else f"{after} a call"


def _launched(profile: Profile) -> str:
    if not profile.launches:
        return ""
    least, most = min(profile.launches), max(profile.launches)
    return counted(most, "kernel") if least == most else f"{least} to {most} kernels"


def cells(row: PartChange) -> tuple[str, str, str, str]:
    """A row in text: baseline, candidate, difference, and what happened."""
    sign = "+" if row.more_us >= 0 else "-"
    return (
        _cell(row.baseline),
        _cell(row.candidate),
        f"{sign}{duration(abs(row.more_us) / 1e3) or '0'}",
        row.how,
    )


def noun(found: Explanation) -> str:
    """What the parts are."""
    return _NOUNS[found.candidate.source]


def short(name: str) -> str:
    """A kernel's name without its template's arguments and its own arguments, cut in the middle.

    Of torch's kernels for any operator the operator's name is kept.
    """
    whole = plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    while (inner := _ARGUMENTS.sub("", plain)) != plain:
        plain = inner
    plain = re.sub(r"\(.*\)$", "", plain) or name
    if _GENERAL.search(plain):
        inside = _NATIVE.findall(whole.removeprefix(plain))
        named = [found for found in inside if not _WRAPPERS.fullmatch(found)]
        plain = " of ".join((plain.rpartition("::")[2], named[0])) if named else plain
    if len(plain) <= _LONGEST_NAME:
        return plain
    half = _LONGEST_NAME // 2
    return f"{plain[:half]}…{plain[-half:]}"


def spent_us(profile: Profile) -> float:
    """All of a call under the profiler, microseconds."""
    return sum(part.us for part in profile.parts) + profile.outside_us


def _us(part: ProfiledPart | None) -> float:
    return part.us if part else 0.0


def _cell(part: ProfiledPart | None) -> str:
    if part is None:
        return ""
    times = "" if part.calls == 1 else f" in {_number(part.calls)} calls"
    return f"{duration(part.us / 1e3) or '0'}{times}"


def _number(calls: float) -> str:
    return f"{calls:.0f}" if calls == round(calls) else f"{calls:.1f}"
