"""What a result says of its check besides its cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from sns_gate import __version__
from sns_gate.config import Settings
from sns_gate.revisions import Revision
from sns_gate.types import GateResult, Outcome, Reason, RevisionInfo, Side
from sns_gate.verdict import ExitCode


def header(
    settings: Settings, device: str, baseline: RevisionInfo, candidate: RevisionInfo
) -> GateResult:
    """A result without cases, from what is known before any is measured."""
    return GateResult(
        tool_version=__version__,
        verdict=Outcome.NOTHING_COMPARED,
        exit_code=ExitCode.NOTHING_COMPARED,
        complete=False,
        tolerance=settings.tolerance,
        baseline=baseline,
        candidate=candidate,
        on_refused=settings.on_refused,
        on_inconclusive=settings.on_inconclusive,
        device=device,
        shard=settings.shard,
        seed=settings.seed,
        processes=settings.processes,
        placements=settings.placements,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=0.0,
        cases=(),
    )


def dirty(candidate: Revision) -> Iterator[Reason]:
    """Says that no commit holds what is judged, where that is so."""
    if candidate.dirty:
        count = len(candidate.changed_files)
        changes = "1 uncommitted change" if count == 1 else f"{count} uncommitted changes"
        text = f"the candidate is a working tree with {changes}"
        yield Reason(code="dirty", text=text)


def several_bases(baseline: Revision) -> Iterator[Reason]:
    """Names the commits that were as good a baseline as the one taken."""
    if baseline.instead:
        taken, others = baseline.commit[:9], ", ".join(baseline.instead)
        yield Reason(
            code="several-merge-bases",
            text=f"the candidate has {1 + len(baseline.instead)} merge bases, as branches that "
            f"were merged into each other have; {taken} is taken and not {others}, so what came "
            f"with them counts as the candidate's; choose one with --baseline COMMIT",
        )


def empty_submodules(sides: Mapping[Side, Revision]) -> Iterator[Reason]:
    """Names submodules that nobody has filled."""
    for side, revision in sides.items():
        names = revision.empty_submodules
        if names:
            yield Reason(
                code="empty-submodules",
                text=f"the {side}'s submodules {', '.join(names)} are empty, as in every fresh "
                f"checkout, so what needs them does not load; fill them with --build 'git "
                f"submodule update --init --recursive'",
            )


def info(revision: Revision) -> RevisionInfo:
    """What a result says of a side before its workers have started."""
    return RevisionInfo(
        ref=revision.ref,
        commit=revision.commit,
        dirty=revision.dirty,
        changed_files=revision.changed_files,
    )


def touched(names: Sequence[str]) -> Iterator[Reason]:
    """Says that the code under test was changed meanwhile, which takes no verdict away.

    Else a change could keep itself from being called slower by writing to a file of its own.
    """
    if names:
        few = 3
        more = f" and {len(names) - few} more" if len(names) > few else ""
        text = (
            f"files of the candidate changed while it was measured ({', '.join(names[:few])}"
            f"{more}), so workers that started later may have run other code; check again and "
            f"leave them alone, or check a commit with --candidate"
        )
        yield Reason(code="changed-meanwhile", text=text)
