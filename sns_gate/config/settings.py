"""Every setting of a check with its default, and each as an option of a command."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sns_gate.config.shares import MemoryShare, Share
from sns_gate.stats import MIN_CLUSTERS
from sns_gate.types import Conclusion, Record

#: Shared by all users of a machine; containers that share a GPU must share this folder.
DEFAULT_STATE_DIR = Path("/tmp/sns-gate-state")  # noqa: S108 (sticky; journals are checked for their owner)

_LONGEST_S = 7 * 24 * 3600.0
MOST_PROCESSES = 64


def _words(value: object) -> object:
    return [value] if isinstance(value, str) else value


#: What some settings look like, and how that is said.
_FORMS = {
    "device": (
        r"auto|cpu|cuda(:(all|\d{1,3}(,\d{1,3})*))?",
        "auto, cpu, cuda, cuda:N, cuda:0,1 or cuda:all",
    ),
    "shard": (r"[1-9]\d{0,3}/[1-9]\d{0,3}", "I/N, such as 1/3"),
    "clocks": (r"\d{2,5}(,\d{1,5})?", "MHZ or MHZ,WATTS, such as 1500 or 1500,400"),
    "launcher_python": (
        r"[\w@%+=:,./-]+",
        "a path without spaces and quotes, such as /opt/gate/bin/python",
    ),
    "worker_user": (r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", "the name of a user, such as nobody"),
}
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


def _command(text: str) -> str:
    """A command that can be split into words as a shell does."""
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"this is no command ({error}); close what is open in it") from None
    return text


Command = Annotated[str, AfterValidator(_command)]


def kebab(name: str) -> str:
    """The spelling of a setting in files and on the command line."""
    return name.replace("_", "-")


class Settings(Record):
    """Every setting of a check: policy says what passes, the others say how to measure."""

    model_config = ConfigDict(alias_generator=kebab, populate_by_name=False)

    benchmarks: Path = Field(
        Path("benchmarks"),
        description="folder of bench_*.py files; may lie outside the repository",
        json_schema_extra={"metavar": "DIR", "policy": True, "of": "revisions"},
    )
    filter: Words = Field(
        (),
        description="measure only cases whose id matches this pattern or holds this text; "
        "may be repeated",
        json_schema_extra={"metavar": "PATTERN", "policy": True},
    )
    shard: str | None = Field(
        None,
        description="measure part I of N of the cases, for machines that share the work; see "
        "'sns-gate merge'",
        json_schema_extra={"metavar": "I/N", "of": "revisions"},
    )
    also_against: Words = Field(
        (),
        description="further baseline: a reference, or a pattern of tags such as 'v*' for the "
        "last of them; slow creep passes one change at a time, and not against it; may be repeated",
        json_schema_extra={"metavar": "REF", "policy": True, "of": "revisions"},
    )
    device: str = Field(
        "auto",
        description="auto, cuda, cuda:N or cpu; auto is CUDA where an NVIDIA driver is present; "
        "cuda:0,1 and cuda:all spread the cases over like GPUs",
        json_schema_extra={"metavar": "DEVICE"},
    )
    launcher: Annotated[tuple[Command, ...], BeforeValidator(_words)] = Field(
        (),
        description="command that starts what follows it elsewhere, such as 'ssh host' or 'srun "
        "-n1 --gpus=1': a place to measure at, in place of this machine; may be repeated, to "
        "spread the cases; empty means here",
        json_schema_extra={"metavar": "COMMAND", "policy": True},
    )
    launcher_python: str | None = Field(
        None,
        description="interpreter there that has sns-gate (default: the path of this one)",
        json_schema_extra={"metavar": "FILE", "policy": True},
    )
    tolerance: Share = Field(
        0.02,
        gt=0,
        lt=1,
        description="largest increase in time worth letting pass, such as 0.02 or 2%",
        json_schema_extra={"metavar": "SHARE", "policy": True},
    )
    precision: Share | None = Field(
        None,
        gt=0,
        lt=1,
        description="half-width at which measuring stops (default: a quarter of the tolerance)",
        json_schema_extra={"metavar": "SHARE", "policy": True},
    )
    memory_tolerance: MemoryShare | None = Field(
        None,
        ge=0,
        description="largest increase in a call's peak GPU memory to let pass, such as 10%; "
        "larger is wrong (default: shown, and passes)",
        json_schema_extra={"metavar": "SHARE", "policy": True},
    )
    budget: float = Field(
        900.0,
        gt=0,
        le=_LONGEST_S,
        description="seconds of measuring to spend on all cases beyond their first rotation",
        json_schema_extra={"metavar": "SECONDS", "policy": True},
    )
    processes: int = Field(
        6,
        ge=MIN_CLUSTERS,
        le=MOST_PROCESSES,
        description="worker processes a side; more of them make narrower intervals",
        json_schema_extra={"metavar": "N", "policy": True},
    )
    placements: int = Field(
        3,
        ge=1,
        le=64,
        description="fresh allocations of a case's inputs in one rotation",
        json_schema_extra={"metavar": "N", "policy": True},
    )
    python: Path | None = Field(
        None,
        description="interpreter of the workers, the one that has torch (default: this one)",
        json_schema_extra={"metavar": "FILE"},
    )
    cpus: int = Field(
        1,
        ge=1,
        description="CPU cores that all workers share on the CPU device",
        json_schema_extra={"metavar": "N"},
    )
    seed: int = Field(
        0,
        ge=0,
        description="seed of inputs and orders; stands in the result",
        json_schema_extra={"metavar": "N"},
    )
    timeout: float = Field(
        300.0,
        gt=0,
        le=_LONGEST_S,
        description="seconds that compiling, setting up or calling one case may take before it is "
        "broken",
        json_schema_extra={"metavar": "SECONDS"},
    )
    start_timeout: float = Field(
        300.0,
        gt=0,
        le=_LONGEST_S,
        description="seconds that all workers together may take to open the device and to import "
        "torch and the benchmarks",
        json_schema_extra={"metavar": "SECONDS"},
    )
    clocks: str | None = Field(
        None,
        pattern=r"^\d{2,5}(,\d{1,5})?$",
        description="pin the SM clock at MHZ, and the power limit at WATTS, while measuring; they "
        "are given back however the check ends",
        json_schema_extra={"metavar": "MHZ[,WATTS]"},
    )
    state_dir: Path = Field(
        DEFAULT_STATE_DIR,
        description="folder of device locks and clock journals, shared by all who use the GPU",
        json_schema_extra={"metavar": "DIR"},
    )
    lock_timeout: float = Field(
        3600.0,
        gt=0,
        le=_LONGEST_S,
        description="seconds to wait for another check on the same GPU",
        json_schema_extra={"metavar": "SECONDS"},
    )
    history: Path | None = Field(
        None,
        description="file that every complete check of a commit is added to, for 'sns-gate "
        "history'; nothing is ever judged by it",
        json_schema_extra={"metavar": "FILE", "of": "revisions"},
    )
    build: Words = Field(
        (),
        description="command run in each revision before measuring, with {worktree}, {prefix} "
        "and {python}; may be repeated",
        json_schema_extra={"metavar": "COMMAND", "of": "revisions"},
    )
    pythonpath: Words | None = Field(
        None,
        description="folders of a revision to import from (default: src if it is there, and the "
        "root); may be repeated",
        json_schema_extra={"metavar": "DIR"},
    )
    pass_env: Words = Field(
        (),
        description="environment variable to hand to builds and workers; may be repeated",
        json_schema_extra={"metavar": "NAME"},
    )
    worker_user: str | None = Field(
        None,
        description="user that builds and workers run as, who can neither read the gate's own "
        "files and memory nor signal it; root and sudo can make it so (default: the gate's own)",
        # What a change could leave out would keep nothing from it.
        json_schema_extra={"metavar": "NAME", "policy": True},
    )
    on_refused: Conclusion = Field(
        "failure",
        description="the check's conclusion where a case was refused",
        json_schema_extra={"metavar": "CONCLUSION", "policy": True},
    )
    on_inconclusive: Conclusion = Field(
        "neutral",
        description="the check's conclusion where a case is inconclusive",
        json_schema_extra={"metavar": "CONCLUSION", "policy": True},
    )
    accept: Literal["nobody", "label", "trailer"] = Field(
        "label",
        description="how a slowdown or a removed case may be accepted on GitHub: by nobody, by a "
        "label, or by that and a commit's Perf-Accept trailer",
        json_schema_extra={"metavar": "HOW", "policy": True, "of": "posting"},
    )
    explain: Literal["changed", "all", "none"] = Field(
        "changed",
        description="cases whose calls are taken apart by a profiler after all timing: changed "
        "ones are slower or faster",
        json_schema_extra={"metavar": "WHICH", "policy": True},
    )
    policy_from: Literal["baseline", "candidate"] = Field(
        "candidate",
        description="the revision whose configuration says what passes; baseline for pull "
        "requests; a file's own word for it is read from the baseline",
        json_schema_extra={"metavar": "SIDE", "policy": True, "of": "revisions"},
    )

    @model_validator(mode="before")
    @classmethod
    def _explain_zero(cls, values: object) -> object:
        asked = values.get("tolerance") if isinstance(values, dict) else None
        if str(asked).rstrip("% ") in ("0", "0.0", "0.00"):
            raise ValueError(
                "a tolerance of 0 asks for proof that nothing changed at all, which no "
                "measurement gives; use the smallest slowdown that matters to you, 0.005 for 0.5%"
            )
        return values

    @field_validator("state_dir")
    @classmethod
    def _same_for_all(cls, value: Path) -> Path:
        """Relative to wherever each check is started, they would not share a lock."""
        if not value.is_absolute():
            raise ValueError(
                "write a path from the root on, since all checks here share the folder"
            )
        return value

    @field_validator("launcher")
    @classmethod
    def _without_empty(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in value if text.strip())

    @field_validator("pass_env")
    @classmethod
    def _names_alone(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """A value behind a name would be part of a name that no variable has."""
        if any("=" in name for name in value):
            raise ValueError("write the name of a variable alone; its value is the gate's own")
        return value

    @field_validator(*_FORMS, mode="before")
    @classmethod
    def _in_words(cls, value: object, info: ValidationInfo) -> object:
        """A pattern teaches nobody what to write."""
        form, example = _FORMS[str(info.field_name)]
        if value is not None and not re.fullmatch(form, str(value)):
            raise ValueError(f"write {example}")
        return value

    @property
    def clock_request(self) -> tuple[int, int | None] | None:
        """SM clock in MHz and power limit in watts to pin, None where the clocks float."""
        if self.clocks is None:
            return None
        mhz, _, watts = self.clocks.partition(",")
        return int(mhz), int(watts) if watts else None

    @property
    def part(self) -> tuple[int, int]:
        """Which part of how many to measure."""
        number, _, count = (self.shard or "1/1").partition("/")
        return int(number), int(count)

    @model_validator(mode="after")
    def _part_exists(self) -> Self:
        number, count = self.part
        if number > count:
            raise ValueError(
                f"shard {self.shard}: there is no part {number} of {count}; the parts are 1 to "
                f"{count}"
            )
        return self

    def precision_for(self, tolerance: float) -> float:
        """The half-width at which a case of this tolerance stops, on the log scale."""
        return self.precision if self.precision is not None else tolerance / 4


POLICY = tuple(
    kebab(name)
    for name, field in Settings.model_fields.items()
    if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("policy")
)


@dataclass(frozen=True)
class Option:
    """A setting as an option of a command.

    Attributes:
        name: in kebab-case, without dashes.
        metavar: what its value is called.
        help: what it does, with its default.
        repeats: it may be given several times.
        of_revisions: it means something only where two revisions are compared.
    """

    name: str
    metavar: str
    help: str
    repeats: bool
    of_revisions: bool


def setting_options() -> list[Option]:
    """Every setting that a check has as an option, in their order."""
    options = []
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        if extra.get("of") == "posting":  # whoever posts reads it from the baseline
            continue
        text, default = field.description or "", field.default
        if default not in (None, ()) and "default:" not in text:
            text = f"{text} (default: {default})"
        options.append(
            Option(
                name=kebab(name),
                metavar=str(extra.get("metavar", name.upper())),
                help=text,
                repeats=isinstance(default, tuple) or name == "pythonpath",
                of_revisions=extra.get("of") == "revisions",
            )
        )
    return options
