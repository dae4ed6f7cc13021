"""What can be learnt without timing: which cases there are, and what their calls consist of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from sns_gate.config import Settings, read_file
from sns_gate.protocol import Loaded
from sns_gate.revisions import scratch_folder
from sns_gate.rig import CheckRequest, Here, Rig, Team, both_revisions, require_here, settle
from sns_gate.types import SIDES, Explanation, Reason
from sns_gate.workers import nothing_left_in


class Progress(Protocol):
    """Hears how it comes along."""

    def stage(self, text: str) -> None:
        """A stage that takes seconds begins."""


def list_cases(request: CheckRequest, progress: Progress) -> tuple[Loaded, Path, Settings]:
    """The candidate's cases as its benchmarks define them, on no device.

    Returns:
        What was loaded and what could not be, the folder that files are named relative to, and
        the settings that hold.

    Raises:
        UsageError, NothingCompared: as ``check``.
    """
    progress.stage("preparing the candidate")
    with (
        scratch_folder() as scratch,
        nothing_left_in(scratch),
        both_revisions(request.folder, "HEAD", request.candidate, scratch) as sides,
    ):
        settings = request.layers.over(read_file(sides["candidate"].root))
        rig = Rig(settings, sides, scratch, request.environment)
        rig.build(progress.stage, ("candidate",))
        return rig.candidate_cases(), rig.roots["candidate"], settings


def explain(
    request: CheckRequest, progress: Progress
) -> Iterator[tuple[str, Explanation | Reason | None]]:
    """Take both sides' calls of every wanted case apart, and time nothing.

    Yields:
        A case's id with its explanation, why it has none, or None where nothing was seen.

    Raises:
        UsageError, NothingCompared, RefusedRun: as ``check``.
    """
    progress.stage("preparing both revisions")
    with (
        scratch_folder() as scratch,
        nothing_left_in(scratch),
        both_revisions(request.folder, request.baseline, request.candidate, scratch) as sides,
    ):
        settings, _ = settle(request, sides)
        require_here(settings, "explain")
        rig = Rig(settings, sides, scratch, request.environment)
        places = Here(rig)
        places.prepare(progress.stage)
        with places.to_themselves(progress.stage):
            progress.stage("listing cases")
            with (
                places.own_cases(rig) as own,
                Team(rig).start("first", 1, rig.devices.first) as pool,
            ):
                roster = rig.roster({side: pool.workers(side)[0].loaded for side in SIDES}, own)
            for one in roster.decided:
                yield one.id, one.reasons[-1]
            teams = (
                (Team(rig), roster.planned),
                (Team(rig, references=True), roster.against_references),
            )
            for team, cases in teams:
                if cases:
                    progress.stage("taking calls apart")
                    for case, found in places.taken_apart(team, cases):
                        yield case.spec.id, found
