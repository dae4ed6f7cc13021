"""Makes ``docs/evidence.md`` from the compact results in ``docs/data``; no figure is typed.

``python -m studies.evidence`` writes the page; ``--keep NAME RESULT`` first keeps a study's result
as ``docs/data/NAME``, one of ``sns-gate check`` reduced to what the page needs; ``--add`` puts a
result's launches or kernels beside those that are kept of the same kind of machine. A name is its
study's and its machine's: ``demo.h200.json``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies import (
    bisecting,
    cost,
    demo,
    estimators,
    growth,
    peers,
    power,
    resampled,
    same_code,
    same_revision,
    several_devices,
    simulation,
    single_runs,
    soak,
    tiers_live,
)

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data"
PAGE = ROOT / "docs" / "evidence.md"
#: What is one machine's own in a text that others read.
_OWN_ID = re.compile(r"GPU-[0-9a-f-]{36}")
_OWN_FOLDER = re.compile(r"(/[\w.-]+)*/\.venv\b")


def keep(name: str, result: Path) -> None:
    """Keep a study's result, or a text such as what ``sns-gate doctor`` said."""
    DATA.mkdir(parents=True, exist_ok=True)
    text = result.read_text(encoding="utf-8")
    if name.startswith("demo."):
        text = json.dumps(demo.compact(result)) + "\n"
    if name.startswith("doctor."):
        text = _OWN_ID.sub("GPU-…", _OWN_FOLDER.sub(".venv", text))
    (DATA / name).write_text(text, encoding="utf-8")


def add(name: str, result: Path) -> None:
    """Put a result's launches, or its kernels, beside those that are kept.

    Raises:
        SystemExit: it was measured on another kind of machine, or holds nothing of that kind.
    """
    kept, found = (json.loads(path.read_text(encoding="utf-8")) for path in (DATA / name, result))
    machines = [data["machine"].rpartition(", ")[0] for data in (kept, found)]  # without the date
    if machines[0] != machines[1]:
        raise SystemExit(f"{result} is of '{machines[1]}', and {name} of '{machines[0]}'")
    if "launches" in kept:
        kept["launches"] += found["launches"]
    elif "runs" in kept:
        kept["runs"] += found["runs"]
    elif "kernels" in kept:
        kept["kernels"] |= found["kernels"]
    else:
        raise SystemExit(f"{name} has no launches, runs or kernels, so nothing can stand beside")
    (DATA / name).write_text(json.dumps(kept) + "\n", encoding="utf-8")


def render() -> str:
    """The page from what is kept."""
    parts = [
        "# Evidence\n",
        "Made by `python -m studies.evidence` from `docs/data`; every figure is measured.\n",
    ]
    sections: dict[str, Callable[[dict[str, Any], Path], list[str]]] = {
        "demo": lambda kept, _: demo.section(kept),
        "estimators": lambda kept, _: estimators.section(kept),
        "simulation": lambda kept, _: simulation.section(kept),
        "resampled": lambda kept, _: resampled.section(kept),
        "single_runs": lambda kept, path: single_runs.section(kept, f"data/{path.stem}.svg"),
        "same_revision": lambda kept, _: same_revision.section(kept),
        "growth": lambda kept, _: growth.section(kept),
        "peers": lambda kept, _: peers.section(kept),
        "power": lambda kept, _: power.section(kept),
        "same_code": lambda kept, _: same_code.section(kept),
        "several_devices": lambda kept, _: several_devices.section(kept),
        "bisecting": lambda kept, _: bisecting.section(kept),
        "cost": lambda kept, _: cost.section(kept),
        "soak": lambda kept, path: soak.section(kept, f"data/{path.stem}.svg"),
        "tiers_live": lambda kept, path: tiers_live.section(kept, f"data/{path.stem}.svg"),
    }
    for study, section in sections.items():
        for path in sorted(DATA.glob(f"{study}.*.json")):
            parts += section(json.loads(path.read_text(encoding="utf-8")), path)
    doctors = sorted(DATA.glob("doctor.*.txt"))
    if doctors:
        parts.append("## What `sns-gate doctor` says\n")
    for path in doctors:
        machine = path.stem.partition(".")[2].replace("-", " ")
        parts += [f"On {machine}:\n", "```text", path.read_text(encoding="utf-8").strip(), "```\n"]
    return "\n".join(parts)


def main() -> None:
    """Keep what is asked, draw, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--keep", "--add"):
        parser.add_argument(
            option, nargs=2, metavar=("NAME", "RESULT"), action="append", default=[]
        )
    asked = parser.parse_args()
    for name, result in asked.keep:
        keep(name, Path(result))
    for name, result in asked.add:
        add(name, Path(result))
    for study, draw in {"soak": soak.draw, "tiers_live": tiers_live.draw}.items():
        for path in DATA.glob(f"{study}.*.json"):
            draw(json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".svg"))
    for path in DATA.glob("single_runs.*.json"):
        checks = path.with_name(path.name.replace("single_runs", "same_revision"))
        kept, beside = (json.loads(p.read_text(encoding="utf-8")) for p in (path, checks))
        single_runs.draw(kept, beside, path.with_suffix(".svg"))
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
