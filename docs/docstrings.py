"""Signatures and docstrings as Markdown; it knows no page and no package."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence

_SECTIONS = ("Args", "Attributes", "Raises", "Returns")
_SECTION = re.compile(rf"^({'|'.join(_SECTIONS)}):$")
_ITEM = re.compile(r"^    (\S[^:]*): (.*)$")
#: As in a docstring's reStructuredText, where Markdown has one backtick.
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)


def signature(name: str, function: Callable[..., object]) -> str:
    """A call as Python writes it, a parameter a line where there are several."""
    lines: list[str] = []
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    only_names = kinds.count(inspect.Parameter.KEYWORD_ONLY) and (
        inspect.Parameter.VAR_POSITIONAL not in kinds
    )
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and only_names:
            lines.append("*")
            only_names = False
        lines.append(_parameter(parameter))
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            lines.append("/")
    returns = inspect.signature(function).return_annotation
    arrow = "" if returns is inspect.Signature.empty else f" -> {_annotation(returns)}"
    if len(lines) <= 2:  # noqa: PLR2004 (two fit a line)
        return f"{name}({', '.join(lines)}){arrow}"
    return "\n".join([f"{name}(", *(f"    {line}," for line in lines), f"){arrow}"])


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        text = f"*{text}"
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        text = f"**{text}"
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        text += f" = {parameter.default!r}"
    return text


def _annotation(found: object) -> str:
    return found if isinstance(found, str) else str(getattr(found, "__name__", found))


def prose(thing: object) -> list[str]:
    """A docstring in paragraphs, its sections as lists."""
    lines: list[str] = []
    for section, body in _split(inspect.getdoc(thing) or ""):
        if not section:
            lines += [*_paragraphs(body), ""]
        elif section == "Returns":
            lines += [f"**{section}** {' '.join(line.strip() for line in body)}", ""]
        else:
            lines += [f"**{section}**", ""]
            lines += [f"- `{name}`: {text}" for name, text in _items(body)]
            lines.append("")
    return [_LITERAL.sub(r"`\1`", line) for line in lines]


def first_sentence(thing: object) -> str:
    """What a docstring begins with, on one line."""
    summary = (inspect.getdoc(thing) or "").split("\n\n", maxsplit=1)[0].replace("\n", " ")
    return _LITERAL.sub(r"`\1`", summary)


def _split(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Each section's heading, empty for what stands before them, and its lines."""
    heading, body = "", list[str]()
    for line in text.splitlines():
        begun = _SECTION.match(line)
        if begun:
            yield heading, body
            heading, body = begun[1], []
        else:
            body.append(line)
    yield heading, body


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return "\n".join(lines).strip().split("\n")


def _items(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    name, text = "", ""
    for line in lines:
        begun = _ITEM.match(line)
        if begun:
            if name:
                yield name, text
            name, text = begun[1], begun[2]
        elif line.strip():
            text = f"{text} {line.strip()}"
    if name:
        yield name, text
