"""The plotting library and its data, packed for a page that unpacks them when a plot is wanted."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import dataclass
from functools import lru_cache

#: Elements that the library looks for before it adds a style of its own, for maps, which the page's
#: policy would refuse; where they are there it adds none.
_STYLE_GUARD = re.compile(r'document\.getElementById\("([0-9a-f]{64})"\)')


@dataclass(frozen=True)
class Library:
    """A script that draws plots.

    Attributes:
        source: as it will run.
        packed: the same, gzip and base64.
        guards: ids of elements that keep it from adding styles.
    """

    source: str
    packed: str
    guards: tuple[str, ...]


@lru_cache(maxsize=1)
def library() -> Library:
    """The library that comes with the package plotly; its licence stands in its first lines."""
    from plotly.offline import get_plotlyjs

    # A script element's text has no carriage returns, so neither has what is hashed.
    source = str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")
    return Library(source, packed(source), tuple(sorted(set(_STYLE_GUARD.findall(source)))))


def packed(text: str) -> str:
    """A text as gzip in base64, which browsers unpack by themselves and no text can act in."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
