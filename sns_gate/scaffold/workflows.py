"""The workflows, pinned; a private repository has one, a public one posts from a second."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from sns_gate.errors import UsageError

Visibility = Literal["private", "public"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
_OTHERWISE_READ = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


@dataclass(frozen=True)
class Pin:
    """An action at one commit.

    Attributes:
        slug: ``owner/name``.
        sha: of the commit.
        version: that the commit is, for readers.
    """

    slug: str
    sha: str
    version: str

    def __str__(self) -> str:
        """As it stands behind ``uses:``."""
        return f"{self.slug}@{self.sha} # {self.version}"


#: This action's own address, and the commit that workflows of this version use.
ACTION = Pin("sns-gate/sns-gate", "f3dadcc0e06c2a679e9960671ac6ca7f21810ce8", "v0.1.0")
CHECKOUT = Pin("actions/checkout", "11bd71901bbe5b1630ceea73d27597364c9af683", "v4.2.2")
UPLOAD = Pin("actions/upload-artifact", "ea165f8d65b6e75b540449e92b4886f43607fa02", "v4.6.2")
DOWNLOAD = Pin("actions/download-artifact", "d3f86a106a0bac45b974a628896c90dbdf5c8093", "v4.3.0")
_PINS = {"ACTION": ACTION, "CHECKOUT": CHECKOUT, "UPLOAD": UPLOAD, "DOWNLOAD": DOWNLOAD}
_SEVERAL_POSTS = """\
    strategy:
      fail-fast: false
      matrix:
        gpu: {names}
"""


@dataclass(frozen=True)
class Runner:
    """A kind of self-hosted runner.

    Attributes:
        name: of its GPU, part of comment's and check's name where there are several kinds.
        labels: that a job asks for.
    """

    name: str
    labels: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Runner:
        """Read ``LABEL,LABEL`` or ``NAME=LABEL,LABEL``.

        Raises:
            UsageError: it is neither.
        """
        name, named, labels = text.rpartition("=")
        found = cls(name if named else "gpu", tuple(part.strip() for part in labels.split(",")))
        if not (_NAME.fullmatch(found.name) and all(map(_LABEL.fullmatch, found.labels))):
            raise UsageError(
                f"'{text}' names no runner; give its labels, self-hosted,gpu, and before them a "
                f"name where there are several: h100=self-hosted,h100"
            )
        return found


def workflows(
    visibility: Visibility, runners: Sequence[Runner], device: str, branch: str
) -> Mapping[str, str]:
    """Texts by file name.

    Args:
        visibility: of the repository; in a public one nobody's code and the token meet.
        runners: kinds that measure, at least one.
        device: what to measure on; empty for the action's default.
        branch: the default branch.

    Raises:
        UsageError: two runners have one name.
    """
    names = [runner.name for runner in runners]
    if len(set(names)) < len(names):
        raise UsageError(
            "several runners need a name each, so that their comments are told apart: "
            "--runner h100=self-hosted,h100 --runner a100=self-hosted,a100"
        )
    values = _values(runners, device, branch)
    templates = {"private": ("sns-gate",), "public": ("sns-gate", "sns-gate-post")}[visibility]
    return {f"{name}.yml": _filled(f"{visibility}-{name}.yml", values) for name in templates}


def _values(runners: Sequence[Runner], device: str, branch: str) -> dict[str, str]:
    several = len(runners) > 1
    rows = "".join(
        f"          - gpu: {_scalar(runner.name)}\n            runner: {_list(runner.labels)}\n"
        for runner in runners
    )
    names = _list([runner.name for runner in runners])
    matrix = f"    strategy:\n      fail-fast: false\n      matrix:\n        include:\n{rows}"
    name = "sns-gate-${{ matrix.gpu }}" if several else "sns-gate"
    return {
        **{key: str(pin) for key, pin in _PINS.items()},
        "BRANCH": _scalar(re.sub(r"([+!])", r"\\\1", branch)),
        "MEASURES": matrix if several else "",
        "POSTS": _SEVERAL_POSTS.format(names=names) if several else "",
        "RUNNER": "${{ matrix.runner }}" if several else _list(runners[0].labels),
        "NAME": name,
        "DEVICE": f"          device: {device}\n" if device else "",
        "POSTED": f"          name: {name}\n" if several else "",
    }


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, words))}]"


def _scalar(word: str) -> str:
    """A word as YAML reads it, never as a number, a date or a truth."""
    is_plain = _PLAIN.fullmatch(word) and word.lower() not in _OTHERWISE_READ
    return word if is_plain else json.dumps(word)


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with each ``<NAME>``; a line that holds a name of lines alone is those lines."""
    text = files("sns_gate.scaffold").joinpath("templates", template).read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"<{name}>\n", value) if value.endswith("\n") or not value else text
        text = text.replace(f"<{name}>", value)
    return text
