"""Whatever text stands in whichever field of a result, it acts nowhere that people read."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pydantic import ValidationError

from sns_gate.report.junit import junit
from sns_gate.report.markdown import comment, title
from sns_gate.report.terminal import console_for, render
from sns_gate.types import GateResult, MachineInfo, RevisionInfo
from tests.pages import every_kind
from tests.test_comment import Page

#: Markdown, HTML, what GitHub makes of text, a terminal's sequence and a runner's two commands.
TEXT = (
    "x -->)\n\n# Approved by @octo-org/all, fixes #1\n\n![p](https://evil.example/p.png) [/b]"
    " <b>bold</b> | `c` \x1b]52;c;aGk=\x07 \x9b31m ##[add-mask]x\n::stop-commands::x\n<!--"
)
ELEMENTS = {
    "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary",
    "blockquote", "ul", "li", "strong", "wbr", "pre",
}  # fmt: skip
Path = tuple[str | int, ...]


def whole() -> dict[str, Any]:
    """A result with something in every field that a text can stand in."""
    found = every_kind()
    print_ = found.candidate.fingerprint
    assert print_ is not None
    slower = found.cases[0]
    further = slower.model_copy(update={"id": "against a tag", "against": "v1", "machine": "H200"})
    machines = (MachineInfo(name="H200", device="cuda:0", baseline=print_, candidate=print_),)
    found = found.model_copy(
        update={
            "cases": (*found.cases, further),
            "further_baselines": (RevisionInfo(ref="v1", commit="ef" * 20),),
            "machines": machines,
            "shard": "1/2",
            "case_list": "digest",
        }
    )
    dumped: dict[str, Any] = found.model_dump(mode="json")
    return dumped


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    """Where texts stand."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from leaves(one, (*path, at))
    elif isinstance(value, str) or value is None:
        yield path


def fields() -> list[Path]:
    """One path a field, wherever it stands first."""
    found: dict[str, Path] = {}
    for path in leaves(whole()):
        found.setdefault(".".join("*" if isinstance(one, int) else one for one in path), path)
    return list(found.values())


def with_text(path: Path) -> GateResult | None:
    """The result with the text there, None where it is none with it."""
    changed = whole()
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = TEXT
    try:
        return GateResult.model_validate(changed)
    except ValidationError:
        return None


@pytest.mark.parametrize("path", fields(), ids=lambda path: ".".join(map(str, path)))
def test_a_text_acts_nowhere(path: Path) -> None:
    found = with_text(path)
    if found is None:
        return
    page = Page(comment(found))
    assert set(page.elements) <= ELEMENTS
    assert not page.links
    assert page.elements.count("h3") == 1
    assert not re.search(r"@\w|#\d|://|www\.\w", page.outside)
    assert "\n" not in title(found)
    ET.fromstring(junit(found))  # noqa: S314 (our own)
    for quiet in (False, True):
        log = io.StringIO()
        render(found, console_for(log, {"GITHUB_ACTIONS": "true"}), quiet=quiet)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", log.getvalue())
        assert not re.search(r"##\[|^\s*::", log.getvalue(), re.MULTILINE)


def test_most_fields_take_any_text_and_those_with_a_form_of_their_own_do_not() -> None:
    taken = [path for path in fields() if with_text(path) is not None]
    refused = {str(path[-1]) for path in fields()} - {str(path[-1]) for path in taken}
    assert len(taken) > 40
    assert {"code", "started_at", "shard", "verdict", "tier", "conclusion"} <= refused
