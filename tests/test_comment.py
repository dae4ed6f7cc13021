"""The pull-request comment: what a reviewer needs first, and nothing of a user's that acts."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate.report.markdown import MOST_BYTES, comment, title
from sns_gate.report.neutral import block, code, prose
from sns_gate.types import EnvironmentFingerprint, Reason, RevisionInfo, Verdict
from tests.conftest import sns_gate
from tests.test_report import CASES, case, golden, result

HOSTILE = (
    "@octocat",
    "octo/repo#1 and #2",
    "https://evil.example/x www.evil.example",
    "![x](https://evil.example/x.png) [y](javascript:alert(1))",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "a|b|c",
    "`code` **bold** _it_ ~~gone~~",
    "</code></details><!-- sns-gate name=default -->",
    "line\nbreak\r\n\n# heading\n- list",
    "\x1b[31mred\x1b[0m\x00\u202edcba",
    "&lt;script&gt; &#64;octocat",
    "x" * 5000,
)


class Page(HTMLParser):
    """What a rendered comment holds: its elements, its links, and its text outside code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.links: list[str] = []
        self.outside = ""
        self._inside = 0
        self.feed(
            cmarkgfm.github_flavored_markdown_to_html(text, cmarkgfm.Options.CMARK_OPT_UNSAFE)
        )

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._inside += tag == "code"
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.outside += "" if self._inside else data


