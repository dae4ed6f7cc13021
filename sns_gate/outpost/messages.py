"""What the coordinator asks of an outpost, and what comes back; every record is validated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from sns_gate.config import Settings
from sns_gate.protocol import Loaded
from sns_gate.revisions import Revision
from sns_gate.session import CaseOutcome, PlannedCase, Standing
from sns_gate.types import (
    EnvironmentFingerprint,
    Explanation,
    Reason,
    Record,
    RevisionInfo,
    Side,
)

#: Raised with every change of these messages; both ends must have the same.
PROTOCOL = 1


class Message(Record):
    """A message; an estimate without spread has infinite degrees of freedom."""

    model_config = ConfigDict(ser_json_inf_nan="constants", allow_inf_nan=True)


class FolderSeen(Message):
    """What tells a folder from a copy of it elsewhere."""

    folder: Path
    inode: int
    changed_ns: int


class Pair(Message):
    """Both sides of one rig.

    Attributes:
        tree: under which the baseline's files are shipped, where they are.
        baseline: revision, with its folders at the coordinator.
        candidate: likewise; the same for all rigs of a check.
    """

    tree: str
    baseline: Revision
    candidate: Revision


# ------------------------------------------------------------------ requests


class Look(Message):
    """Say whether the coordinator's folders are there too; answered by Looked.

    Attributes:
        file: that holds a text which nobody can guess.
        text: of it.
        folders: that were there before and are not written into.
    """

    kind: Literal["look"] = "look"
    file: Path
    text: str
    folders: tuple[FolderSeen, ...]


class Receive(Message):
    """A part of a gzipped tar archive, base64; the last one is answered by Done."""

    kind: Literal["receive"] = "receive"
    tree: str = Field(pattern=r"^[a-z]+(-\d+)?$")
    data: str
    last: bool


class Prepare(Message):
    """Make ready to measure; answered by Prepared, once built where files were shipped.

    Attributes:
        settings: that hold.
        pairs: the check's own, then those of further baselines.
        shipped: use the trees that were received, and build them.
        outside: folder of benchmarks outside the repository, where it was shipped.
    """

    kind: Literal["prepare"] = "prepare"
    settings: Settings
    pairs: tuple[Pair, ...]
    shipped: bool
    outside: Path | None = None


class Keep(Message):
    """Keep other checks off the device until the end; answered by Done.

    Attributes:
        check: what the outposts of one check know each other by.
    """

    kind: Literal["keep"] = "keep"
    check: str


class Enlist(Message):
    """List the baseline's own cases; answered by Enlisted."""

    kind: Literal["enlist"] = "enlist"
    pair: int


class Open(Message):
    """Start workers; answered by Opened."""

    kind: Literal["open"] = "open"
    pair: int
    references: bool
    name: str
    processes: int


class Measure(Message):
    """Measure a case with the workers that are open; answered by Measured.

    Attributes:
        seconds: after which no placement is added.
        cases: in the check.
    """

    kind: Literal["measure"] = "measure"
    case: PlannedCase
    seconds: float
    cases: int


class Describe(Message):
    """Describe both sides; answered by Described."""

    kind: Literal["describe"] = "describe"
    baseline: RevisionInfo
    candidate: RevisionInfo


class Close(Message):
    """End the workers that are open; answered by Done."""

    kind: Literal["close"] = "close"


class TakeApart(Message):
    """Take calls apart, each told by TakenApart; answered by Done."""

    kind: Literal["take apart"] = "take apart"
    pair: int
    references: bool
    cases: tuple[PlannedCase, ...]


Request = Annotated[
    Look | Receive | Prepare | Keep | Enlist | Open | Measure | Describe | Close | TakeApart,
    Field(discriminator="kind"),
]

# ------------------------------------------------------------------ answers


class Greeting(Message):
    """The first word of an outpost; it follows the mark that ends whatever a shell printed.

    One of another version may say more, and is told from its number.
    """

    model_config = ConfigDict(extra="ignore")

    kind: Literal["greeting"] = "greeting"
    version: str
    protocol: int
    host: str
    pid: int


class Alive(Message):
    """Nothing new; sent so that silence means that nobody is there."""

    kind: Literal["alive"] = "alive"


class StageBegun(Message):
    """A stage that takes seconds begins."""

    kind: Literal["stage"] = "stage"
    text: str


class BlockDone(Message):
    """A block of the case that is being measured is done."""

    kind: Literal["block"] = "block"
    standing: Standing


class TakenApart(Message):
    """What became of one case that was to be taken apart."""

    kind: Literal["taken apart"] = "taken apart"
    number: int
    found: Explanation | Reason | None


class Looked(Message):
    """Whether all that was named is there."""

    kind: Literal["looked"] = "looked"
    everything: bool


class Prepared(Message):
    """All is ready on this device."""

    kind: Literal["prepared"] = "prepared"
    device: str


class Enlisted(Message):
    """The baseline's own cases, None where they are the workers'."""

    kind: Literal["enlisted"] = "enlisted"
    loaded: Loaded | None


class Opened(Message):
    """The workers have started; files are named as the coordinator has them."""

    kind: Literal["opened"] = "opened"
    loaded: dict[Side, Loaded | None]
    disclosures: tuple[Reason, ...]
    fingerprint: EnvironmentFingerprint


class Measured(Message):
    """A case's outcome."""

    kind: Literal["measured"] = "measured"
    outcome: CaseOutcome


class Described(Message):
    """Both sides with their fingerprints and files."""

    kind: Literal["described"] = "described"
    baseline: RevisionInfo
    candidate: RevisionInfo


class Done(Message):
    """It is done."""

    kind: Literal["done"] = "done"


class Failure(Message):
    """It could not be done, by an error of the tree in ``errors``."""

    kind: Literal["failure"] = "failure"
    error: Literal["usage", "nothing", "refused", "worker"]
    text: str
    code: str = ""
    worker: str = ""
    traceback: str = ""


Event = StageBegun | BlockDone | TakenApart
Answer = Annotated[
    Greeting | Alive | Event | Looked | Prepared | Enlisted | Opened | Measured | Described
    | Done | Failure,
    Field(discriminator="kind"),
]  # fmt: skip
