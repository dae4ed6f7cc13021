"""The hidden line by which a comment is found again and its age is known."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNFINISHED = "/unfinished"
_RUN = re.compile(r"\d+\.\d+")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,50}")
_LINE = re.compile(
    r"<!-- sns-gate name=([A-Za-z0-9._-]{1,50}) sha=([0-9a-f]{40,64}) at=([0-9T:+-]{1,40}) -->"
)


@dataclass(frozen=True)
class Marker:
    """Which comment this is.

    Attributes:
        name: one comment a name and pull request.
        sha: the commit that was judged.
        at: when its check began, ISO 8601 in UTC, so that texts sort as times do.
    """

    name: str
    sha: str
    at: str

    def __str__(self) -> str:
        """The line."""
        return f"<!-- sns-gate name={self.name} sha={self.sha} at={self.at} -->"


def find(body: str) -> Marker | None:
    """The marker that a comment begins with, None where it is none of ours."""
    found = _LINE.match(body)
    return Marker(*found.groups()) if found else None


def check_id(run_id: str, name: str, *, complete: bool) -> str:
    """What our check run of a workflow run is known by; an unfinished check says so."""
    return f"{run_id}/{name}" + ("" if complete else _UNFINISHED)


def is_complete(id_: str, name: str) -> bool:
    """Whether a check run of this id is ours, of a check that measured all its cases."""
    run, _, rest = id_.partition("/")
    return bool(_RUN.fullmatch(run)) and rest == name


def is_name(text: str) -> bool:
    """Whether a comment can have this name."""
    return _NAME.fullmatch(text) is not None
