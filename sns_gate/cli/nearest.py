"""An argument parser that names the nearest word to a mistyped one, as newer ones of Python do."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_EXIT_USAGE = 2
_CUTOFF = 0.6


class Parser(argparse.ArgumentParser):
    """Refuses what it does not know with what may have been meant, and where all is listed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 (argparse's own)
        super().__init__(*args, **kwargs)
        self._given: tuple[str, ...] = ()

    def parse_known_args(  # type: ignore[override]  # its second overload has names alone
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401 (argparse's own)
    ) -> tuple[Any, list[str]]:
        """As argparse, but what is left over is refused by the command that it was given to."""
        self._given = tuple(args or ())
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, what may have been meant, and end."""
        meant = "".join(f"; did you mean '{near}'?" for near in self._meant())
        where = f"'{self.prog} --help' lists what there is"
        self.exit(_EXIT_USAGE, f"{self.prog}: {message}{meant} ({where})\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 (argparse's own)
        choices = [] if action.choices is None else [str(choice) for choice in action.choices]
        if choices and value not in choices:
            near = nearest(str(value), choices)
            text = f"did you mean '{near}'?" if near else f"choose from {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"there is no '{value}'; {text}")

    def _meant(self) -> list[str]:
        """The nearest options to those among the given words that are none."""
        options = list(self._option_string_actions)
        words = [word.partition("=")[0] for word in self._given if word.startswith("-")]
        unknown = [word for word in words if not any(o.startswith(word) for o in options)]
        return [near for word in unknown if (near := nearest(word, options))]


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is nearest to a mistyped one, empty where none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=_CUTOFF)), "")
