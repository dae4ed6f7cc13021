"""Writes ``docs/reference`` from the code, so that no page says what the code does not.

``make docs`` runs it. What can only be said in words, such as how a command ends, stands here.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import sns_gate
from docs.docstrings import first_sentence, prose, signature
from sns_gate import adapters
from sns_gate.cli.parser import parser_for
from sns_gate.config import ENVIRONMENT_PREFIX, POLICY, TABLE, Settings, kebab, setting_options
from sns_gate.types import GateResult
from sns_gate.verdict import EXIT_MEANINGS, SEVERITY

FOLDER = Path(__file__).resolve().parent / "reference"
_MADE = "<!-- Written by `make docs` from the code; changes belong there. -->"

_JUDGED = "that of the result, below"
#: How each command ends; with 2 for its usage, 70, 130 and 143 any of them may.
ENDINGS: dict[str, dict[int | str, str]] = {
    "check": {"0 to 5": _JUDGED},
    "compare": {"0 to 5": _JUDGED},
    "explain": {0: "at least one case was taken apart", 3: "none was"},
    "bisect": {0: "the commit was found", 3: "the ends cannot be told apart, or not be measured"},
    "calibrate": {0: "a tolerance is recommended", 3: "none can be: too much was refused"},
    "report": {"0 to 5": "that of the result that is shown", 2: "no such file, or not a result"},
    "merge": {"0 to 5": "that of the one result", 2: "a shard is missing, or they do not fit"},
    "history": {0: "shown", 2: "there is no history"},
    "list": {0: "every benchmark file loads", 1: "one does not"},
    "init": {0: "written, or there already"},
    "post": {
        0: "posted, and the check's conclusion is no failure",
        "1 to 5": "posted, and it is: that of the result",
        2: "GitHub refused something, or there is no token",
        3: "GitHub could not be reached",
    },
    "doctor": {
        0: "verdicts are possible here; with --clocks: tier A was reached",
        3: "they are not; with --clocks: it was not",
    },
    "restore": {0: "given back, or nothing to give back", 3: "a check that runs has pinned them"},
    "schema": {0: "always"},
    "completion": {0: "always"},
}


def pages() -> dict[str, str]:
    """Each page by its file's name."""
    found = {
        "cli.md": _cli(),
        "configuration.md": _configuration(),
        "result.md": _result(),
        "python.md": _python(),
    }
    return {name: "\n".join([_MADE, "", *lines]).rstrip() + "\n" for name, lines in found.items()}


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{FOLDER / name}\n")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return [*lines, ""]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


# ------------------------------------------------------------------ commands


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every command with all its options."""
    parser = parser_for(tuple(ENDINGS))
    chosen = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 (argparse has no other way to ask)
    return dict(chosen.choices)


def _cli() -> list[str]:
    found = commands()
    lines = ["# Commands", "", parser_for(()).description or "", ""]
    lines += ["What `sns-gate COMMAND --help` says, as tables. Any command may end with 2, 70, 130 "
              "or 143 of the [exit codes](#exit-codes) too.", ""]  # fmt: skip
    helps = {name: _help_of(name) for name in found}
    lines += _table(
        ["command", "what it does"], [[f"[`{n}`](#sns-gate-{n})", helps[n]] for n in found]
    )
    for name, command in found.items():
        lines += _command(name, command, helps[name])
    lines += ["## Exit codes", ""]
    lines += _table(
        ["code", "when"], [[str(int(code)), text] for code, text in EXIT_MEANINGS.items()]
    )
    severe = ", ".join(str(int(code)) for code in SEVERITY)
    return [*lines, f"Where several hold, the most severe is given: {severe}."]


def _help_of(name: str) -> str:
    parser = parser_for(())
    chosen = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    return next(a.help or "" for a in chosen._choices_actions if a.dest == name)  # noqa: SLF001


#: The option that tells commands with all settings from those that have some by chance.
_OF_ALL_WITH_SETTINGS = "--tolerance"


def _command(name: str, command: argparse.ArgumentParser, help_: str) -> list[str]:
    given = [a for a in command._actions if a.dest != "help"]  # noqa: SLF001 (as above)
    options = {word for action in given for word in action.option_strings}
    settings = {f"--{option.name}" for option in setting_options()}
    if _OF_ALL_WITH_SETTINGS not in options:
        settings = set()
    own = [a for a in given if not settings & set(a.option_strings)]
    words = [_metavar(a) for a in given if not a.option_strings]
    usage = " ".join(
        ["sns-gate", name, *words, *(["[OPTIONS]"] if len(given) > len(words) else [])]
    )
    says = command.description or f"{help_[0].upper()}{help_[1:]}."
    lines = [f"## sns-gate {name}", "", "```text", usage, "```", "", says, ""]
    if own:
        lines += _table(["argument", "what it is"], [[_argument(a), _said(a)] for a in own])
    if settings:
        lacks = settings - options
        but = f", except {', '.join(f'`{name}`' for name in sorted(lacks))}" if lacks else ""
        lines += [f"And every [setting](configuration.md) as an option of its name{but}.", ""]
    if command.epilog:
        lines += ["```text", command.epilog, "```", ""]
    return [*lines, *_table(["ends with", "when"], [[str(c), t] for c, t in ENDINGS[name].items()])]


def _metavar(action: argparse.Action) -> str:
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _argument(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_metavar(action)}`"
    takes = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"`{word}{takes}`" for word in sorted(action.option_strings, reverse=True))


def _said(action: argparse.Action) -> str:
    return (action.help or "a shell").replace("%%", "%")


# ------------------------------------------------------------------ settings


def _configuration() -> list[str]:
    options = {option.name: option for option in setting_options()}
    lines = [
        "# Configuration",
        "",
        f"A setting stands in `sns-gate.toml`, or in `[{TABLE}]` of `pyproject.toml` (in one of "
        "them), under its name. An environment variable wins over the file, an option of the "
        "command line over both. An unknown name is an error that says which one is near.",
        "",
        "```toml",
        f"[{TABLE}]",
        'tolerance = "1%"        # or 0.01',
        'filter = ["softmax*"]   # what may be repeated is a list; in a variable, one value',
        "```",
        "",
        "**Policy** decides what passes. Where a pull request is judged (`policy-from = "
        '"baseline"`), it is read from the baseline\'s files, so that no change loosens its own '
        "gate; all else is read from the candidate's.",
        "",
        "`@benchmark` sets `tolerance` and `memory_tolerance` for its own cases.",
        "",
    ]
    for title, policy in (("Policy: what passes", True), ("How it is measured", False)):
        rows = [
            _setting(name, options.get(name))
            for name in map(kebab, Settings.model_fields)
            if (name in POLICY) is policy
        ]
        lines += [f"## {title}", ""]
        lines += _table(
            ["setting", "option and variable", "takes", "default", "what it does"], rows
        )
    return lines


def _setting(name: str, option: Any) -> list[str]:  # noqa: ANN401 (None where there is no option)
    field = Settings.model_fields[name.replace("-", "_")]
    variable = f"{ENVIRONMENT_PREFIX}{name.replace('-', '_').upper()}"
    how = f"`--{option.name} {option.metavar}`<br>`{variable}`" if option else "files alone"
    found = _DEFAULT.search(field.description or "")
    default = found[1] if found else _default(field.default)
    takes = _takes(Settings.model_json_schema()["properties"][name])
    return [f"`{name}`", how, takes, default, _DEFAULT.sub("", field.description or "")]


def _default(value: object) -> str:
    if value in (None, ()):
        return "none"
    return f"`{value}`"


_DEFAULT = re.compile(r" \(default: ([^)]*)\)")
_LIMITS = {
    "gt": "above",
    "ge": "at least",
    "lt": "below",
    "le": "at most",
    "exclusiveMinimum": "above",
    "minimum": "at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}


def _takes(schema: dict[str, Any]) -> str:
    """A setting's values in words, from its JSON schema."""
    one = next((s for s in schema.get("anyOf", [schema]) if s.get("type") != "null"), schema)
    if "enum" in one:
        return ", ".join(f"`{value}`" for value in one["enum"])
    if one.get("type") == "array":
        return "text or list of texts"
    kinds = {"integer": "whole number", "number": "number", "string": "text"}
    kind = "path" if one.get("format") == "path" else kinds[one["type"]]
    limits = [f"{word} {one[key]:g}" for key, word in _LIMITS.items() if key in one]
    return f"{kind} {', '.join(limits)}".strip()


# ------------------------------------------------------------------ result file


def _result() -> list[str]:
    schema = GateResult.model_json_schema()
    lines = [
        "# The result file",
        "",
        "What `--json` keeps: one JSON object, written anew after every case, with everything that "
        "any report needs. `sns-gate schema` prints its JSON schema, `sns-gate report` shows a "
        "file again. Names carry their units; `null` means that something could not be known or "
        "does not apply. A `schema_version` that is not 1 is another format.",
        "",
    ]
    parts = {"GateResult": schema, **schema["$defs"]}
    order = ["GateResult"]
    for name in order:  # grows: each part before what it is made of
        found = _REFERENCE.findall(json.dumps(parts[name].get("properties", {})))
        order += [one for one in dict.fromkeys(found) if one not in order]
    for name in order:
        lines += _model(name, parts[name])
    return lines


