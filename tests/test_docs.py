"""The pages say what the code says, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import ENDINGS, FOLDER, commands, pages

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_reference_is_what_the_code_says_now(name: str) -> None:
    kept = (FOLDER / name).read_text(encoding="utf-8")
    assert kept == pages()[name], "the code says something else by now: run make docs"


def test_the_reference_holds_no_page_of_something_gone() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pages())


def test_every_command_says_how_it_ends() -> None:
    assert set(commands()) == set(ENDINGS)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = _FENCED.sub("", path.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{link} leads to no file"
        assert not anchor or anchor in anchors(target), f"{link} leads to no heading"


def test_every_page_can_be_found_from_the_map() -> None:
    reached, waiting = set(), [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            found = _LINK.findall(page.read_text(encoding="utf-8"))
            links = (page.parent / link.partition("#")[0] for link in found)
            waiting += [path.resolve() for path in links if path.suffix == ".md" and path.exists()]
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} <= reached
