"""Further baselines beside a check's own, so that slow creep does not pass one change at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sns_gate.accounts import remove_marked
from sns_gate.config import Settings
from sns_gate.revisions import Repository, Revision, check_out
from sns_gate.rig.mount import CheckRequest, Rig
from sns_gate.types import Reason, RevisionInfo, Side

_PATTERN_SIGNS = frozenset("*?[")


@dataclass(frozen=True)
class FurtherBaseline:
    """A further baseline, ready to be measured against.

    Attributes:
        name: as cases and readers are told it, a tag's own name where a pattern was asked for.
        rig: of it and the candidate.
    """

    name: str
    rig: Rig

    @property
    def info(self) -> RevisionInfo:
        """What it is."""
        revision = self.rig.sides["baseline"]
        return RevisionInfo(ref=self.name, commit=revision.commit)


@contextmanager
def further_baselines(
    request: CheckRequest, settings: Settings, sides: Mapping[Side, Revision], scratch: Path
) -> Iterator[tuple[list[FurtherBaseline], list[Reason]]]:
    """Check out what ``also-against`` names, beside the sides of the check.

    Yields:
        Those that differ from the check's own baseline, and a word on each that does not.

    Raises:
        RevisionError: a reference names no commit, or a pattern no tag.
    """
    repository = Repository(request.folder)
    own = sides["baseline"].commit
    with ExitStack() as stack:
        found: list[FurtherBaseline] = []
        notes: list[Reason] = []
        for number, asked in enumerate(settings.also_against):
            name = repository.last_tag(asked, own) if _PATTERN_SIGNS & set(asked) else asked
            commit = repository.resolve(name)
            if commit == own:
                text = f"{name} is the baseline itself, so it is no further one"
                notes.append(Reason(code="same-baseline", text=text))
                continue
            folder = scratch / f"further-{number}"
            checked_out = check_out(repository, "baseline", name, commit, folder)
            pair = {**sides, "baseline": stack.enter_context(checked_out)}
            found.append(
                FurtherBaseline(
                    name, Rig(settings, pair, folder, request.environment, request.kept_builds)
                )
            )
        stack.callback(remove_marked, scratch)  # as in both_revisions
        yield found, notes
