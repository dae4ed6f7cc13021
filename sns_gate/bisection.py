"""Finds the commit that made a case slower, or faster, by checks against the good end."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from sns_gate import gate
from sns_gate.config import Layers, Source
from sns_gate.errors import BuildError, NothingCompared, RefusedRun, UsageError
from sns_gate.revisions import Repository
from sns_gate.rig import CheckRequest
from sns_gate.types import Bisection, CaseResult, Fate, Found, GateResult, Speedup, Tried, Verdict

#: A commit that cannot be told from the middle is measured again with twice the processes.
_MOST_PROCESSES = 24
#: A tolerance is below 1; the threshold itself may lie further.
_WIDEST = 0.9
_REFUSALS = 3

#: Hears which commit is checked next, and how many may still be the one.
Tell = Callable[[str, int], None]


def remaining(commits: Sequence[str], tried: Sequence[Tried]) -> tuple[list[str], str | None]:
    """The commits that may be the first like bad, and the one to try next.

    Args:
        commits: after good up to bad, oldest first.
        tried: what is known of some.

    Returns:
        The candidates, and None where none of them is worth trying.
    """
    fates = {one.commit: one.fate for one in tried}
    bad = next((n for n, c in enumerate(commits) if fates.get(c) == "like bad"), len(commits) - 1)
    good = max((n for n, c in enumerate(commits[:bad]) if fates.get(c) == "like good"), default=-1)
    left = list(commits[good + 1 : bad + 1])
    untried = [n for n, commit in enumerate(left[:-1]) if commit not in fates]
    if not untried:
        return left, None
    middle = (len(left) - 1) / 2 - 0.5
    return left, left[min(untried, key=lambda n: (abs(n - middle), n))]


def bisect(
    request: CheckRequest,
    case: str,
    hearing: tuple[gate.Progress, Tell],
    keep: Callable[[Bisection], None],
    earlier: Bisection | None = None,
) -> Found:
    """Find the first commit between good and bad whose case is like bad's.

    Args:
        request: good as baseline, bad as candidate.
        case: the case's id, or a part that only one case has.
        hearing: hear of each check, and of each commit.
        keep: called with the bisection after every check.
        earlier: one to go on from, if it is of the same ends and case.

    Raises:
        UsageError: good is no ancestor of bad, or there is no such case.
        RefusedRun: bad does not differ from good, or this machine cannot say.
    """
    progress, tell = hearing
    repository = Repository(request.folder)
    good, bad = (repository.resolve(ref or "HEAD") for ref in (request.baseline, request.candidate))
    commits = repository.commits_between(good, bad)
    asked = _asked(request, case)
    state = earlier
    if state is None or (state.good, state.bad, state.asked) != (good, bad, asked):
        tell(bad, len(commits))
        state = _ends(request, good, bad, case, progress).model_copy(update={"asked": asked})
        keep(state)
    while True:
        left, commit = remaining(commits, state.tried)
        if commit is None:
            return Found(state=state, culprits=tuple(left))
        tell(commit, len(left))
        tried = _try(request, state, commit, progress)
        state = state.model_copy(update={"tried": (*state.tried, tried)})
        keep(state)


def _asked(request: CheckRequest, case: str) -> str:
    """What is measured and how, so that nothing is gone on from that was something else."""
    values = request.layers.command_line.values
    parts = [case, *(f"{name}={values[name]!r}" for name in sorted(values))]
    return hashlib.blake2b(
        "\n".join(parts).encode(errors="surrogatepass"), digest_size=16
    ).hexdigest()


def read_state(path: Path) -> Bisection | None:
    """A bisection that was kept; None where there is none.

    Raises:
        UsageError: the file is something else.
    """
    try:
        return Bisection.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"{path} is no bisection to go on from ({type(error).__name__}); remove it, or name "
            f"another file with --state FILE"
        ) from None


def _ends(
    request: CheckRequest, good: str, bad: str, case: str, progress: gate.Progress
) -> Bisection:
    """Compare both ends; the difference says how precisely the commits between are measured."""
    result = _check(request, good, bad, {"filter": (case,)}, progress)
    measured = _only(result.cases, case)
    if measured.reference is not None:
        raise UsageError(
            f"'{measured.id}' is compared with its reference at each commit and not with "
            f"{good[:9]}, so where it changed cannot be told by it; name the case itself, "
            f"'{measured.id.partition(' vs ')[0]}'"
        )
    if measured.verdict in (Verdict.REFUSED, Verdict.BROKEN, Verdict.WRONG):
        raise RefusedRun(
            "not-measured",
            f"'{measured.id}' is {measured.verdict.value} at {bad[:9]} beside {good[:9]}: "
            f"{_why(measured)}",
        )
    if measured.verdict not in (Verdict.SLOWER, Verdict.FASTER) or measured.speedup is None:
        raise RefusedRun(
            "no-difference",
            f"'{measured.id}' is {measured.verdict.value} at {bad[:9]} beside {good[:9]}, so there "
            f"is no commit to find; name ends between which it changed, or a smaller --tolerance",
        )
    return Bisection(
        good=good, bad=bad, case=measured.id, effect=math.log(measured.speedup.estimate)
    )


def _only(cases: Sequence[CaseResult], asked: str) -> CaseResult:
    exact = [case for case in cases if case.id == asked]
    if len(exact or cases) == 1:
        return (exact or cases)[0]
    names = ", ".join(case.id for case in cases)
    raise UsageError(
        f"'{asked}' is a part of several cases ({names}), and a bisection follows one; give its "
        f"whole id"
    )


def _try(request: CheckRequest, state: Bisection, commit: str, progress: gate.Progress) -> Tried:
    """Measure a commit against good until it can be told on which side of the middle it is."""
    tolerance = min(_WIDEST, math.expm1(abs(state.effect) / 2))
    processes, refusals = 0, 0
    while True:
        asked: dict[str, object] = {"filter": (state.case,), "tolerance": f"{tolerance:.6f}"}
        if processes:
            asked["processes"] = processes
        try:
            result = _check(request, state.good, commit, asked, progress)
        except (UsageError, NothingCompared) as error:  # of this commit: the ends had none
            return Tried(commit=commit, fate="skipped", why=str(error).splitlines()[0])
        case = next((one for one in result.cases if one.id == state.case), None)
        _require_good(case, state)
        if case is None or case.verdict in (Verdict.BROKEN, Verdict.WRONG, Verdict.REMOVED):
            return Tried(commit=commit, fate="skipped", why=_why(case))
        if case.speedup is None or case.verdict is Verdict.REFUSED:
            refusals += 1
            if refusals == _REFUSALS:
                raise RefusedRun("not-measured", f"{commit[:9]} was refused: {_why(case)}")
            continue
        fate = _fate(case.speedup, state)
        processes = 2 * (processes or result.processes)
        if fate is not None or processes > _MOST_PROCESSES:
            return Tried(
                commit=commit, fate=fate or _nearer(case.speedup, state), speedup=case.speedup
            )


def _require_good(case: CaseResult | None, state: Bisection) -> None:
    if case is not None and "baseline" in case.broken_sides:
        raise RefusedRun("good-broken", f"{state.good[:9]} could not be measured: {_why(case)}")


def _fate(speedup: Speedup, state: Bisection) -> Fate | None:
    """On which side of the middle the whole interval is; None where on neither."""
    if speedup.low <= state.threshold <= speedup.high:
        return None
    return _nearer(speedup, state)


def _nearer(speedup: Speedup, state: Bisection) -> Fate:
    slower = speedup.estimate < state.threshold
    return "like bad" if slower == (state.effect < 0) else "like good"


def _why(case: CaseResult | None) -> str:
    if case is None:
        return "it has no such case"
    if not case.reasons:
        return case.verdict.value
    # What takes the verdict away stands first, what broke the case last.
    return case.reasons[0 if case.verdict is Verdict.REFUSED else -1].text


def _check(
    request: CheckRequest, good: str, commit: str, asked: dict[str, object], progress: gate.Progress
) -> GateResult:
    line = request.layers.command_line
    values = {**line.values, **asked, "explain": "none", "also-against": ()}
    layers = Layers(request.layers.environment, Source(line.name, values))
    one = replace(request, baseline=good, candidate=commit, layers=layers)
    try:
        return gate.check(one, progress, _keep_nothing)
    except BuildError as error:
        if error.side == "baseline":  # no other commit would fare better
            raise RefusedRun("good-broken", str(error)) from None
        raise


def _keep_nothing(result: GateResult) -> None:
    del result