class HTMLText(HTMLParser):
    """The text of a rendered comment, code included."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_comment_is_the_golden_one() -> None:
    found = result(*CASES, conclusion="failure")
    golden("comment.md", comment(found, run_url="https://github.com/o/r/actions/runs/1") + "\n")


def test_it_opens_with_the_sentence_that_a_reviewer_needs() -> None:
    page = Page(comment(result(*CASES)))
    assert page.outside.lstrip().startswith("🔴 2 of 8 cases are slower than ")
    text = comment(result(*CASES))
    assert text.index("<code>add</code>") < text.index("<details>")
    assert text.index("<details>") < text.index("<code>softmax")
    assert "a slowdown of 2.5% would have been seen" in text


def test_a_table_of_many_cases_stands_open_for_the_first_of_them_alone() -> None:
    cases = [case(f"case{n}", Verdict.SLOWER, 0.9, 0.95, 0.97) for n in range(50)]
    opened, _, folded = comment(result(*cases)).partition("<details>")
    assert opened.count("| 🔴") == 30
    assert "20 further cases" in folded


def test_a_case_without_numbers_says_why_in_its_row() -> None:
    text = comment(result(*CASES))
    (row,) = (line for line in text.splitlines() if "<code>gelu</code>" in line and "|" in line)
    assert "ValueError" in row


def test_a_case_that_lets_more_pass_by_its_own_tolerance_is_no_secret() -> None:
    lenient = CASES[0].model_copy(update={"tolerance": 5.0})
    assert "slower means by more than 2% (500% in 1 case)" in comment(result(lenient, *CASES[1:]))
    assert "slower means by more than 2% ·" in comment(result(*CASES))


def test_what_was_measured_from_uncommitted_changes_gives_no_command_to_repeat() -> None:
    dirty = result(*CASES)
    clean = dirty.model_copy(update={"candidate": dirty.candidate.model_copy(
        update={"dirty": False})})  # fmt: skip
    assert "nobody else can measure it again" in comment(dirty)
    page = HTMLText(cmarkgfm.github_flavored_markdown_to_html(
        comment(clean), cmarkgfm.Options.CMARK_OPT_UNSAFE))  # fmt: skip
    assert "--tolerance 2% --processes 4 --placements 4 --seed 0" in page.text


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_of_a_user_acts(name: str) -> None:
    hostile = case(name, Verdict.SLOWER, 0.9, 0.95, 0.97, note=name,
                   reasons=(Reason(code="raised", text=name, detail=name),))  # fmt: skip
    found = result(hostile, case("b", Verdict.UNCHANGED, 0.99, 1.0, 1.01)).model_copy(
        update={
            "baseline": RevisionInfo(
                ref=name, commit="ab" * 20, fingerprint=EnvironmentFingerprint(gpu_name=name)
            ),
            "candidate": RevisionInfo(
                ref=name, commit="cd" * 20, fingerprint=EnvironmentFingerprint(gpu_name="other")
            ),
            "tool_version": name,
            "disclosures": (Reason(code="dirty", text=name),),
        }
    )
    text = comment(found)
    page = Page(text)
    assert not page.links
    assert set(page.elements) <= {
        "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary",
        "blockquote", "ul", "li", "strong", "wbr", "pre",
    }  # fmt: skip
    assert page.elements.count("details") == 4
    assert not re.search(r"@\w|#\d|://|www\.\w", page.outside)
    assert "<!--" not in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text)
    rows = [line for line in text.splitlines() if line.startswith("| 🔴")]
    assert len(rows) == 1, "a case is one row"


@pytest.mark.parametrize(
    "text", ["@octocat", "o/r#12", "https://evil.example", "www.evil.example", "WWW.evil.example"]
)
@pytest.mark.parametrize("made", [code, prose])
def test_what_github_would_link_is_broken_apart_even_as_text(
    made: Callable[[str], str], text: str
) -> None:
    page = HTMLText(cmarkgfm.github_flavored_markdown_to_html(made(text)))
    assert text not in page.text
    assert text == page.text.replace("\u200b", "").strip(), "and yet it reads the same"


@given(st.text(max_size=400))
def test_a_text_of_any_kind_stays_one_line(text: str) -> None:
    found = code(text)
    page = Page(found)
    assert "\n" not in found
    assert not page.outside.strip()
    assert set(page.elements) <= {"p", "code", "wbr"}
    assert "\n" not in prose(text)
    assert set(Page(f"so {prose(text)}").elements) <= {"p"}
    assert set(Page(block(text, 3)).elements) <= {"pre"}


def test_a_long_name_may_break_and_is_not_changed_by_that() -> None:
    for name in ("fused[head_dim=128,causal=True,dtype=torch.bfloat16]", "x" * 100):
        page = cmarkgfm.github_flavored_markdown_to_html(
            code(name), cmarkgfm.Options.CMARK_OPT_UNSAFE
        )
        assert HTMLText(page).text.strip() == name
        assert max(map(len, re.split("<wbr>", page))) < 150
        assert page.count("<wbr>") > 2


def test_five_hundred_cases_of_hostile_names_make_one_comment_within_the_limit() -> None:
    cases = [case(f"{n} {HOSTILE[n % len(HOSTILE)]}", Verdict.SLOWER, 0.9, 0.95, 0.97)
             for n in range(500)]  # fmt: skip
    text = comment(result(*cases))
    assert len(text.encode()) <= MOST_BYTES
    assert "_Left out for length: further cases; see the result file._" in text
    assert "further cases and all details" in comment(result(*cases), most=4000)
    assert not Page(text).links


def test_sections_are_dropped_whole_and_named_and_slower_cases_last() -> None:
    many = [case(f"case{n}", Verdict.UNCHANGED, 0.99, 1.0, 1.01) for n in range(300)]
    found = result(case("add", Verdict.SLOWER, 0.9, 0.95, 0.97), *many)
    whole = comment(found, most=10**6)
    assert "300 unchanged cases" in whole
    text = comment(found, most=20_000)
    assert "_Left out for length: unchanged cases; see the result file._" in text
    assert "How it was measured" in text
    assert "<code>add</code>" in comment(found, most=1500)


def test_where_nothing_was_measured_it_never_says_pass() -> None:
    for found in (result(), result(case("a", Verdict.ADDED)), result(CASES[0], complete=False)):
        assert "No case is slower" not in comment(found)
        assert "🟢 No" not in comment(found)


def test_the_title_says_what_an_odd_conclusion_means() -> None:
    inconclusive = result(CASES[4], conclusion="neutral")
    assert title(inconclusive) == "1 inconclusive; neutral by the policy, no verdict was reached"
    forgiven = result(CASES[7], conclusion="success", exit_code=0,
                      disclosures=(Reason(code="policy-success", text="t"),))  # fmt: skip
    assert title(forgiven) == "1 refused; counted as success by the policy"
    assert title(result()) == "nothing was compared"


def test_fields_of_the_fingerprint_that_differ_are_marked() -> None:
    found = result(CASES[0])
    other = found.baseline.fingerprint
    assert other is not None
    unlike = other.model_copy(update={"torch_version": "2.12.0"})
    found = found.model_copy(
        update={"candidate": found.candidate.model_copy(update={"fingerprint": unlike})}
    )
    text = comment(found)
    assert "| **torch version** |" in text
    assert "gpu name NVIDIA H200" in text


def test_what_a_pull_request_would_be_told_can_be_written_to_a_file(tmp_path: Path) -> None:
    found = result(case("softmax", Verdict.SLOWER, 0.8, 0.85, 0.9))
    (tmp_path / "result.json").write_text(found.model_dump_json())
    ran = sns_gate(tmp_path, "report", "result.json", "--markdown", "comment.md")
    assert ran.out.endswith("wrote comment.md\n")
    assert (tmp_path / "comment.md").read_text() == comment(found)
