"""Both sides' calls of a case taken apart by a profiler, after all timing and in other workers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict

from sns_gate import protocol
from sns_gate.session.blocks import Spot, Worker, place_both, receive_both
from sns_gate.types import CaseResult, Explanation, Profile, Reason, Side, Verdict

#: Operators are shown where they hold at least this share of both sides' calls.
_TELLING_SHARE = 0.5
#: Of what a worker sends, which the code under test may have made longer; ours sends no more.
_PARTS_KEPT = 60
_PASSING = (Verdict.FASTER, Verdict.UNCHANGED, Verdict.NOT_SLOWER)


def explain_case(
    workers: Callable[[Side], Sequence[Worker]], case: str, seed: int, timeout_s: float
) -> Explanation | None:
    """Place a case in one worker a side and profile a warm call; None where nothing was seen.

    Args:
        workers: the living workers of a side, which time nothing afterwards.
        case: its id.
        seed: of the check.
        timeout_s: for setting it up, and for the profile.

    Raises:
        WorkerError: a worker failed.
    """
    pair = workers("baseline")[0], workers("candidate")[0]
    place_both(pair, Spot(case, 0, 0, seed), None, timeout_s)
    baseline, candidate = (
        worker.ask(protocol.ProfileCall(), protocol.Profiled, timeout_s) for worker in pair
    )
    for worker in pair:
        worker.send(protocol.Release())
    receive_both(pair, protocol.Released, timeout_s)
    return _alike(baseline.profiles, candidate.profiles)


def _alike(
    baseline: Sequence[protocol.ProfileSeen], candidate: Sequence[protocol.ProfileSeen]
) -> Explanation | None:
    """The first way in which both calls could be taken apart, and that says where time goes."""
    theirs = {profile.source: profile for profile in candidate}
    both = [(one, theirs[one.source]) for one in baseline if one.source in theirs]
    telling = [pair for pair in both if all(map(_is_telling, pair))]
    for one, other in telling:
        return Explanation(baseline=_kept(one), candidate=_kept(other))
    return None


def _is_telling(profile: protocol.ProfileSeen) -> bool:
    inside = sum(part.us for part in profile.parts)
    if profile.source != "operators":
        return bool(profile.parts)
    return inside > 0 and inside >= _TELLING_SHARE * (inside + profile.outside_us)


def _kept(profile: protocol.ProfileSeen) -> Profile:
    return Profile.model_validate(
        {**asdict(profile), "parts": [asdict(part) for part in profile.parts[:_PARTS_KEPT]]}
    )


def with_explanation(case: CaseResult, found: Explanation | None) -> CaseResult:
    """A case with its explanation; refused where the candidate's kernels are not always the same.

    Work that is skipped in some calls makes a mean of times that no call has.
    """
    if found is None:
        return case
    explained = case.model_copy(update={"explanation": found})
    steady, varying = found.baseline.launches, found.candidate.launches
    if case.verdict not in _PASSING or len(set(steady)) > 1 or len(set(varying)) <= 1:
        return explained
    reason = Reason(
        code="launches-vary",
        text=f"the candidate launches {min(varying)} to {max(varying)} kernels a call, and the "
        f"baseline always {statistics.median_low(steady)}, so some calls skip work; do all of it "
        f"in every call",
    )
    reasons = (*case.reasons, reason)
    return explained.model_copy(
        update={"verdict": Verdict.REFUSED, "note": reason.code, "reasons": reasons}
    )
