"""Checks in a row in one environment, some disturbed: whatever grows with their number is a leak.

``python -m studies.soak FILE [CHECKS]`` needs no GPU; it keeps its figures after every check.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import psutil

from studies.machine import describe

CHECKS = 500
#: Every so many checks one is disturbed, in each of these ways in turn.
EVERY = 10
USUAL = "undisturbed"
ENDINGS = ("a worker killed", "interrupted", "a broken candidate", "the check killed")
OPTIONS = ("--device", "cpu", "--processes", "3", "--placements", "1", "--tolerance", "90%")
_WORK = """import time


def work(n):
    time.sleep(n * 5e-7)
    return True
"""
_BROKEN = "def work(n):\n    raise ValueError('broken on purpose')\n"
_BENCH = """from pkg import work
from sns_gate import benchmark


@benchmark
def square():
    return lambda: work(2000)
"""
#: Moments after its workers have started at which a check is disturbed.
_LATEST_S = 0.5
_GONE_WITHIN_S = 5.0
_POLL_S = 0.02
_LIMIT_S = 120.0
#: Slopes are fitted to means of so many checks in a row, as the host's load lasts for some.
_BATCH = 20


@dataclass(frozen=True)
class Row:
    """What one check took and what was there after it.

    Attributes:
        ending: how it was disturbed.
        code: its exit code, negative for a signal.
        seconds: that it took.
        rss_mib: most memory that one of its processes held.
        descriptors: open in the process that drives all checks.
        processes: of its environment that still ran.
        tmp_bytes: below its folder for temporary files, compiler caches included.
        home_bytes: below its home, where tools keep caches.
        state_bytes: below its folder of locks and journals.
        git_bytes: below the repository's ``.git``.
        files: in the repository's working tree.
        worktrees: lines of ``git worktree list``.
        locks: that somebody still held.
    """

    ending: str
    code: int
    seconds: float
    rss_mib: float
    descriptors: int
    processes: int
    tmp_bytes: int
    home_bytes: int
    state_bytes: int
    git_bytes: int
    files: int
    worktrees: int
    locks: int


class Place:
    """One environment for all checks: repository, home, temporary files, locks."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "repository"
        self.home, self.tmp, self.state = (folder / name for name in ("home", "tmp", "state"))
        for made in (self.home, self.tmp, self.state):
            made.mkdir()
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        own = {"HOME": str(self.home), "TMPDIR": str(self.tmp), "PYTHONPATH": path}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SNS_GATE_", "XDG_"))}
        self.environment = kept | own
        files = {"pkg/__init__.py": _WORK, "benchmarks/bench_square.py": _BENCH,
                 ".gitignore": "result.json\n"}  # fmt: skip
        for name, text in files.items():
            (self.repository / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repository / name).write_text(text, encoding="utf-8")
        self.git("init", "--quiet")
        self.git("add", "--all")
        identity = ("-c", "user.name=study", "-c", "user.email=study@example.org")
        self.git(*identity, "commit", "--quiet", "--message", "baseline")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        done = subprocess.run(
            ["git", "-C", str(self.repository), *arguments],
            env=self.environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def check(self, ending: str, rng: random.Random) -> Row:
        """One check, disturbed in this way at a random moment, and what is there after it."""
        source = self.repository / "pkg/__init__.py"
        source.write_text(_BROKEN if ending == "a broken candidate" else _WORK, encoding="utf-8")
        start = time.perf_counter()
        check = subprocess.Popen(
            [sys.executable, "-m", "sns_gate", "check", *OPTIONS, "--baseline", "HEAD",
             "--state-dir", str(self.state)],
            cwd=self.repository, env=self.environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (a shell's child has it so)
        )  # fmt: skip
        if ending in ENDINGS and ending != "a broken candidate":
            self._disturb(check, ending, rng)
        _, status, usage = os.wait4(check.pid, 0)
        check.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        source.write_text(_WORK, encoding="utf-8")
        if ending == "the check killed":
            self._wait_until_gone()
        return Row(
            ending=ending,
            code=check.returncode,
            seconds=round(seconds, 2),
            rss_mib=round(usage.ru_maxrss / 1024, 1),
            descriptors=len(list(Path("/proc/self/fd").iterdir())),
            processes=len(self._running()),
            tmp_bytes=_bytes_below(self.tmp),
            home_bytes=_bytes_below(self.home),
            state_bytes=_bytes_below(self.state),
            git_bytes=_bytes_below(self.repository / ".git"),
            files=len(list(self.repository.rglob("*")))
            - len(list((self.repository / ".git").rglob("*"))),
            worktrees=len(self.git("worktree", "list").splitlines()),
            locks=sum(map(_is_held, self.state.glob("*.lock"))),
        )

    def _disturb(self, check: subprocess.Popen[bytes], ending: str, rng: random.Random) -> None:
        """Wait for the check's workers and a moment more, then do it to one of them or to it."""
        until = time.monotonic() + _LIMIT_S
        while not _workers(check.pid) and check.poll() is None and time.monotonic() < until:
            time.sleep(_POLL_S)
        time.sleep(rng.uniform(0, _LATEST_S))
        with contextlib.suppress(ProcessLookupError, IndexError):
            if ending == "a worker killed":
                os.kill(rng.choice(_workers(check.pid)), signal.SIGKILL)
            else:
                os.kill(check.pid, signal.SIGINT if ending == "interrupted" else signal.SIGKILL)

    def _wait_until_gone(self) -> None:
        until = time.monotonic() + _GONE_WITHIN_S
        while self._running() and time.monotonic() < until:
            time.sleep(_POLL_S)

    def _running(self) -> list[int]:
        """Processes of the checks, however far they went from their parents."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(str(self.tmp)):
                    found += [process.pid] if process.status() != psutil.STATUS_ZOMBIE else []
        return found


def _workers(pid: int) -> list[int]:
    with contextlib.suppress(psutil.Error):
        children = psutil.Process(pid).children()
        return sorted(c.pid for c in children if any("start.py" in word for word in c.cmdline()))
    return []


def _bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _is_held(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def run(file: Path, checks: int = CHECKS, every: int = EVERY, seed: int = 1) -> None:
    """So many checks; the file holds those that are done."""
    rng, begun = random.Random(seed), time.perf_counter()
    columns = [field.name for field in fields(Row)]
    kept: dict[str, Any] = {"machine": describe(), "options": OPTIONS, "every": every,
                            "columns": columns, "rows": []}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for number in range(1, checks + 1):
            turn, rest = divmod(number, every)
            row = place.check(USUAL if rest else ENDINGS[(turn - 1) % len(ENDINGS)], rng)
            kept["rows"].append(list(asdict(row).values()))
            file.write_text(json.dumps(kept) + "\n", encoding="utf-8")
            left_min = (time.perf_counter() - begun) / number * (checks - number) / 60
            print(
                f"{number}/{checks} {row.ending}: exit code {row.code}, {row.seconds:.1f} s; "
                f"about {left_min:.0f} min left",
                flush=True,
            )


#: What might grow, how it is called on the page, and how it is shown.
_SHOWN = {
    "seconds": ("seconds a check", "{:.2f}"),
    "rss_mib": ("largest process, MiB", "{:.1f}"),
    "descriptors": ("descriptors of the driving process", "{:.0f}"),
    "processes": ("processes", "{:.0f}"),
    "tmp_bytes": ("bytes of temporary files and compiler caches", "{:.0f}"),
    "home_bytes": ("bytes below its home", "{:.0f}"),
    "state_bytes": ("bytes of locks and journals", "{:.0f}"),
    "git_bytes": ("bytes of `.git`", "{:.0f}"),
    "files": ("files and folders of the working tree", "{:.0f}"),
    "worktrees": ("lines of `git worktree list`", "{:.0f}"),
    "locks": ("locks held", "{:.0f}"),
}


def rows_of(kept: dict[str, Any]) -> list[Row]:
    """The checks, first to last."""
    return [Row(**dict(zip(kept["columns"], row, strict=True))) for row in kept["rows"]]


def slope_per_100(numbers: Sequence[int], values: Sequence[float]) -> tuple[float, float, float]:
    """Change over 100 checks and its 95% interval, by least squares on means of batches.

    Args:
        numbers: of the checks, ascending.
        values: one a check; at least three batches of them.

    Raises:
        ValueError: there are fewer.
    """
    from scipy import stats

    batches = range(0, len(values) - _BATCH + 1, _BATCH)
    if len(batches) < 3:  # noqa: PLR2004 (a line through two points has no error)
        raise ValueError(f"a slope needs {3 * _BATCH} checks, got {len(values)}")
    x = [statistics.fmean(numbers[b : b + _BATCH]) for b in batches]
    y = [statistics.fmean(values[b : b + _BATCH]) for b in batches]
    if min(values) == max(values):
        return 0.0, 0.0, 0.0
    fit = stats.linregress(x, y)
    half = stats.t.ppf(0.975, len(batches) - 2) * fit.stderr
    return 100 * fit.slope, 100 * (fit.slope - half), 100 * (fit.slope + half)


def section(kept: dict[str, Any], plot: str) -> list[str]:
    """The study's part of the page; ``plot`` is where the checks are drawn."""
    rows = rows_of(kept)
    minutes = sum(row.seconds for row in rows) / 60
    return [
        "## Checks in a row\n",
        f"{kept['machine']}. {len(rows)} checks in {minutes:.0f} minutes in one environment "
        f"(repository, home, temporary files, locks), `{' '.join(kept['options'])}`; every "
        f"{kept['every']}th is disturbed, in each of {len(ENDINGS)} ways in turn. Read after each "
        f"check; slopes are of the undisturbed ones, by least squares on means of {_BATCH}. "
        f"{_verdict(rows)}\n",
        f"| after a check | median of the first {_BATCH} | of the last {_BATCH} "
        "| change in 100 checks [95% interval] |",
        "|---|---|---|---|",
        *(_slope_row(name, rows) for name in _SHOWN),
        "",
        "| the check was | times | exit codes | processes left, at most | worktrees | locks "
        "| bytes of temporary files |",
        "|---|---|---|---|---|---|---|",
        *(_ending_row(ending, rows) for ending in (USUAL, *ENDINGS)),
        "",
        f"After the check that follows a killed one, {_swept(rows)} bytes of temporary files were "
        f"there at most.\n",
        f"![Seconds, memory, and what is left, check by check]({plot})\n",
    ]


def _verdict(rows: Sequence[Row]) -> str:
    growing = [title for name, (title, _) in _SHOWN.items() if _slope(name, rows)[1] > 0]
    if not growing:
        return "Nothing grows: no interval lies above zero."
    return f"An interval lies above zero, so it grows: {', '.join(growing)}."


def _slope(name: str, rows: Sequence[Row]) -> tuple[float, float, float]:
    usual = [(n, float(getattr(row, name))) for n, row in enumerate(rows, 1) if row.ending == USUAL]
    numbers, values = zip(*usual, strict=True)
    return slope_per_100(numbers, values)


def _slope_row(name: str, rows: Sequence[Row]) -> str:
    title, form = _SHOWN[name]
    values = [getattr(row, name) for row in rows if row.ending == USUAL]
    first, last = (form.format(statistics.median(v)) for v in (values[:_BATCH], values[-_BATCH:]))
    slope, low, high = _slope(name, rows)
    change = (
        "none at all" if min(values) == max(values) else f"{slope:+.2g} [{low:+.2g}, {high:+.2g}]"
    )
    return f"| {title} | {first} | {last} | {change} |"


def _swept(rows: Sequence[Row]) -> int:
    pairs = itertools.pairwise(rows)
    return max((after.tmp_bytes for row, after in pairs if row.ending == ENDINGS[-1]), default=0)


def _ending_row(ending: str, rows: Sequence[Row]) -> str:
    own = [row for row in rows if row.ending == ending]
    codes = [row.code for row in own]
    counts = ", ".join(f"{code}: {codes.count(code)}" for code in sorted(set(codes)))
    most = (
        max((getattr(row, name) for row in own), default=0) - least
        for name, least in (("processes", 0), ("worktrees", 1), ("locks", 0), ("tmp_bytes", 0))
    )
    return f"| {ending} | {len(own)} | {counts} | {' | '.join(map(str, most))} |"


def draw(kept: dict[str, Any], path: Path) -> None:
    """Draw the checks as SVG, the same for the same figures."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "sns-gate"
    from matplotlib import pyplot as plt

    rows = rows_of(kept)
    figure, panels = plt.subplots(2, 2, figsize=(8, 4.5), layout="constrained", sharex=True)
    drawn = (("seconds",), ("rss_mib",), ("descriptors", "processes", "worktrees", "locks"),
             ("git_bytes", "tmp_bytes", "state_bytes", "home_bytes"))  # fmt: skip
    usual = [(number, row) for number, row in enumerate(rows, 1) if row.ending == USUAL]
    disturbed = [(number, row) for number, row in enumerate(rows, 1) if row.ending != USUAL]
    for axes, names in zip(panels.flat, drawn, strict=True):
        for name in names:
            title = _SHOWN[name][0].replace("`", "")
            values = [getattr(row, name) for _, row in usual]
            (line,) = axes.plot([n for n, _ in usual], values, linewidth=0.8, label=title)
            values = [getattr(row, name) for _, row in disturbed]
            axes.plot(
                [n for n, _ in disturbed], values, ".", markersize=2.5, color=line.get_color()
            )
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=6)
    for axes in panels[1]:
        axes.set_xlabel("checks (dots: disturbed)")
    panels[1][1].set_yscale("symlog", linthresh=1)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    run(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
