"""Files that the gate itself wrote into a working tree: they are no part of what is judged."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection
from pathlib import Path

_HEAD_BYTES = 16 << 10
#: How each kind of file begins, or what stands near its beginning, as the gate writes it.
_MARKS = (
    re.compile(rb'\s*\{"schema_version":\d+,"tool_version":"'),  # a result, also one put aside
    re.compile(rb"<!doctype html>.*?<title>sns-gate: ", re.DOTALL),  # a report, a history's page
    re.compile(rb"<\?xml [^>]*>\s*<testsuites>\s*<testsuite name=\"sns-gate\""),  # JUnit's
    re.compile(rb"SQLite format 3\0.*candidate TEXT NOT NULL, baseline TEXT NOT NULL", re.DOTALL),
    re.compile(rb'\{\s*"rounds": \d+,\s*"tolerance": [^,]*,\s*"placements": '),  # a calibration
    re.compile(rb'\{\s*"good": "[0-9a-f]{40}",\s*"bad": "'),  # a bisection
)
#: Beside a history's file while, or after, somebody writes to it.
_BESIDE = ("-journal", "-wal", "-shm")
_BUILDS = ".builds"


def is_output(file: Path, named: Collection[Path]) -> bool:
    """Whether a file is one that the gate wrote, by its name in this run or by how it begins.

    Args:
        file: absolute; it may be gone.
        named: files that this run writes, absolute.
    """
    if file in named:
        return True
    for ending in _BESIDE:
        if file.name.endswith(ending):
            return _begins_as_ours(file.with_name(file.name.removesuffix(ending)))
    kept = [folder for folder in file.parents if folder.name.endswith(_BUILDS)]
    states = [folder.with_name(folder.name.removesuffix(_BUILDS)) for folder in kept]
    return any(map(_begins_as_ours, (file, *states)))


def _begins_as_ours(file: Path) -> bool:
    with contextlib.suppress(OSError), file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
        return any(mark.match(head) for mark in _MARKS)
    return False
