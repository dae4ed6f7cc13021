"""Holds requests and answers against GitHub's API description; it serves nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator

Json = dict[str, Any]

FOLDER = Path(__file__).with_name("github")
_LONGEST_MESSAGE = 300
_FIRST_REDIRECT = 300
_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@_FORMATS.checks("uri")
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or bool(urlsplit(value).scheme)


@dataclass(frozen=True)
class Problems:
    """What is wrong with a request: against the description, or over a limit that it states."""

    violations: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operation:
    """One operation of the description; parameters are by place (path, query) and name."""

    id: str
    method: str
    pattern: re.Pattern[str]
    parameters: Mapping[tuple[str, str], Validator]
    required: frozenset[tuple[str, str]]
    body: Validator | None
    answers: Mapping[int, Validator | None]

    @property
    def success(self) -> int:
        """The status of its good answer."""
        return min(self.answers)

    def read(self, place: str, texts: Mapping[str, str]) -> dict[str, str | int]:
        """Parameters as the description types them; one that does not fit stays text."""
        return {name: self._typed(place, name, text) for name, text in texts.items()}

    def check_parameters(self, place: str, values: Mapping[str, str | int]) -> list[str]:
        """What is wrong with the parameters of the path or the query; empty when nothing is."""
        known = {name for where, name in self.parameters if where == place}
        wrong = [f"{place} parameter {name!r} is unknown" for name in values.keys() - known]
        wrong += [
            f"{place} parameter {name!r} is missing"
            for where, name in self.required
            if where == place and name not in values
        ]
        for name in values.keys() & known:
            errors = self.parameters[place, name].iter_errors(values[name])
            wrong += [f"{place} parameter {name!r}: {_told(error)}" for error in errors]
        return sorted(wrong)

    def check_body(self, body: Any) -> Problems:  # noqa: ANN401 (JSON)
        """What is wrong with a request's body; None is no body."""
        if self.body is None:
            return Problems() if body is None else Problems(("a body where none is taken",))
        if body is None:
            return Problems(("the body is missing",))
        violations, limits = [], []
        for error in self.body.iter_errors(body):
            if error.validator == "maxLength":
                allowed = f"Only {error.validator_value} characters are allowed"
                limits.append(f"{allowed}; {_length(error)} were supplied.")
            elif error.validator == "maxItems":
                allowed = f"No more than {error.validator_value} items are allowed"
                limits.append(f"{allowed}; {_length(error)} were supplied.")
            else:
                violations.append(f"body: {_told(error)}")
        return Problems(tuple(violations), tuple(limits))

    def check_answer(self, status: int, body: Any) -> list[str]:  # noqa: ANN401 (JSON)
        """What is wrong with a good answer's status and body; empty when nothing is."""
        if status not in self.answers:
            return [f"{self.id} does not answer {status}"]
        validator = self.answers[status]
        if validator is None:
            return [] if body is None else [f"{self.id} answers {status} with no body"]
        return [f"answer: {_told(error)}" for error in validator.iter_errors(body)]

    def _typed(self, place: str, name: str, text: str) -> str | int:
        validator = self.parameters.get((place, name))
        schema = validator.schema if validator else {}
        whole = isinstance(schema, Mapping) and schema.get("type") == "integer"
        return int(text) if whole and re.fullmatch(r"-?\d{1,19}", text) else text


@cache
def operations() -> tuple[Operation, ...]:
    """All operations, those with the most fixed segments first, so that the first match counts."""
    extract = json.loads((FOLDER / "api-extract.json").read_text(encoding="utf-8"))
    components = extract["components"]
    for name in ("pull-request", "pull-request-simple"):
        # The description does not say that the head's repository is null once its fork is deleted.
        head = components["schemas"][name]["properties"]["head"]["properties"]
        head["repo"] = {"nullable": True, "allOf": [head["repo"]]}
    schemas = {"schemas": _translated(components["schemas"], names=True)}
    listed = [
        (template, _operation(method, template, told, components | schemas))
        for template, methods in extract["paths"].items()
        for method, told in methods.items()
    ]
    return tuple(one for _, one in sorted(listed, key=lambda pair: -_fixed_segments(pair[0])))


@cache
def _examples() -> Mapping[str, str]:
    told = json.loads((FOLDER / "api-examples.json").read_text(encoding="utf-8"))
    return {id_: json.dumps(value) for id_, value in told.items()}


def example(operation_id: str) -> str:
    """The description's example of an answer, as JSON text."""
    return _examples()[operation_id]


def find(method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
    """The operation that a path (unquoted, without a prefix) asks for, and its path parameters."""
    for operation in operations():
        found = operation.pattern.fullmatch(path) if operation.method == method else None
        if found:
            return operation, found.groupdict()
    return None


def _operation(method: str, template: str, told: Json, components: Json) -> Operation:
    parameters = [_resolved(one, components) for one in told["parameters"]]
    manifold = {one["name"] for one in parameters if one.get("x-multi-segment")}
    body = told.get("requestBody")
    responses = {int(code): _resolved(one, components) for code, one in told["responses"].items()}
    return Operation(
        id=told["operationId"],
        method=method.upper(),
        pattern=_pattern(template, manifold),
        parameters={
            (one["in"], one["name"]): _validator(_translated(one["schema"])) for one in parameters
        },
        required=frozenset((one["in"], one["name"]) for one in parameters if one.get("required")),
        body=_validator(_translated(_schema(body), closed=True)) if body else None,
        answers={
            code: _validator({"allOf": [_translated(_schema(one))], "components": components})
            if "content" in one
            else None
            for code, one in responses.items()
            if code < _FIRST_REDIRECT
        },
    )


def _schema(message: Json) -> Json:
    schema: Json = message["content"]["application/json"]["schema"]
    return schema


def _resolved(told: Json, components: Json) -> Json:
    while "$ref" in told:
        _, _, kind, name = told["$ref"].split("/")
        told = components[kind][name]
    return told


def _pattern(template: str, manifold: Iterable[str]) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    groups = [f"(?P<{name}>{'.+' if name in manifold else '[^/]+'})" for name in parts[1::2]]
    literals = [re.escape(text) for text in parts[::2]]
    return re.compile("".join(a + b for a, b in zip(literals, [*groups, ""], strict=True)))


def _fixed_segments(template: str) -> int:
    return sum(not segment.startswith("{") for segment in template.split("/"))


def _validator(schema: Json) -> Validator:
    return jsonschema.Draft4Validator(schema, format_checker=_FORMATS)


def _translated(told: Any, *, closed: bool = False, names: bool = False) -> Any:  # noqa: ANN401 (JSON)
    """OpenAPI 3.0 as JSON Schema: ``nullable`` becomes null; a closed object has no other keys."""
    if isinstance(told, list):
        return [_translated(one, closed=closed) for one in told]
    if not isinstance(told, dict):
        return told
    schema = {
        key: _translated(value, closed=closed, names=not names and key == "properties")
        for key, value in told.items()
    }
    if names:
        return schema
    if closed and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    nullable = schema.pop("nullable", False)
    return {"anyOf": [{"type": "null"}, schema]} if nullable else schema


def _length(error: ValidationError) -> int:
    return len(error.instance) if isinstance(error.instance, (str, list)) else 0


def _told(error: ValidationError) -> str:
    found = best_match([error]) or error
    place = ".".join(map(str, found.absolute_path))
    return f"{place or 'the whole'}: {found.message[:_LONGEST_MESSAGE]}"
