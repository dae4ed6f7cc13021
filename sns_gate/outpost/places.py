"""Measuring where launchers lead: one station a launcher, and what is lost with one that ends."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from sns_gate import protocol
from sns_gate.config import Settings
from sns_gate.outpost.launched import Launched, command_of, launcher_environment
from sns_gate.outpost.messages import (
    Done,
    Enlist,
    Enlisted,
    Event,
    Keep,
    Open,
    Pair,
    Prepare,
    Prepared,
    StageBegun,
    TakeApart,
    TakenApart,
)
from sns_gate.outpost.near import Outpost
from sns_gate.outpost.station import RemoteStation
from sns_gate.rig import FunctionsRig, Rig, Stage, Team, all_at_once, refuse_unlike
from sns_gate.session import PlannedCase
from sns_gate.types import SIDES, Explanation, Reason


@contextmanager
def outposts(
    rigs: Sequence[Rig], scratch: Path, environment: Mapping[str, str], stage: Stage
) -> Iterator[Outposts]:
    """Start what every launcher is to start, and end all of it again.

    Args:
        rigs: the check's own, then those of further baselines.
        scratch: of the check, for logs.
        environment: the gate's own variables.
        stage: hears what takes seconds.

    Raises:
        UsageError: this interpreter's path would not reach the other end.
        RefusedRun: a launcher could not be run, nothing answered, or another version did.
    """
    settings = rigs[0].settings
    logs = scratch / "launchers"
    logs.mkdir()
    count = len(settings.launcher)
    stage(f"starting {settings.launcher[0] if count == 1 else f'{count} launchers'}")
    with ExitStack() as stack:
        launched = []
        for number, name in enumerate(_names(settings.launcher)):
            command = command_of(settings.launcher[number], settings.launcher_python)
            log = logs / f"{number}.log"
            one = Launched(name, command, launcher_environment(environment), log)
            stack.callback(one.end)
            launched.append(one)

        def leave() -> None:
            for one in launched:
                one.leave()

        stack.callback(leave)  # all at once, before any is waited for
        greet = [partial(one.greet, settings.lock_timeout) for one in launched]
        all_at_once(greet, leave)
        yield Outposts(rigs, scratch, [Outpost(one) for one in launched])


def _names(launchers: Sequence[str]) -> Iterator[str]:
    """Each launcher's own words, numbered where they are given more than once."""
    for number, launcher in enumerate(launchers):
        earlier = launchers[:number].count(launcher)
        yield f"{launcher} #{earlier + 1}" if launchers.count(launcher) > 1 else launcher


