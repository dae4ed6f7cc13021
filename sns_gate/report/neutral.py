"""Texts of users made inert: neither Markdown, HTML nor what GitHub makes of text acts on them.

Mentions and references are found in what is left after entities are read; tables split at pipes
before that. So every character that is no letter, digit or space becomes an entity, on one line.
"""

from __future__ import annotations

from collections.abc import Iterator

from sns_gate.plain import plain

LONGEST_TEXT = 300
LONGEST_NAME = 120
#: After these a name longer than ``_UNBROKEN`` may break, and after so many characters without one.
_BREAKS = frozenset(",[_/.=-")
_UNBROKEN = 24
_SHORTEST_PART = 12


def code(text: str, most: int = LONGEST_NAME) -> str:
    """A name as inline code; a long one may break between its parts."""
    return f"<code>{''.join(_breaking(_one_line(text, most)))}</code>"


def prose(text: str, most: int = LONGEST_TEXT) -> str:
    """A sentence, as it stands."""
    shown = _one_line(text, most)
    return "".join(_entity(shown, at) for at in range(len(shown)))


def block(text: str, most_lines: int) -> str:
    """The last lines of a text as they stand, such as a traceback."""
    lines = [_one_line(line, LONGEST_TEXT, fold=False) for line in text.strip().splitlines()]
    shown = "\n".join(lines[-most_lines:])
    made = (c if c == "\n" else _entity(shown, at) for at, c in enumerate(shown))
    return f"<pre>{''.join(made)}</pre>"


def together(text: str) -> str:
    """What belongs on one line, such as a number and its unit; for our own text alone."""
    return text.replace(" ", "&nbsp;").replace("[", "&#91;").replace("]", "&#93;")


def _one_line(text: str, most: int, *, fold: bool = True) -> str:
    shown = plain(text.replace("\n", " ").replace("\r", " ").replace("\t", " "))
    shown = " ".join(shown.split()) if fold else shown.rstrip()
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _breaking(text: str) -> Iterator[str]:
    since, long = 0, len(text) > _UNBROKEN
    for at, character in enumerate(text):
        yield _entity(text, at)
        since = 0 if character == " " else since + 1
        may = (character in _BREAKS and since >= _SHORTEST_PART) or since >= _UNBROKEN
        if long and may and at + 1 < len(text):
            yield "<wbr>"
            since = 0


def _entity(text: str, at: int) -> str:
    """One character; what would begin a name or an address is kept from being put together."""
    character = text[at]
    if character in " …" or character.isalnum():
        return character
    address = text.startswith("://", at) or text[max(0, at - 3) : at + 1].lower() == "www."
    joint = "&#8203;" if character in "@#" or address else ""
    return f"&#{ord(character)};{joint}"
