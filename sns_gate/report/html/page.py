"""A finished result as one HTML file that no text of a user can act in; it opens without a network.

Texts are escaped by the template, data are packed into letters that say nothing to a browser, and
the page's own policy forbids every request and every script but those whose hashes it names.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sns_gate.plain import plain
from sns_gate.report import words
from sns_gate.report.html import rows
from sns_gate.report.html.figures import figure_of, thinning
from sns_gate.report.html.plots import Library, library, packed
from sns_gate.types import EnvironmentFingerprint, GateResult

_ASSETS = "assets"
_BREAKS = re.compile(r"(?<=[\[,])")


def render(result: GateResult) -> str:
    """The page.

    Args:
        result: finished or not.
    """
    every = thinning(result)
    ordered = words.ordered(result.cases)
    figures = [figure_of(case, every) for case in ordered]
    drawn = library() if any(figures) else None
    style = asset("page.css")
    scripts = [asset(name) for name in ("plots.js", "page.js")]
    return _environment().get_template("page.html.j2").render(
        result=result,
        words=words,
        rows=rows.rows_of(result, ordered),
        scale=rows.scale_of(result),
        verdicts=_verdicts(result),
        fingerprints=_fingerprints(result),
        figures=[figure and packed(figure.model_dump_json()) for figure in figures],
        library=drawn,
        style=Markup(style),  # noqa: S704 (our own file)
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (likewise)
        policy=_policy(style, scripts, drawn),
    )  # fmt: skip


def shown(value: object) -> object:
    """What a template puts out: text without control characters, on the lines that it has."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(plain(line) for line in value.splitlines())
    return value


def breakable(name: str) -> Markup:
    """A case's name, which may go on in the next line behind a bracket or a comma."""
    parts = _BREAKS.split(str(shown(name)))
    return Markup("<wbr>").join(parts)


@dataclass(frozen=True)
class Compared:
    """One field of both sides' fingerprints."""

    name: str
    baseline: str
    candidate: str
    differs: bool


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("sns_gate.report.html", _ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    return made


def asset(name: str) -> str:
    """A style or a script of our own pages."""
    folder = resources.files("sns_gate.report.html") / _ASSETS
    return (folder / name).read_text(encoding="utf-8")


def _policy(style: str, scripts: list[str], drawn: Library | None) -> str:
    """No request of any kind, and no script or style but these.

    The library adds its rules to a style element that is empty, whose hash is therefore allowed.
    """
    allowed = " ".join(map(_hash, [*scripts, *([drawn.source] if drawn else [])]))
    styles = " ".join(map(_hash, (style, "")))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {styles}; "
        f"base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _verdicts(result: GateResult) -> list[tuple[str, int]]:
    """Every verdict that occurs, with how often, worst first."""
    number = Counter(case.verdict for case in result.cases)
    return [(kind.value, number[kind]) for kind in words.VERDICT_ORDER if number[kind]]


def _fingerprints(result: GateResult) -> list[Compared]:
    """What identifies both sides, field by field; what neither side has is left out."""
    baseline, candidate = result.baseline.fingerprint, result.candidate.fingerprint
    if baseline is None or candidate is None:
        return []
    differing = baseline.differences(candidate)
    return [
        Compared(
            name=name.replace("_", " "),
            baseline=_value(getattr(baseline, name)),
            candidate=_value(getattr(candidate, name)),
            differs=name in differing,
        )
        for name in EnvironmentFingerprint.model_fields
        if getattr(baseline, name) is not None or getattr(candidate, name) is not None
    ]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "unknown" if value is None else str(value)
