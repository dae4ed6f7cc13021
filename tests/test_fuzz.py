"""Whatever is read from outside is understood or refused in one line: no traceback, no hang.

``SNS_FUZZ=20000 pytest tests/test_fuzz.py`` tries that many inputs of each kind.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from sns_gate import protocol
from sns_gate.config import Settings, kebab, parse_files, resolve
from sns_gate.errors import ConfigError, ResultFileError, UsageError, WorkerDied
from sns_gate.github.event import read_event
from sns_gate.report import json as result_file
from sns_gate.report import markdown, terminal
from sns_gate.worker.__main__ import answer
from sns_gate.worker.workbench import Workbench
from sns_gate.workers.process import WorkerProcess
from tests.test_report import CASES, result

_T = TypeVar("_T")
COUNT = int(os.environ.get("SNS_FUZZ", "150"))
fuzzed = settings(
    max_examples=COUNT, deadline=None, derandomize="SNS_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["", "\x00", "\x1b[31m", "1e400", "-1", "NaN", "../..", "a" * 5000, "2%"])
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def changed(draw: st.DrawFn, valid: Mapping[str, Any]) -> Any:  # noqa: ANN401 (JSON)
    """A valid document of which some parts are something else, gone, or doubled."""
    document: Any = copy.deepcopy(dict(valid))
    for _ in range(draw(st.integers(1, 3))):
        here = document
        while True:
            keys: list[Any] = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            deeper = isinstance(here[key], (dict, list)) and bool(here[key])
            if deeper and draw(st.booleans()):
                here = here[key]
                continue
            if draw(st.booleans()):
                here[key] = draw(VALUES)
            else:
                del here[key]
            break
    return document


def refused(kind: type[Exception], attempt: Callable[[], _T]) -> _T | None:
    """What comes of it; None where it is refused, in a message that a person can read."""
    said = ""
    try:
        return attempt()
    except kind as error:
        said = str(error)
    assert 10 < len(said) < 1000
    assert said.isprintable()
    return None


def dumped(value: object) -> str:
    return json.dumps(value, allow_nan=True)


# ------------------------------------------------------------------ configuration

KEYS = st.sampled_from([kebab(name) for name in Settings.model_fields]) | st.text(max_size=12)
TOML = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=20)


@fuzzed
@given(st.dictionaries(KEYS, TOML | st.lists(TOML, max_size=3), max_size=5))
def test_settings_of_any_kind(values: dict[str, Any]) -> None:
    try:
        text = tomlkit.dumps(values)
    except (ValueError, TypeError):
        return
    with contextlib.suppress(ConfigError):
        resolve(parse_files(text, None, ""))


@fuzzed
@given(st.text(max_size=200))
def test_files_that_are_no_settings(text: str) -> None:
    with contextlib.suppress(ConfigError):
        resolve(parse_files(None, text, ""))


# ------------------------------------------------------------------ result

VALID = json.loads(result(*CASES).model_dump_json())


@fuzzed
@given(changed(VALID))
def test_results_that_somebody_changed(document: Any) -> None:  # noqa: ANN401 (JSON)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        path.write_text(dumped(document), encoding="utf-8", errors="replace")
        found = refused(ResultFileError, lambda: result_file.read(path))
    if found is None:
        return
    text = markdown.comment(found)
    assert len(text.encode()) <= markdown.MOST_BYTES
    assert markdown.title(found)
    terminal.render(found, Console(file=io.StringIO(), width=100))


@fuzzed
@given(st.binary(max_size=400))
def test_files_that_are_no_result(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        path.write_bytes(data)
        with pytest.raises(ResultFileError):
            result_file.read(path)


# ------------------------------------------------------------------ event

EVENTS: dict[str, Any] = {
    "pull_request": {
        "number": 1,
        "pull_request": {"number": 1, "head": {"sha": "b" * 40, "repo": {"full_name": "o/r"}},
                         "base": {"sha": "a" * 40}},
    },
    "push": {"before": "a" * 40, "after": "b" * 40},
    "merge_group": {"merge_group": {"head_sha": "b" * 40, "base_sha": "a" * 40}},
    "workflow_run": {"workflow_run": {"head_sha": "b" * 40, "id": 1,
                                      "head_repository": {"full_name": "o/r"}}},
    "schedule": {"schedule": "* * * * *"},
}  # fmt: skip
VARIABLES = st.sampled_from(["o/r", "", "x", "\x00", "a/b/c", "b" * 40, "0" * 40, "https://x"])


@fuzzed
@given(st.data())
def test_events_that_github_does_not_send(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(EVENTS)))
    payload = data.draw(changed(EVENTS[name]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "event.json"
        path.write_text(dumped(payload), encoding="utf-8", errors="replace")
        environment = {
            "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "b" * 40,
        }  # fmt: skip
        changes = data.draw(st.dictionaries(st.sampled_from(sorted(environment)[2:]), VARIABLES))
        event = refused(UsageError, lambda: read_event(environment | changes))
    if event is None:
        return
    assert len(event.target.sha) in (40, 64)
    assert event.target.pull is None or event.target.pull > 0


# ------------------------------------------------------------------ messages

REPLIES: list[protocol.Reply] = [
    protocol.Ready(1, 2, ("a",), "u", 1.0),
    protocol.Loaded((protocol.CaseSpec("a", "f", 1, None, "auto"),), (), {"gpu_name": "x"}),
    protocol.Placed(0.1, 5),
    protocol.Calibrated(1.0, 1.0, False, True, 1.0, 1, 1, 1.0),  # noqa: FBT003 (in its order)
    protocol.Sampled(1.0, 1.0, 1.0, 1, 0),
    protocol.OutputWritten(1),
    protocol.Released(1),
    protocol.Proven(("a",), ()),
    protocol.Failed("raised", "x"),
]


class Validating(WorkerProcess):
    """What judges a worker's lines, without a process."""

    def __init__(self) -> None:
        self.name = "worker 0"

    def kill(self) -> None:
        """Nothing runs."""

    def judged(self, line: bytes) -> protocol.Reply:
        """The reply on a line."""
        return self._validated(line)


@fuzzed
@given(st.data())
def test_replies_that_no_worker_sends(data: st.DataObject) -> None:
    reply = data.draw(st.sampled_from(REPLIES))
    message = data.draw(changed(json.loads(protocol.encode(reply))))
    with contextlib.suppress(WorkerDied):
        Validating().judged(dumped(message).encode("utf-8", "replace"))


@fuzzed
@given(st.binary(max_size=300))
def test_lines_that_are_no_reply(line: bytes) -> None:
    with pytest.raises(WorkerDied):
        Validating().judged(line)


REQUESTS: list[protocol.Request] = [
    protocol.Place("a", 1, 2, protocol.Recipe("cold")),
    protocol.Rehearse("a", 1),
    protocol.Calibrate("auto"),
    protocol.WriteOutput("stem", 1),
    protocol.TakeSample(),
]


@fuzzed
@given(st.data())
def test_requests_that_no_gate_sends_are_answered(data: st.DataObject) -> None:
    request = data.draw(st.sampled_from(REQUESTS))
    message = data.draw(changed(json.loads(protocol.encode(request))))
    reply = answer(Workbench(), dumped(message).encode("utf-8", "replace"))
    assert isinstance(reply, protocol.Failed)