_REFERENCE = re.compile(r'"#/\$defs/(\w+)"')


def _model(name: str, part: dict[str, Any]) -> list[str]:
    lines = [f"## {name}", "", *_as_markdown(part.get("description", "")), ""]
    if "enum" in part:
        return [*lines, ", ".join(f"`{value}`" for value in part["enum"]) + ".", ""]
    rows = [
        [f"`{field}`", _type(of), of.get("description", "")]
        for field, of in part["properties"].items()
    ]
    return lines + _table(["field", "type", "meaning"], rows)


def _as_markdown(text: str) -> list[str]:
    return text.replace("``", "`").splitlines()


def _type(of: dict[str, Any]) -> str:
    """A field's type in words, with links to what it is made of."""
    if "$ref" in of:
        name = of["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in of:
        return " or ".join(_type(one) for one in of["anyOf"])
    if "const" in of or "enum" in of:
        return " or ".join(f"`{value}`" for value in of.get("enum", [of.get("const")]))
    if "prefixItems" in of:
        return f"[{', '.join(_type(one) for one in of['prefixItems'])}]"
    return _plain_type(of)


def _plain_type(of: dict[str, Any]) -> str:
    match of["type"]:
        case "array":
            return f"list of {_type(of['items'])}"
        case "object":
            return f"object of {_type(of['additionalProperties'])}"
        case "null":
            return "`null`"
        case "boolean":
            return "true or false"
        case other:
            return str(other)


# ------------------------------------------------------------------ Python


def _python() -> list[str]:
    names = [name for name in sns_gate.__all__ if not name.startswith("_")]
    things = {name: getattr(sns_gate, name) for name in names}
    lines = ["# Python", "", f"{first_sentence(sns_gate)}", ""]
    functions = [n for n in names if inspect.isfunction(things[n])]
    classes = [n for n in names if inspect.isclass(things[n])]
    for name in functions:
        lines += _callable(f"sns_gate.{name}", things[name], heading="##")
    lines += ["## sns_gate.adapters", "", first_sentence(adapters), ""]
    for name in sorted(adapters.__all__):
        lines += _callable(f"sns_gate.adapters.{name}", getattr(adapters, name), heading="###")
    lines += ["## Results", ""]
    for name in classes:
        lines += _class(name, things[name])
    for name in (n for n in names if inspect.ismodule(things[n])):
        lines += [f"## sns_gate.{name}", "", first_sentence(things[name]), ""]
        lines += _table(["name", "what it is"], list(_members(f"sns_gate.{name}")))
    return lines


def _callable(name: str, function: Any, *, heading: str) -> list[str]:  # noqa: ANN401
    code = ["```python", signature(name.rpartition(".")[2], function), "```", ""]
    return [f"{heading} {name}", "", *code, *prose(function)]


def _class(name: str, class_: type) -> list[str]:
    lines = [f"### sns_gate.{name}", "", *prose(class_)]
    if issubclass(class_, BaseModel) and "Attributes:" not in (class_.__doc__ or ""):
        lines += [", ".join(f"`{field}`" for field in class_.model_fields), ""]
    own = vars(class_).items()
    properties = [(n, v) for n, v in own if isinstance(v, property) and not n.startswith("_")]
    methods = [(n, v) for n, v in own if inspect.isfunction(v) and not n.startswith("_")]
    rows = [[f"`{n}`", first_sentence(v)] for n, v in properties]
    rows += [[f"`{signature(n, v)}`", first_sentence(v)] for n, v in methods]
    return lines + (_table(["name", "what it is"], rows) if rows else [])


def _members(module: str) -> Iterator[list[str]]:
    found = importlib.import_module(module)
    for name in found.__all__:
        thing = getattr(found, name)
        constructed = "__init__" in vars(thing) if inspect.isclass(thing) else False
        if inspect.isroutine(thing) or (constructed and not is_dataclass(thing)):
            yield [f"`{' '.join(signature(name, thing).split())}`", first_sentence(thing)]
        elif inspect.isclass(thing):
            yield [f"`{name}`", first_sentence(thing)]
        else:
            yield [f"`{name}`", f"`{thing!r}`"]


if __name__ == "__main__":
    main()
