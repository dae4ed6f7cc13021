"""The page of a result: what stands in it, that no text acts in it, that it stays small."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sns_gate.cli import main
from sns_gate.report import html, words
from sns_gate.report.html import rows
from sns_gate.report.html.figures import MOST_PAIRS, figure_of, thinning
from sns_gate.report.html.page import shown
from sns_gate.report.html.rows import MOST_LINES
from sns_gate.report.writing import ResultFile
from sns_gate.types import (
    Block,
    Explanation,
    GateResult,
    Profile,
    ProfiledPart,
    Reason,
    Verdict,
)
from tests import pages
from tests.test_report import CASES, case, result

MOST_BYTES = 10_000_000
#: What may be asked of a network, were it not forbidden.
_ADDRESSES = ("src", "href", "action", "data", "poster", "srcset", "formaction", "background")
_VOID = {"meta", "wbr", "input", "rect", "line", "circle"}


class Page(HTMLParser):
    """A page as a browser would read it: elements with attributes, texts, and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, "elements are nested rightly"

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            self.scripts.append((self.elements[-1][1], data))
        elif self._open[-1:] == ["style"]:
            self.styles.append(data)
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that a reader reads, spaces folded."""
        return " ".join(" ".join(self.texts).split())


def figures(page: Page) -> list[dict[str, object]]:
    return [
        json.loads(gzip.decompress(base64.b64decode(text)))
        for attributes, text in page.scripts
        if str(attributes.get("id")).startswith("figure-")
    ]


def test_the_headline_comes_first_then_counts_and_the_next_step() -> None:
    found = pages.every_kind()
    text = Page(html.render(found)).text
    places = [
        text.index(part, text.index("exit code"))
        for part in (words.headline(found), words.counts(found.cases), words.next_step(found))
    ]
    assert places == sorted(places)


def test_every_case_has_a_row_with_its_verdict_worst_first() -> None:
    found = pages.every_kind()
    shown_rows = [a for tag, a in Page(html.render(found)).elements if tag == "tbody" and "id" in a]
    expected = [one.verdict.value for one in words.ordered(found.cases)]
    assert [row["data-verdict"] for row in shown_rows] == expected
    assert set(expected) == {verdict.value for verdict in Verdict}


def test_every_reason_stands_in_it_with_its_traceback() -> None:
    found = pages.every_kind()
    text = Page(html.render(found)).text
    for reason in (*found.disclosures, *(r for one in found.cases for r in one.reasons)):
        assert reason.text in text
        assert reason.code in text
        assert " ".join(reason.detail.split()) in text


def test_a_fingerprint_that_differs_is_marked_and_what_agrees_is_not() -> None:
    text = html.render(pages.every_kind())
    marked = re.findall(r'<tr class="differs">.*?</tr>', text)
    assert len(marked) == 1
    assert "torch version" in marked[0]
    assert "2.11.0" in marked[0]
    assert "2.12.0" in marked[0]


def test_the_command_that_measures_again_stands_in_it() -> None:
    found = pages.many(1)
    clean = found.candidate.model_copy(update={"dirty": False})
    again = found.model_copy(update={"candidate": clean})
    assert words.command(again) in Page(html.render(again)).text
    assert words.NOT_AGAIN in Page(html.render(found)).text


def test_functions_are_compared_again_by_the_command_that_compared_them() -> None:
    found = result(case("a", Verdict.FASTER, 1.3, 1.4, 1.5, at_least=1.2))
    sides = {"baseline": "mod:slow", "candidate": "mod:fast"}
    update = {
        side: getattr(found, side).model_copy(update={"ref": ref, "commit": None})
        for side, ref in sides.items()
    }
    command = words.command(found.model_copy(update=update))
    assert command.startswith("sns-gate compare mod:fast mod:slow --at-least 1.2 --tolerance 2%")


def test_no_text_of_a_user_becomes_an_element_or_an_attribute() -> None:
    hostile, plain = pages.hostile(), pages.hostile()
    page = Page(html.render(hostile))
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not {"img", "a", "iframe", "object", "link"} & {tag for tag, _ in page.elements}
    kinds = [str(a.get("type")) for tag, a in page.elements if tag == "script"]
    assert kinds.count("None") == 2, "the page's own scripts are the only ones that run"
    assert kinds.count("text/plain") == len(plain.cases) + 1


@pytest.mark.parametrize("name", pages.HOSTILE)
def test_a_hostile_name_is_shown_as_it_is_but_for_control_characters(name: str) -> None:
    page = Page(html.render(pages.hostile()))
    assert " ".join(str(shown(name)).split()) in page.text
    assert not re.search("[\x00-\x08\x1b\u202e\u2028]", html.render(pages.hostile()))


def test_no_text_of_a_user_reaches_the_plots() -> None:
    drawn = json.dumps(figures(Page(html.render(pages.hostile()))), ensure_ascii=False)
    assert not [name for name in pages.HOSTILE if name in drawn]
    assert "<" not in drawn


def test_a_counter_with_a_hostile_name_is_shown_without_it() -> None:
    found = pages.many(1)
    block = found.cases[0].blocks[0]
    assert block.gpu is not None
    gpu = block.gpu.model_copy(update={"counters_ms": {"<b>": 3.0}})
    one = found.cases[0].model_copy(update={"blocks": (block.model_copy(update={"gpu": gpu}),)})
    figure = figure_of(one, 1)
    assert figure is not None
    happened = figure.measurements[0].blocks[0].happenings
    assert "other counter, counted 3.0 ms" in [event.text for event in happened]


@pytest.mark.parametrize("found", [pages.every_kind(), pages.hostile(), result()])
def test_nothing_in_it_asks_a_network(found: GateResult) -> None:
    text = html.render(found)
    page = Page(text)
    assert not [a for _, attributes in page.elements for a in _ADDRESSES if a in attributes]
    own = "".join([*page.styles, *(s for a, s in page.scripts if not a)])
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import|fetch\(|XMLHttp|WebSocket", own)
    shown_addresses = set(re.findall(r"https?://[^\s\"&<]+", text))
    assert shown_addresses <= {"https://example.com/"}, "only what a hostile name is made of"


def test_the_pages_policy_allows_what_it_holds_and_nothing_else() -> None:
    page = Page(html.render(pages.many(1)))
    policy = next(str(a["content"]) for _, a in page.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    scripts = [text for attributes, text in page.scripts if "type" not in attributes]
    packed = next(text for attributes, text in page.scripts if attributes.get("id") == "library")
    library = gzip.decompress(base64.b64decode(packed)).decode()
    for text in (*scripts, *page.styles, library):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_library_keeps_its_licence() -> None:
    page = Page(html.render(pages.many(1)))
    packed = next(text for attributes, text in page.scripts if attributes.get("id") == "library")
    assert "MIT license" in gzip.decompress(base64.b64decode(packed)).decode()[:300]
    assert "MIT licence" in page.text


def test_a_page_without_plots_carries_no_library() -> None:
    assert len(html.render(result(*CASES))) < 100_000
    assert "No case was measured" in html.render(result())
    assert words.headline(result()) in html.render(result())


@pytest.mark.parametrize("rotations", [1, 3])
def test_five_hundred_cases_make_less_than_ten_megabytes(rotations: int) -> None:
    assert len(html.render(pages.many(500, rotations)).encode()) < MOST_BYTES


def test_pairs_are_thinned_beyond_what_a_page_draws_and_medians_are_not() -> None:
    found = pages.many(1)
    one, twice = figure_of(found.cases[0], 1), figure_of(found.cases[0], 2)
    assert one is not None
    assert twice is not None
    first, thin = one.measurements[0].blocks[0], twice.measurements[0].blocks[0]
    assert thin.pairs == first.pairs[::2]
    assert thin.baseline_mhz == first.baseline_mhz[::2]
    assert thin.cells == first.cells
    assert thinning(found) == 1
    pairs = sum(len(block.pair_logs()) for block in found.cases[0].blocks)
    many = found.model_copy(update={"cases": found.cases * (1 + 2 * MOST_PAIRS // pairs)})
    assert thinning(many) == 3


def test_pairs_clocks_and_borders_are_those_of_the_blocks() -> None:
    found = pages.many(1).cases[0]
    figure = figure_of(found, 1)
    assert figure is not None
    drawn = figure.measurements[0].blocks
    for block, shape in zip(found.blocks, drawn, strict=True):
        ratios = [b / c for b, c in zip(block.counted("baseline"), block.counted("candidate"),
                                        strict=True)]  # fmt: skip
        assert shape.pairs == pytest.approx(ratios, abs=1e-5)
        assert shape.baseline_mhz == pytest.approx(block.clocks("baseline"), abs=0.5)
        assert (shape.placement, shape.baseline, shape.candidate) == (
            block.placement, block.baseline_worker, block.candidate_worker)  # fmt: skip


def test_a_case_that_was_measured_twice_shows_both_and_an_unconfirmed_one_shows_one() -> None:
    twice = next(one for one in pages.every_kind().cases if one.screening is not None)
    figure = figure_of(twice, 1)
    assert figure is not None
    assert [one.title for one in figure.measurements] == [
        "Second measurement, in new processes", "First measurement"]  # fmt: skip
    assert twice.screening is not None
    once = twice.model_copy(update={"blocks": twice.screening.blocks})
    figure = figure_of(once, 1)
    assert figure is not None
    assert [one.title for one in figure.measurements] == [""]


def test_the_axis_holds_interval_blocks_and_the_tolerance_that_is_near() -> None:
    for one in pages.every_kind().cases:
        figure = figure_of(one, 1)
        for shape in figure.measurements if figure else ():
            low, high = shape.axis
            assert shape.interval is not None
            assert low < shape.interval[0] <= shape.interval[2] < high
            assert all(low < block.speedup < high for block in shape.blocks)
            assert low < one.least < high or low < 1 + one.tolerance < high


def test_a_case_that_has_to_be_faster_has_a_band_without_an_end() -> None:
    asked = case("a", Verdict.SLOWER, 1.31, 1.34, 1.37, at_least=1.5)
    allowed = case("b", Verdict.UNCHANGED, 0.99, 1.0, 1.01, at_least=0.95)
    first, second = rows.rows_of(result(asked, allowed), (asked, allowed))
    assert first.interval is not None
    assert second.interval is not None
    assert first.interval.band_to == rows.WIDTH
    assert first.interval.words == "interval 1.3100 to 1.3700, tolerance 1.5000 and more"
    assert second.interval.band_to < rows.WIDTH
    assert second.interval.words.endswith("tolerance 0.9500 to 1.0200")


def test_an_edited_file_with_times_that_no_clock_gives_still_makes_a_page() -> None:
    block = Block(
        placement=-1, baseline_worker=0, candidate_worker=10**9, settling=0, sides="bcxb",
        ms=(1e308, 1e-308, 1.0, 5.0), device_mhz=(None, 1e300, None, None), held_us=(None,) * 4,
        log_speedup=1e300,
    )  # fmt: skip
    empty = Block(
        placement=0, baseline_worker=0, candidate_worker=0, settling=0, sides="", ms=(),
        device_mhz=(), held_us=(), log_speedup=-1e300,
    )  # fmt: skip
    odd = case("odd", Verdict.REFUSED, 0.9, 1.0, 1.1, blocks=(block, empty), at_least=-1.0)
    page = Page(html.render(result(odd.model_copy(update={"tolerance": 0.0}))))
    assert len(figures(page)) == 1


def test_of_a_long_log_the_end_is_shown_and_the_rest_is_counted() -> None:
    lines = "\n".join(f"line {number}" for number in range(MOST_LINES + 3))
    broken = case("a", Verdict.BROKEN, reasons=(Reason(code="raised", text="x", detail=lines),))
    text = Page(html.render(result(broken))).text
    assert "3 lines before these stand in the result file." in text
    assert "line 3 line 4" in text
    assert "line 2 " not in text


def test_the_command_writes_the_page_and_keeps_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = pages.every_kind()
    ResultFile(tmp_path / "r.json").save(found)
    page = tmp_path / "page.html"
    code = main(["report", str(tmp_path / "r.json"), "--html", str(page)])
    assert code == found.exit_code
    assert f"wrote {page}" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8") == html.render(found)


def test_a_page_that_cannot_be_written_is_said_and_is_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ResultFile(tmp_path / "r.json").save(result(*CASES))
    code = main(["report", str(tmp_path / "r.json"), "--html", str(tmp_path / "no" / "page")])
    assert code == 2
    assert "so name another place" in capsys.readouterr().err


def test_where_the_time_went_stands_in_the_case_with_whole_names_and_memory() -> None:
    hostile = "void k<script>alert(1)</script>(float*)"
    found = Explanation(
        baseline=Profile(source="kernels", parts=(), outside_us=0.0, launches=(1,)),
        candidate=Profile(
            source="kernels", outside_us=0.0, launches=(2,), choices=("k: BLOCK 128",),
            parts=(ProfiledPart(name=hostile, calls=2, us=9.0),),
        ),
    )  # fmt: skip
    slower = case(
        "add", Verdict.SLOWER, 0.5, 0.6, 0.7, explanation=found,
        baseline_peak_bytes=1 << 20, candidate_peak_bytes=3 << 20,
    )  # fmt: skip
    page = html.render(result(slower))
    text = " ".join(page.split())
    assert "the extra 9.000 µs under the profiler are in" in text
    assert "9.000 µs in 2 calls" in text
    assert "launches 2 kernels a call, the baseline 1 kernel" in text
    assert "candidate tuned k: BLOCK 128" in text
    assert "3.0 MiB, the baseline&#39;s 1.0 MiB" in text
    assert "<script>alert" not in page
