"""Text of anybody made plain, so that it drives neither a terminal nor a workflow's runner."""

from __future__ import annotations

import re
from typing import TextIO

#: What a runner takes for a command: at the start of a line, or of its older kind anywhere.
_AT_START = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_ANYWHERE = "##["


def plain(text: str) -> str:
    """Text on one line without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain_lines(text: str) -> str:
    """The same of several lines."""
    return "\n".join(map(plain, text.expandtabs().split("\n")))


def inert(lines: str) -> str:
    """Whole lines of a workflow's log, in which the runner finds no command."""
    return _AT_START.sub(r"\1: ", lines.replace(_ANYWHERE, "## ["))


class InertLog:
    """A workflow's log whose lines command nothing, beside those that are meant to.

    Args:
        stream: that the runner reads; written to in whole lines.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, lines: str) -> int:
        """Write what anybody may have said."""
        return self._stream.write(inert(lines))

    def command(self, text: str) -> None:
        """Write what the runner is to do."""
        self._stream.write(f"{text}\n")

    def flush(self) -> None:
        """Hand on what was written."""
        self._stream.flush()

    def fileno(self) -> int:
        """Of the stream."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Never: nobody sits there."""
        return False

    @property
    def encoding(self) -> str:
        """Of the stream."""
        return self._stream.encoding
