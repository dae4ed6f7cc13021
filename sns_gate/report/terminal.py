"""A finished check for people at a terminal, or in a log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, TextIO, cast

from rich.console import Console
from rich.text import Text

from sns_gate.plain import InertLog, plain
from sns_gate.report import words
from sns_gate.report.inside import sentence
from sns_gate.report.table import table
from sns_gate.types import EnvironmentFingerprint, GateResult, Outcome, Verdict

_OUTCOME_STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red"}
_LOG_WIDTH = 140
_TRACEBACK_LINES = 12


def console_for(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Console:
    """A console that honours NO_COLOR, the terminal's width and its encoding.

    A runner's log is no terminal, even where it poses as one: it has lines and no width.
    """
    plain = not stream.isatty() or bool(environment.keys() & {"CI", "GITHUB_ACTIONS"})
    log = InertLog(stream) if "GITHUB_ACTIONS" in environment else stream
    return _Console(
        file=cast("IO[str]", log),
        highlight=False,
        soft_wrap=plain,
        width=_LOG_WIDTH if plain else None,
        force_interactive=False if plain else None,
    )


class _Console(Console):
    """Falls silent where its reader has left; what is under way goes on, and its result counts."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on, and leave the exit code to whoever knows it."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def command(console: Console, text: str) -> None:
    """Tell the runner that reads a workflow's log what to do; nothing elsewhere."""
    if isinstance(console.file, InertLog):
        console.file.command(text)


def render(result: GateResult, console: Console, *, quiet: bool = False) -> None:
    """Print everything about a finished check that fits a terminal.

    Args:
        result: finished or not.
        console: to print to.
        quiet: print the headline alone, and the cases that somebody has to look at.
    """
    if quiet:
        bad = [case for case in result.cases if words.needs_a_look(case)]
        if bad:
            console.print(table(bad, console))
        for case in bad:
            for reason in case.reasons[-1:] if case.speedup is None else ():
                console.print(Text(f"{plain(case.id)}: {plain(reason.text)} [{reason.code}]"))
        console.print(Text(words.headline(result), style=_style(result)))
        return
    console.print()
    console.print(table(result.cases, console))
    for line in _remarks(result):
        console.print(line)
    console.print()
    console.print(Text(words.headline(result), style=_style(result)))
    console.print(_facts(result))
    step = words.next_step(result)
    if step:
        console.print(Text(f"Next: {plain(step)}"))


def _style(result: GateResult) -> str:
    return _OUTCOME_STYLES.get(result.verdict, "bold yellow")


def _remarks(result: GateResult) -> list[Text]:
    """Reasons of the cases that need them, then what holds for the whole check."""
    bad = [case for case in result.cases if case.verdict in (Verdict.BROKEN, Verdict.WRONG)]
    lines = [line for found in words.tracebacks(bad) for line in _detail(*found, result)]
    shown: dict[tuple[str, str], list[str]] = {}
    for case in words.ordered(result.cases):
        for reason in case.reasons:
            cases = shown.setdefault((reason.code, reason.text), [])
            cases.extend([] if case.id in cases else [case.id])
    remarks = [
        Text.assemble((f"{_cases(ids, result)}: ", "bold"), f"{plain(text)} ", (f"[{code}]", "dim"))
        for (code, text), ids in shown.items()
    ]
    remarks += [
        Text.assemble(f"{plain(reason.text)} ", (f"[{reason.code}]", "dim"))
        for reason in result.disclosures
    ]
    causes = [
        Text.assemble((f"{plain(case.id)}: ", "bold"), plain(sentence(found, case.verdict)))
        for case in words.ordered(result.cases)
        if (found := case.explanation) is not None
    ]
    shown_lines = [*lines, *causes, *remarks]
    return [Text(""), *shown_lines] if shown_lines else []


def _detail(ids: list[str], detail: str, result: GateResult) -> list[Text]:
    last = detail.splitlines()[-_TRACEBACK_LINES:]
    return [
        Text(f"{_cases(ids, result)}:", style="bold"),
        *(Text(f"  {plain(t)}", "dim") for t in last),
    ]


def _cases(ids: list[str], result: GateResult) -> str:
    if len(ids) == len(result.cases) and len(ids) > 1:
        return "all cases"
    few = 3
    return ", ".join(map(plain, ids[:few])) + (
        f" and {len(ids) - few} more" if len(ids) > few else ""
    )


def _facts(result: GateResult) -> Text:
    seconds = f"{result.seconds:.0f} s, seed {result.seed}"
    ran = f"{result.processes} processes a side, {seconds}"
    found = (f"{one.name}: {_machine(one.candidate)}" for one in result.machines)
    machines = [plain(one) for one in found]
    device = plain(result.device)
    alone = ": ".join(filter(None, (device, _machine(result.candidate.fingerprint))))
    lines = [
        f"{words.counts(result.cases) or 'no case'}; tolerance {words.tolerance(result)}",
        f"baseline {words.revision(result.baseline)}, candidate {words.revision(result.candidate)}"
        + "".join(f", also against {words.revision(one)}" for one in result.further_baselines),
        *(machines or [alone]),
    ]
    return Text("\n".join([*lines[:-1], f"{lines[-1]}; {ran}"]), style="dim")


def _machine(found: EnvironmentFingerprint | None) -> str:
    if found is None:
        return ""
    parts = (
        found.gpu_name or found.cpu_model,
        found.driver_version and f"driver {found.driver_version}",
        found.torch_version and f"torch {found.torch_version}",
        found.triton_version and f"triton {found.triton_version}",
        found.python_version and f"Python {found.python_version}",
    )
    return ", ".join(plain(part) for part in parts if part)