class Outposts:
    """All places that launchers lead to; as ``Places``."""

    def __init__(self, rigs: Sequence[Rig], scratch: Path, there: Sequence[Outpost]) -> None:
        self._rigs, self._scratch, self._there = rigs, scratch, there

    @property
    def device(self) -> str:
        """The devices there, each name once."""
        return ", ".join(dict.fromkeys(one.device for one in self._there))

    @property
    def count(self) -> int:
        """Cases that are measured at the same time."""
        return sum(not one.lost for one in self._there) or 1

    @property
    def is_named(self) -> bool:
        """Whether each case says where it was measured; so it does."""
        return True

    def prepare(self, stage: Stage) -> None:
        """Ship both sides where they are not seen, and build them where they are measured.

        Raises:
            RevisionError: a build failed, or a file cannot be shipped.
            RefusedRun: a place was lost.
        """
        sees = self._who_sees()
        blind = [one for one in self._there if not sees[one.name]]
        if blind:
            stage(f"shipping both sides to {', '.join(one.name for one in blind)}")
            self._all(blind, self._ship)
        if len(blind) < len(self._there) and self._rigs[0].settings.build:
            self._rigs[0].build(stage)
            for rig in self._rigs[1:]:
                rig.build(stage, ("baseline",))
        self._all(self._there, lambda one: self._prepare(one, stage, shipped=one in blind))

    @contextmanager
    def to_themselves(self, stage: Stage) -> Iterator[None]:
        """Keep other checks off the devices until the outposts end."""
        asked = Keep(check=secrets.token_hex())
        self._all(self._there, lambda one: one.ask(asked, Done, _staged(one, stage)))
        yield

    @contextmanager
    def own_cases(self, rig: Rig | FunctionsRig) -> Iterator[Callable[[], protocol.Loaded | None]]:
        """The baseline's own cases, listed where the others are measured."""
        request = Enlist(pair=self._number(rig))
        yield lambda: self._first.ask(request, Enlisted).loaded

    @contextmanager
    def stations(self, team: Team, name: str, processes: int) -> Iterator[list[RemoteStation]]:
        """Start these workers everywhere, and end them again; those that are lost come last.

        Raises:
            RefusedRun: places are unlike, or fewer than three workers a side could start.
            WorkerError: a worker could not start for another reason.
        """
        asked = Open(
            pair=self._number(team.rig), references=team.references, name=name,
            processes=processes,
        )  # fmt: skip
        living = [one for one in self._there if not one.lost] or self._there[:1]
        found = [RemoteStation(one) for one in living]
        all_at_once([partial(station.open, asked) for station in found], self._leave)
        found.sort(key=lambda station: station.lost)
        refuse_unlike([station for station in found if not station.lost] or found[:1])
        try:
            yield found
        finally:
            for station in found:
                station.end_workers()

    def taken_apart(
        self, team: Team, cases: Sequence[PlannedCase]
    ) -> Iterator[tuple[PlannedCase, Explanation | Reason | None]]:
        """Each case with its explanation, or why it has none, from one of the places."""
        found: list[TakenApart] = []

        def hear(event: Event) -> None:
            if isinstance(event, TakenApart):
                found.append(event)

        self._first.ask(
            TakeApart(
                pair=self._number(team.rig), references=team.references, cases=tuple(cases)
            ),
            Done,
            hear,
        )  # fmt: skip
        for one, case in zip(found, cases, strict=False):
            yield case, one.found

    @property
    def _first(self) -> Outpost:
        return next((one for one in self._there if not one.lost), self._there[0])

    def _number(self, rig: Rig | FunctionsRig) -> int:
        return next(number for number, one in enumerate(self._rigs) if one is rig)

    def _all(self, there: Sequence[Outpost], do: Callable[[Outpost], object]) -> None:
        all_at_once([partial(do, one) for one in there], self._leave)

    def _leave(self) -> None:
        for one in self._there:
            one.leave()

    def _who_sees(self) -> dict[str, bool]:
        """Which of them see everything that would have to be shipped."""
        own, text = self._scratch / "seen", secrets.token_hex()
        own.write_text(text, encoding="utf-8")
        inside = [path for rig in self._rigs for path in _folders(rig)]
        others = dict.fromkeys(p for p in inside if not p.is_relative_to(self._scratch))
        return {one.name: one.sees(own, text, tuple(others)) for one in self._there}

    def _ship(self, one: Outpost) -> None:
        own = self._rigs[0]
        one.ship("candidate", own.sides["candidate"].root)
        for tree, rig in _trees(self._rigs):
            one.ship(tree, rig.sides["baseline"].root)
        if (outside := _outside(own)) is not None:
            one.ship("benchmarks", outside)

    def _prepare(self, one: Outpost, stage: Stage, *, shipped: bool) -> None:
        own = self._rigs[0]
        settings = own.settings.model_copy(update={"launcher": (), "launcher_python": None})
        outside = _outside(own) if shipped else None
        if shipped and outside is None:
            settings = _inside(own, settings)
        pairs = tuple(
            Pair(tree=tree, baseline=rig.sides["baseline"], candidate=rig.sides["candidate"])
            for tree, rig in _trees(self._rigs)
        )
        asked = Prepare(settings=settings, pairs=pairs, shipped=shipped, outside=outside)
        one.device = one.ask(asked, Prepared, _staged(one, stage)).device


def _trees(rigs: Sequence[Rig]) -> Iterator[tuple[str, Rig]]:
    """What each rig's baseline is called where it is shipped."""
    for number, rig in enumerate(rigs):
        yield (f"further-{number}" if number else "baseline"), rig


def _folders(rig: Rig) -> Iterator[Path]:
    """What has to be seen at the other end."""
    for side in SIDES:
        yield from (rig.sides[side].root, rig.folders[side])
    if rig.kept_builds is not None:
        yield rig.kept_builds.parent


def _outside(rig: Rig) -> Path | None:
    """The folder of the benchmarks, where it lies outside the repository."""
    folder = rig.folders["candidate"]
    return None if folder.is_relative_to(rig.sides["candidate"].root) else folder


def _inside(rig: Rig, settings: Settings) -> Settings:
    """The same with the benchmarks' folder as each side has it, whatever the user called it."""
    folder = rig.folders["candidate"].relative_to(rig.sides["candidate"].root)
    return settings.model_copy(update={"benchmarks": folder})


def _staged(one: Outpost, stage: Stage) -> Callable[[Event], None]:
    def hear(event: Event) -> None:
        if isinstance(event, StageBegun):
            stage(f"{one.name}: {event.text}")

    return hear
