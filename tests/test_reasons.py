"""docs/reasons.md explains every code that a verdict may carry, and none that it may not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Codes that are a verdict's own word or are made from an error.
COMPUTED = {"added", "removed", "out-of-memory"}


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Constants that stand as a reason's code, in whichever way a reason is made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = [k.value for k in node.keywords if k.arg == "code"]
            if name in ("disqualify", "disclose"):
                given += node.args[:1]
            yield from _texts(given)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "code":
            yield from _texts([node.value])


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def documented() -> set[str]:
    text = (ROOT / "docs/reasons.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {code for row in rows for code in re.findall(r"`([a-z-]+)`", row)}


def test_every_code_is_explained_and_every_explained_code_exists() -> None:
    files = sorted((ROOT / "sns_gate").rglob("*.py"))
    found = {
        code for file in files for code in codes_in(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert len(found) > 30, "the codes are made in another way now"
    assert documented() == found | COMPUTED
