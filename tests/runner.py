"""A real runner: ``act`` executes workflows on this host, against a fake GitHub."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fake_github import FakeGitHub

ROOT = Path(__file__).resolve().parents[1]
_WHEELS = Path(sys.prefix) / "action-wheels"


def built_wheels() -> Path:
    """A folder with the gate's wheel, built now, beside those it needs, fetched once."""
    _WHEELS.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    wanted = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    kept = _WHEELS / "pyproject.toml"
    with (_WHEELS / ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists() or kept.read_text(encoding="utf-8") != wanted:
            subprocess.run([*pip, "--wheel-dir", str(_WHEELS), str(ROOT), "hatchling"], check=True)
            kept.write_text(wanted, encoding="utf-8")
        options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(_WHEELS)]
        subprocess.run([*pip, *options, str(ROOT)], check=True)
    return _WHEELS


def action_copied(folder: Path) -> Path:
    """The action as another repository's job finds it: what it needs, and nothing else."""
    folder.mkdir(parents=True)
    for name in ("action.yml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "sns_gate", folder / "sns_gate", ignore=ignored)
    return folder


def run_event(
    repository: Path,
    home: Path,
    hub: FakeGitHub,
    name: str,
    event: Mapping[str, object],
    options: Sequence[str] = (),
) -> tuple[int, str]:
    """The exit code and the log of the workflows that run for an event.

    Args:
        repository: where its files are.
        home: folder of the runner's own.
        hub: GitHub.
        name: of the event.
        event: its payload.
        options: further ones of ``act``.
    """
    path = home / "event.json"
    path.write_text(json.dumps(event), encoding="utf-8")
    done = subprocess.run(
        [str(Path(sys.prefix) / "bin/act"), name, "--eventpath", str(path),
         "--platform", "self-hosted=-self-hosted", "--no-cache-server",
         "--action-offline-mode", "--env", f"GITHUB_API_URL={hub.url}",
         "--env", "PIP_NO_COMPILE=1",
         "--env", f"GITHUB_REPOSITORY={hub.name}", "--secret", f"GITHUB_TOKEN={hub.token}",
         *options],
        cwd=repository, capture_output=True, text=True, check=False, timeout=170,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr
