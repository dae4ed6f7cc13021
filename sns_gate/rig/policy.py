"""Which settings hold: the candidate's own, or the baseline's word on what passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sns_gate.config import Settings, read_file
from sns_gate.revisions import Revision
from sns_gate.rig.mount import CheckRequest
from sns_gate.types import Reason, Side


def settle(
    request: CheckRequest, sides: Mapping[Side, Revision]
) -> tuple[Settings, tuple[Reason, ...]]:
    """The settings that hold, and how the policy of the two revisions differs."""
    file, theirs_file = read_file(sides["candidate"].root), read_file(sides["baseline"].root)
    settings = request.layers.over(file)
    if request.layers.policy_from(theirs_file) == "candidate":
        return settings.model_copy(update={"policy_from": "candidate"}), ()
    governed = request.layers.governed(file, theirs_file)
    governed = governed.model_copy(update={"policy_from": "baseline"})
    notes = [
        Reason(
            code="policy-from-baseline",
            text=f"the candidate sets {name.replace('_', '-')} to {theirs}, the baseline's {ours} "
            f"governs until this change is merged",
        )
        for name, ours, theirs in _differences(governed, settings)
    ]
    return governed, tuple(notes)


def _differences(one: Settings, other: Settings) -> Iterator[tuple[str, object, object]]:
    for name in Settings.model_fields:
        ours, theirs = getattr(one, name), getattr(other, name)
        if ours != theirs and name != "policy_from":
            yield name, ours, theirs
