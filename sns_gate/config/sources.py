"""Where settings stand: file, environment and command line, and which of them wins."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sns_gate.config.settings import POLICY, Settings, kebab
from sns_gate.errors import ConfigError

TABLE = "tool.sns-gate"
FILE = "sns-gate.toml"
#: Where settings of a revision may stand: in a file of their own, or in a table of the project's.
FILES = (FILE, "pyproject.toml")
ENVIRONMENT_PREFIX = "SNS_GATE_"
#: What fits, by the type of pydantic's error.
_WRITE = {
    "float_parsing": "a number",
    "float_type": "a number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "literal_error": "{expected}",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "path_type": "a path in quotes",
    "tuple_type": "a list of texts",
}


@dataclass(frozen=True)
class Source:
    """Raw settings under their kebab-case names, and where they stand."""

    name: str
    values: Mapping[str, object]


def read_file(root: Path) -> Source:
    """The settings of ``sns-gate.toml`` or of ``[tool.sns-gate]`` under this folder.

    Raises:
        ConfigError: both exist, one is not valid TOML, or a key is unknown.
    """
    own, shared = (_text(root / name) for name in FILES)
    return parse_files(own, shared, f"{root}/")


def parse_files(own: str | None, shared: str | None, where: str) -> Source:
    """The same from the files' texts, None where there is no such file.

    Args:
        own: of ``sns-gate.toml``.
        shared: of ``pyproject.toml``.
        where: what their names in a message begin with.

    Raises:
        ConfigError: as ``read_file``.
    """
    named, tabled = (where + name for name in FILES)
    table = _toml(shared, tabled).get("tool", {}) if shared is not None else {}
    inside = table.get("sns-gate") if isinstance(table, dict) else None
    if own is not None and inside is not None:
        raise ConfigError(
            f"both {named} and [{TABLE}] in {tabled} exist, so it is unclear which one holds; "
            f"move everything into one of them"
        )
    values = _toml(own, named) if own is not None else inside or {}
    name = named if own is not None else f"[{TABLE}] in {tabled}"
    if isinstance(values, dict) and "shard" in values:
        raise ConfigError(
            f"{name} sets a shard, by which every check would leave cases out unseen; give it to "
            f"one check with --shard I/N"
        )
    if not isinstance(values, dict):
        raise ConfigError(f"{name} must be a table of settings")
    _refuse_unknown(values, name)
    return Source(name, values)


def read_environment(environment: Mapping[str, str]) -> Source:
    """The settings of variables such as ``SNS_GATE_TOLERANCE``.

    Raises:
        ConfigError: a variable with the prefix names no setting.
    """
    values = {
        kebab(name.removeprefix(ENVIRONMENT_PREFIX).lower()): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX)
    }
    _refuse_unknown(values, "the environment")
    return Source("the environment", values)


@dataclass(frozen=True)
class Layers:
    """What lies above the configuration file, weakest first.

    Attributes:
        environment: settings from variables.
        command_line: settings from options.
    """

    environment: Source
    command_line: Source

    def policy_from(self, baseline_file: Source) -> str:
        """Whose policy holds: a change has no say in that, so no candidate's file is asked."""
        said = {k: v for k, v in baseline_file.values.items() if k == "policy-from"}
        return self.over(Source(baseline_file.name, said)).policy_from

    def over(self, file: Source) -> Settings:
        """The settings where this file lies below; as ``resolve``."""
        return resolve(file, self.environment, self.command_line)

    def governed(self, file: Source, policy_file: Source) -> Settings:
        """The same, but what passes is said by another revision's file, or by the defaults."""
        measuring = {key: v for key, v in file.values.items() if key not in POLICY}
        policy = {key: v for key, v in policy_file.values.items() if key in POLICY}
        return resolve(
            Source(file.name, measuring),
            Source(policy_file.name, policy),
            self.environment,
            self.command_line,
        )


def resolve(*sources: Source) -> Settings:
    """Merge sources, the last one winning, and validate.

    Raises:
        ConfigError: a value does not fit; the message names key, source and what would fit.
    """
    merged: dict[str, object] = {}
    origin: dict[str, str] = {}
    for source in sources:
        merged.update(source.values)
        origin.update(dict.fromkeys(source.values, source.name))
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_explain(error, origin)) from None


def _text(path: Path) -> str | None:
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}; correct it there") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _toml(text: str, name: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}; correct it there") from None


def _refuse_unknown(values: Mapping[str, object], where: str) -> None:
    known = [kebab(name) for name in Settings.model_fields]
    for key in values:
        if key not in known:
            if key == "tool":
                raise ConfigError(
                    f"{where} has a table [{TABLE}], which belongs into pyproject.toml; leave its "
                    f"header out here"
                )
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}"
            raise ConfigError(f"unknown setting '{key}' in {where}; {hint}")


def _explain(error: ValidationError, origin: Mapping[str, str]) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        text = _in_our_words(problem)
        where = f" in {origin[key]}" if key in origin else ""
        given = f", got {problem['input']!r}" if key else ""
        lines.append(f"setting '{key}'{where}: {text}{given}" if key else text)
    return "\n".join(lines)


def _as_percent(given: object) -> str:
    """What a number of 1 and more probably meant."""
    return f" ({given}% for {given} percent)" if not str(given).endswith("%") else ""


def _in_our_words(problem: ErrorDetails) -> str:
    """What to write; pydantic's own words say what a type is, which helps nobody here."""
    if problem["type"] == "less_than" and problem.get("ctx", {}).get("lt") == 1:
        return f"write a share below 1, such as 2% or 0.02{_as_percent(problem['input'])}"
    template = _WRITE.get(problem["type"])
    if template is None:
        return problem["msg"].removeprefix("Value error, ")
    return "write " + template.format_map(problem.get("ctx", {}))
