"""The other end: what an outpost does for its coordinator, with the rig of any check."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sns_gate.errors import GateError, RefusedRun, UsageError, WorkerDied
from sns_gate.outpost import lines
from sns_gate.outpost.channel import Channel
from sns_gate.outpost.messages import (
    BlockDone,
    Close,
    Describe,
    Described,
    Done,
    Enlist,
    Enlisted,
    Keep,
    Look,
    Looked,
    Measure,
    Measured,
    Message,
    Open,
    Opened,
    Pair,
    Prepare,
    Prepared,
    Receive,
    StageBegun,
    TakeApart,
    TakenApart,
)
from sns_gate.protocol import Loaded
from sns_gate.revisions import Revision, unpack
from sns_gate.rig import Here, Rig, Station, Team
from sns_gate.session import Standing
from sns_gate.types import SIDES, Side

#: Who ends a job signals each of its processes, perhaps this one a moment after its workers.
_ENDS_WITHIN_S = 1.0


class _Heard:
    """Tells the coordinator how a case comes along."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def block_done(self, case: str, standing: Standing) -> None:
        """A block is done."""
        del case
        self._channel.say(BlockDone(standing=standing))


class FarEnd:
    """An outpost at work; as a context it gives everything back.

    Args:
        channel: to the coordinator.
        scratch: for received files, caches and logs.
        environment: the outpost's own variables.
    """

    def __init__(self, channel: Channel, scratch: Path, environment: Mapping[str, str]) -> None:
        self._channel, self._scratch, self._environment = channel, scratch, environment
        self._trees = scratch / "trees"
        self._rigs: list[Rig] = []
        self._here: Here | None = None
        self._moved: list[tuple[Path, Path]] = []
        self._station: Station | None = None
        self._kept, self._workers = ExitStack(), ExitStack()
        self._do: dict[type[Message], Callable[[Any], Message | None]] = {
            Look: self._look, Receive: self._receive, Prepare: self._prepare, Keep: self._keep,
            Enlist: self._enlist, Open: self._open, Measure: self._measure,
            Describe: self._describe, Close: self._close, TakeApart: self._take_apart,
        }  # fmt: skip

    def serve(self) -> None:
        """Answer until the coordinator hangs up, and leave nothing behind.

        Raises:
            Terminated: it hung up, or a signal came, while something was under way.
            ValueError: what came is no request.
        """
        with self._kept, self._workers:
            for request in self._channel.requests():
                try:
                    answer = self._do[type(request)](request)
                except GateError as error:
                    answer = lines.failure(error)
                if answer is not None:
                    self._channel.say(answer)

    def _look(self, asked: Look) -> Message:
        return Looked(
            everything=_holds(asked.file, asked.text)
            and all(_is_same(one.folder, one.inode, one.changed_ns) for one in asked.folders)
        )

    def _receive(self, part: Receive) -> Message | None:
        """Keep a part; once all are there, take them apart."""
        self._trees.mkdir(exist_ok=True)
        archive = self._trees / f"{part.tree}.tar.gz"
        with archive.open("ab") as file:
            file.write(base64.b64decode(part.data))
        if not part.last:
            return None
        unpack(archive, self._trees / part.tree)
        archive.unlink()
        return Done()

    def _prepare(self, asked: Prepare) -> Message:
        settings = asked.settings
        if asked.outside is not None:
            there = self._trees / "benchmarks"
            self._moved.append((there, asked.outside))
            settings = settings.model_copy(update={"benchmarks": there})
        for number, pair in enumerate(asked.pairs):
            sides = self._moved_here(pair) if asked.shipped else _sides(pair)
            scratch = self._scratch / f"rig-{number}"
            scratch.mkdir()
            self._rigs.append(Rig(settings, sides, scratch, self._environment))
        self._here = Here(self._rigs[0], self._rigs[1:])
        if self._here.count > 1:
            raise UsageError(
                f"--device {settings.device} names {self._here.count} devices there, and a "
                f"launcher is a place with one; repeat --launcher for more, each so that it sees "
                f"one device, as by 'env CUDA_VISIBLE_DEVICES=1' at its end"
            )
        if asked.shipped:
            self._here.prepare(self._stage)
        return Prepared(device=self._here.device)

    def _moved_here(self, pair: Pair) -> dict[Side, Revision]:
        """The same revisions with the folders that were received."""
        names: dict[Side, str] = {"baseline": pair.tree, "candidate": "candidate"}
        found: dict[Side, Revision] = {}
        for side, revision in _sides(pair).items():
            root = self._trees / names[side]
            prefix = self._trees / f"{names[side]}-prefix"
            prefix.mkdir(exist_ok=True)
            self._moved.append((root, revision.root))
            home = self._trees / ("candidate" if pair.candidate.in_place else "repository")
            found[side] = replace(revision, root=root, prefix=prefix, repository=home)
        return found

    def _keep(self, asked: Keep) -> Message:
        self._kept.enter_context(self._prepared.to_themselves(self._stage, asked.check))
        return Done()

    def _enlist(self, asked: Enlist) -> Message:
        with self._prepared.own_cases(self._rigs[asked.pair]) as own:
            return Enlisted(loaded=self._as_there(own()))

    def _open(self, asked: Open) -> Message:
        self._workers.close()
        team = Team(self._rigs[asked.pair], references=asked.references)
        opening = self._prepared.stations(team, asked.name, asked.processes)
        (self._station,) = self._workers.enter_context(opening)
        loaded = self._station.loaded
        return Opened(
            loaded={side: self._as_there(loaded[side]) for side in SIDES},
            disclosures=tuple(self._station.disclosures),
            fingerprint=self._station.fingerprint(),
        )

    def _measure(self, asked: Measure) -> Message:
        outcome = self._opened.measure(
            asked.case, time.monotonic() + asked.seconds, _Heard(self._channel), asked.cases
        )
        if any(reason.code == WorkerDied.code for reason in outcome.result.reasons):
            time.sleep(_ENDS_WITHIN_S)  # if the place ends too, that is why, and it cannot answer
        return Measured(outcome=outcome)

    def _describe(self, known: Describe) -> Message:
        baseline, candidate = self._opened.describe((known.baseline, known.candidate))
        return Described(baseline=baseline, candidate=candidate)

    def _close(self, _: Close) -> Message:
        self._station = None
        self._workers.close()
        return Done()

    def _take_apart(self, asked: TakeApart) -> Message:
        team = Team(self._rigs[asked.pair], references=asked.references)
        parts = self._prepared.taken_apart(team, asked.cases)
        for number, (_, found) in enumerate(parts):
            self._channel.say(TakenApart(number=number, found=found))
        return Done()

    @property
    def _prepared(self) -> Here:
        if self._here is None:
            raise RefusedRun("place-lost", "nothing has been prepared here; check again")
        return self._here

    @property
    def _opened(self) -> Station:
        if self._station is None:
            raise RefusedRun("place-lost", "no workers are open here; check again")
        return self._station

    def _stage(self, text: str) -> None:
        self._channel.say(StageBegun(text=text))

    def _as_there(self, loaded: Loaded | None) -> Loaded | None:
        """The same with files named as the coordinator has them."""
        if loaded is None:
            return None
        named = self._named_there
        return replace(
            loaded,
            cases=tuple(
                replace(case, file=named(case.file), source=named(case.source))
                for case in loaded.cases
            ),
            failures=tuple(replace(one, file=named(one.file)) for one in loaded.failures),
            fell_back=tuple(map(named, loaded.fell_back)),
        )

    def _named_there(self, file: str) -> str:
        for here, there in self._moved:
            if Path(file).is_relative_to(here):
                return str(there / Path(file).relative_to(here))
        return file


def _sides(pair: Pair) -> dict[Side, Revision]:
    return {"baseline": pair.baseline, "candidate": pair.candidate}


def _holds(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _is_same(folder: Path, inode: int, changed_ns: int) -> bool:
    """Whether this is the very folder, since a copy has another inode."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return (found.st_ino, found.st_mtime_ns) == (inode, changed_ns)
