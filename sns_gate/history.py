"""Past results in one SQLite file, for trends; no number of it ever becomes a baseline."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sns_gate.errors import UsageError
from sns_gate.types import EnvironmentFingerprint, GateResult, MeasurementTier

_SCHEMA_VERSION = 1
#: Other writers are waited for so long.
_PATIENCE_S = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, started_at TEXT NOT NULL,
    candidate TEXT NOT NULL, baseline TEXT NOT NULL, machine TEXT NOT NULL,
    fingerprint TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS cases (
    run INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL, verdict TEXT NOT NULL,
    tier TEXT NOT NULL, speedup REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
    baseline_ms REAL NOT NULL, candidate_ms REAL NOT NULL, mode TEXT NOT NULL,
    PRIMARY KEY (run, name)
);
"""
#: Fewer times say nothing about where they change.
_LEAST_TIMES, _LEAST_SEGMENT = 8, 3
#: What a change has to explain, in variances of the noise and logarithms of the number of times. Of
#: noise alone, 5 lets 5% of series of 10 and less than 1% of longer ones have a change; a change of
#: three standard deviations amid 20 is found 99 times in 100.
_PENALTY = 5.0


@dataclass(frozen=True)
class Point:
    """One check of one case.

    Attributes:
        started_at: ISO 8601, UTC.
        commit: the candidate's.
        verdict: of the case.
        tier: A or B.
        speedup: baseline / candidate in that check.
        low: lower end of its interval.
        high: upper end.
        candidate_ms: the candidate's time, comparable with others at tier A alone.
    """

    started_at: str
    commit: str
    verdict: str
    tier: str
    speedup: float
    low: float
    high: float
    candidate_ms: float


@dataclass(frozen=True)
class Trend:
    """A case on one kind of machine, oldest check first.

    Attributes:
        case: its id.
        machine: GPU or CPU, with what else its fingerprint's key covers.
        points: all checks.
        changes: indices into ``times`` at which the times change.
    """

    case: str
    machine: str
    points: tuple[Point, ...]
    changes: tuple[int, ...]

    @property
    def times(self) -> tuple[Point, ...]:
        """Checks whose times may be compared with each other: those of tier A."""
        return tuple(p for p in self.points if p.tier == MeasurementTier.A.value)


def add(path: Path, result: GateResult) -> int:
    """Keep the tier A and B cases of a complete result; how many were new.

    A result of a dirty working tree is no commit's, and is not kept.

    Raises:
        UsageError: the file is no history, or cannot be written.
    """
    commit = result.candidate.commit
    if commit is None or why_not(result):
        return 0
    kept = [
        (case.id, case.verdict.value, case.tier.value, case.speedup.estimate, case.speedup.low,
         case.speedup.high, case.baseline_ms, case.candidate_ms, case.mode or "")
        for case in result.cases
        if case.speedup is not None and case.baseline_ms and case.candidate_ms
        and case.tier in (MeasurementTier.A, MeasurementTier.B)
    ]  # fmt: skip
    found = result.candidate.fingerprint or EnvironmentFingerprint()
    run = (
        _key(result), result.started_at, commit, result.baseline.commit or result.baseline.ref,
        _machine(found), found.model_dump_json(),
    )  # fmt: skip
    with _opened(path) as database, database:
        database.execute("BEGIN IMMEDIATE")
        done = database.execute(
            "INSERT OR IGNORE INTO runs (key, started_at, candidate, baseline, machine,"
            " fingerprint) VALUES (?, ?, ?, ?, ?, ?)",
            run,
        )
        if not done.rowcount:
            return 0
        database.executemany(
            "INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(done.lastrowid, *row) for row in kept],
        )
    return len(kept)


def why_not(result: GateResult) -> str:
    """Why a result is not kept; empty where it is."""
    if not result.complete:
        return "the check did not finish"
    if any(reason.code == "changed-meanwhile" for reason in result.disclosures):
        return "the candidate changed while it was measured, so it is not known what was"
    if result.candidate.dirty:
        return "the candidate is a working tree with changes, and only checks of a commit are kept"
    return "" if result.candidate.commit else "it compares functions and not commits"


def trends(path: Path, wanted: str = "") -> list[Trend]:
    """Every case on every kind of machine whose id holds a text, by name.

    Raises:
        UsageError: there is no such file, or it is no history.
    """
    if not path.is_file():
        raise UsageError(
            f"there is no history at {path}; 'sns-gate history --add result.json' begins one, and "
            f"the setting 'history' has every check add to it"
        )
    rows: dict[tuple[str, str, str], list[Point]] = {}
    with _opened(path) as database:
        for name, machine, fingerprint, *point in database.execute(
            "SELECT name, machine, fingerprint, started_at, candidate, verdict, tier, speedup, low,"
            " high, candidate_ms FROM cases JOIN runs ON runs.id = cases.run"
            " ORDER BY name, machine, fingerprint, started_at, runs.id"
        ):
            if wanted in name:
                rows.setdefault((name, machine, fingerprint), []).append(Point(*point))
    return [
        Trend(case, machine, tuple(points), change_points(_tier_a_ms(points)))
        for (case, machine, _), points in rows.items()
    ]


def change_points(times_ms: Sequence[float]) -> tuple[int, ...]:
    """Where the level of a series of times changes: the index of each new level's first time.

    By ``ruptures``' exact search (Killick et al. 2012) on the logarithms.
    """
    if len(times_ms) < _LEAST_TIMES:
        return ()
    import numpy as np
    import ruptures

    logs = np.log(np.asarray(times_ms))
    # The noise from differences of neighbours, which a few changes of level do not touch.
    noise = float(np.median(np.abs(np.diff(logs)))) / (0.6745 * math.sqrt(2))
    penalty = _PENALTY * max(noise, 1e-6) ** 2 * math.log(len(logs))
    found = ruptures.Pelt(model="l2", min_size=_LEAST_SEGMENT, jump=1).fit(logs.reshape(-1, 1))
    return tuple(int(index) for index in found.predict(pen=penalty)[:-1])


def _tier_a_ms(points: Sequence[Point]) -> list[float]:
    return [p.candidate_ms for p in points if p.tier == MeasurementTier.A.value]


def _key(result: GateResult) -> str:
    """The same for the same result, so that adding it twice keeps it once."""
    found = result.candidate.fingerprint
    parts = (
        result.started_at, result.candidate.commit, result.baseline.commit, str(result.seed),
        result.shard, found.model_dump_json() if found else "",
        *(case.id for case in result.cases),
    )  # fmt: skip
    text = "\0".join(part or "" for part in parts)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _machine(found: EnvironmentFingerprint) -> str:
    parts = (
        found.gpu_name or found.cpu_model or "unknown machine",
        found.driver_version and f"driver {found.driver_version}",
        found.torch_version and f"torch {found.torch_version}",
    )
    return ", ".join(part for part in parts if part)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)) as database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _SCHEMA_VERSION):
                raise UsageError(
                    f"{path} is a history of schema {version}, which this version of sns-gate does "
                    f"not know; use the version that wrote it, or name another file"
                )
            if version == 0:
                database.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
                database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            yield database
    except sqlite3.Error as error:
        raise UsageError(
            f"{path} is no history that can be used ({error}); name another file, its folder must "
            f"exist"
        ) from None
