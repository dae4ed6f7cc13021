"""The page of a result in a real browser: it opens, draws, sorts, filters, and asks nobody."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sns_gate.report import html
from sns_gate.types import GateResult, Verdict
from tests import pages
from tests.test_report import CASES, result

pytestmark = pytest.mark.engines
Scheme = Literal["light", "dark"]

#: As Debian, others and vendors call it.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell")
NO_BROWSER = (
    f"no browser: none of {', '.join(NAMES)} is on PATH, so no page was opened; install one "
    f"(apt-get install chromium), or name one: SNS_CHROMIUM=/path/to/chromium make test-engines"
)
PATIENCE_MS = 30_000
PHONE = (390, 844)
DESKTOP = (1280, 900)
OPENS_WITHIN_MS = 2000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real one, or a skip that says how to get one."""
    named = os.environ.get("SNS_CHROMIUM")
    path = named or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(NO_BROWSER)
    # Chromium refuses root its sandbox; these pages are our own.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()


@dataclass
class Opened:
    """A page with all that it asked for and complained of."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open_case(self, name: str) -> None:
        """Open a case's details and wait until its plots stand."""
        button = self.page.get_by_role("button", name=name, exact=True)
        button.click()
        expect(button).to_have_attribute("aria-expanded", "true")
        detail = self.page.locator(f"#{button.get_attribute('aria-controls')}")
        expect(detail.locator(".drawing[data-drawn] .plot-container").nth(1)).to_be_visible()
        expect(detail.locator(".drawing:not([data-drawn])")).to_have_count(0)

    def names(self) -> list[str]:
        """The cases that are shown, from top to bottom."""
        return [text.strip() for text in self.page.locator(".open:visible").all_inner_texts()]


Opening = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opening]:
    """Opens a result's page without a network; in the end nobody complained or asked."""
    contexts = []
    seen = []

    def opening(
        found: GateResult,
        *,
        scheme: Scheme = "light",
        size: tuple[int, int] = DESKTOP,
        scripts: bool = True,
    ) -> Opened:
        file = tmp_path / "page.html"
        file.write_text(html.render(found), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme, java_script_enabled=scripts,
            has_touch=size == PHONE, is_mobile=size == PHONE,
        )  # fmt: skip
        contexts.append(context)
        context.set_offline(True)
        one = Opened(context.new_page())
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.on("console", lambda message: one.complaints.append(message.text))
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.goto(file.as_uri())
        seen.append((one, file.as_uri()))
        return one

    yield opening
    for one, address in seen:
        assert not one.complaints
        assert one.requests == [address]
    for context in contexts:
        context.close()


