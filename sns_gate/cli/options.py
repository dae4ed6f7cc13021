"""Options that several commands share, and their help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

DEFAULT_RESULT = "result.json"


def add_revisions(command: argparse.ArgumentParser) -> None:
    """Which revisions are compared."""
    command.add_argument(
        "--baseline",
        metavar="REF",
        help="revision to compare with (default: the merge base with the default branch, the "
        "remote's where there is one)",
    )
    command.add_argument(
        "--candidate",
        metavar="REF",
        help="revision to judge (default: the working tree as it is, uncommitted changes included)",
    )


def add_result(command: argparse.ArgumentParser) -> None:
    """Where the result is kept, and how much is said meanwhile."""
    command.add_argument(
        "--json",
        metavar="FILE",
        default=DEFAULT_RESULT,
        help=f"where the result is kept, saved after every case (default: {DEFAULT_RESULT})",
    )
    add_quiet(command).add_argument(
        "--verbose",
        "-v",
        dest="detail",
        action="store_const",
        const="verbose",
        help="print a line a block: pairs so far, the interval as it narrows, the tier so far",
    )


def add_quiet(command: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """How little is said."""
    group = command.add_mutually_exclusive_group()
    group.add_argument(
        "--quiet",
        "-q",
        dest="detail",
        action="store_const",
        const="quiet",
        default="usual",
        help="print the headline alone, and the cases that somebody has to look at",
    )
    return group


def add_settings(
    command: argparse.ArgumentParser, *, of_revisions: bool, without: Sequence[str] = ()
) -> None:
    """Every setting is an option of the same name."""
    from sns_gate.config import setting_options

    for option in setting_options():
        if (option.of_revisions and not of_revisions) or option.name in without:
            continue
        command.add_argument(
            f"--{option.name}",
            metavar=option.metavar,
            action="append" if option.repeats else "store",
            default=None,
            help=option.help.replace("%", "%%"),
        )


class KeptLines(argparse.HelpFormatter):
    """Wraps a text of one line, and leaves one that has lines of its own."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class CheckHelp(argparse.Action):
    """Shows the help with the exit codes behind it."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002 (argparse's name)
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        """Print it and end."""
        from sns_gate.verdict import EXIT_MEANINGS

        del namespace, values, option_string
        rows = "\n".join(f"  {int(code):>3}  {text}" for code, text in EXIT_MEANINGS.items())
        parser.epilog = "\n\n".join(filter(None, (parser.epilog, f"exit codes:\n{rows}")))
        parser.print_help()
        parser.exit(0)