def violations(page: Page) -> list[str]:
    """What axe-core finds against the rules of accessibility, with where."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_closed_or_opened(
    opened: Opening, scheme: Scheme, size: tuple[int, int]
) -> None:
    one = opened(pages.every_kind(), scheme=scheme, size=size)
    assert violations(one.page) == []
    one.open_case("add")
    one.page.get_by_role("button", name="gelu").click()
    one.page.get_by_text("The same as tables").first.click()
    assert violations(one.page) == []


@pytest.mark.parametrize("found", [result(), result(*CASES), pages.hostile()])
def test_axe_finds_nothing_in_odd_results(opened: Opening, found: GateResult) -> None:
    assert violations(opened(found).page) == []


def test_opening_a_case_draws_its_plots_and_only_then(opened: Opening) -> None:
    one = opened(pages.every_kind())
    expect(one.page.locator(".drawing")).to_have_count(0)
    assert one.page.evaluate("typeof Plotly") == "undefined"
    one.open_case("mlp")
    expect(one.page.locator(".drawing")).to_have_count(2)
    assert one.page.locator(".drawing").first.locator(".point").count() > 150
    one.page.get_by_role("button", name="mlp", exact=True).click()
    expect(one.page.locator(".drawing").first).to_be_hidden()


def test_a_case_that_was_measured_twice_shows_four_plots(opened: Opening) -> None:
    one = opened(pages.every_kind())
    one.open_case("add")
    expect(one.page.locator(".drawing[data-drawn]")).to_have_count(4)
    expect(one.page.get_by_role("heading", name="First measurement")).to_be_visible()


def test_every_plot_has_words_and_a_table_in_its_place(opened: Opening) -> None:
    one = opened(pages.every_kind())
    one.open_case("mlp")
    for plot in one.page.locator(".drawing[role=img]").all():
        assert re.search(r"\d\.\d{4}", plot.get_attribute("aria-label") or "")
    one.page.get_by_text("The same as tables").click()
    blocks = one.page.get_by_role("table", name="Blocks in time order")
    expect(blocks.locator("tbody tr")).to_have_count(16)
    expect(blocks.locator("tbody tr").first).to_contain_text("1755 to 1740")


def test_a_head_sorts_and_the_same_head_again_turns_it_round(opened: Opening) -> None:
    one = opened(pages.many(30))
    head = one.page.get_by_role("columnheader", name="speedup, interval")
    speedups = one.page.locator("td.speedup b")
    for direction, reverse in (("ascending", False), ("descending", True)):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", direction)
        shown = [float(text) for text in speedups.all_inner_texts()]
        assert shown == sorted(shown, reverse=reverse)
    one.page.get_by_role("columnheader", name="case").get_by_role("button").click()
    assert one.names()[:2] == ["kernel_0[n=1,dtype=float16]", "kernel_0[n=2,dtype=float16]"]
    assert one.names()[-1] == "kernel_1[n=512,dtype=float16]"


def test_what_has_no_value_comes_last_both_ways(opened: Opening) -> None:
    one = opened(pages.every_kind())
    head = one.page.get_by_role("columnheader", name="speedup, interval").get_by_role("button")
    without = {"gelu", "layer_norm", "rope", "dropout"}
    for _ in range(2):
        head.click()
        assert set(one.names()[-4:]) == without


def test_a_filter_by_name_and_one_by_verdict_leave_what_fits_both(opened: Opening) -> None:
    one = opened(pages.every_kind())
    status = one.page.get_by_role("status")
    expect(status).to_have_text("13 of 13 cases")
    one.page.get_by_role("button", name="unchanged 2").click()
    assert one.names() == ["softmax[n=1024]", "softmax[n=4096]"]
    one.page.get_by_label("Filter by name").fill("N=4096")
    assert one.names() == ["softmax[n=4096]"]
    expect(status).to_have_text("1 of 13 cases")
    one.page.get_by_role("button", name="unchanged 2").click()
    one.page.get_by_label("Filter by name").fill("")
    assert len(one.names()) == 13


def test_a_phone_needs_no_sideways_scrolling_and_sorts_by_a_list(opened: Opening) -> None:
    one = opened(pages.every_kind(), size=PHONE)
    one.open_case("add")
    assert one.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    one.page.get_by_label("Sort by").select_option("case")
    assert one.names()[0] == "add"


def test_hostile_names_do_nothing_but_be_shown(opened: Opening) -> None:
    one = opened(pages.hostile())
    for button in one.page.locator(".open").all():
        button.click()
    expect(one.page.locator(".drawing[data-drawn]")).to_have_count(2 * len(pages.HOSTILE))
    assert one.page.evaluate("typeof window.hit") == "undefined"
    assert one.page.locator("a, img, iframe").count() == 0
    assert one.page.evaluate("document.documentElement.scrollWidth") == DESKTOP[0]


def test_the_plots_change_with_the_colours_of_the_page(opened: Opening) -> None:
    one = opened(pages.every_kind())
    one.open_case("mlp")
    colour = "getComputedStyle(document.querySelector('.drawing .xtick text')).fill"
    light = one.page.evaluate(colour)
    one.page.emulate_media(color_scheme="dark")
    tick = one.page.locator(".drawing .xtick text").first
    expect(tick).not_to_have_css("fill", light)


def test_without_scripts_verdicts_and_reasons_are_there(opened: Opening) -> None:
    one = opened(pages.every_kind(), scripts=False)
    expect(one.page.get_by_role("heading", level=1)).to_contain_text("3 of 13 cases are slower")
    expect(one.page.get_by_text("another process used this GPU")).to_be_visible()
    assert len(one.names()) == 13


def test_an_address_with_a_case_opens_it(opened: Opening, tmp_path: Path) -> None:
    one = opened(pages.every_kind())
    number = [body.get_attribute("id") for body in one.page.locator("tbody[id]").all()][7]
    one.page.goto("about:blank")
    one.page.goto(f"{(tmp_path / 'page.html').as_uri()}#{number}")
    expect(one.page.locator(f"#{number} .open")).to_have_attribute("aria-expanded", "true")
    one.requests[:] = one.requests[:1]


@pytest.mark.parametrize("rotations", [1, 3])
def test_five_hundred_cases_open_within_two_seconds(opened: Opening, rotations: int) -> None:
    one = opened(pages.many(500, rotations))
    took = []
    for _ in range(3):  # other work on the machine is no fault of the page
        one.page.reload()
        took.append(one.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
    one.requests[:] = one.requests[:1]
    assert len(one.names()) == 500
    assert min(took) < OPENS_WITHIN_MS
    assert Verdict.UNCHANGED.value in one.page.locator(".chips").inner_text()
