"""The result file as it grows: no ending loses a case, and no case costs more for those before."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from pathlib import Path

from pydantic_core import PydanticSerializationError

from sns_gate.errors import ResultFileError
from sns_gate.temporary import ANY, is_left_behind, own_prefix
from sns_gate.types import CaseResult, GateResult, Record

#: The cases stand last, so that more can follow them.
CASES_BEGIN, CASES_END = b',"cases":[', b"]}"
#: Below this size the file is replaced as a whole after every case; above it, it is added to.
_WHOLE_BYTES = 4 << 20
#: Of the time, at most this share goes into writing a large file anew for changed cases.
_REWRITING_SHARE = 0.1


class ResultFile:
    """Where a check keeps its result.

    Args:
        path: the file; its folder must exist.

    Attributes:
        failure: why the latest result could not be saved, None where it was.
        latest: the latest result, saved or not.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: ResultFileError | None = None
        self.latest: GateResult | None = None
        self._written: dict[str, CaseResult] = {}
        self._end = 0
        self._rewritten_s, self._rewriting_s = 0.0, 0.0
        self._stale = False
        self._old: bytes | None = None

    def require_writable(self) -> None:
        """Fail before measuring rather than after.

        Raises:
            ResultFileError: the folder takes no file.
        """
        if self.path.is_dir():
            raise ResultFileError(
                f"{self.path} is a folder, so no result can be kept under that name; name a file "
                f"with --json FILE"
            )
        try:
            with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=f".{self.path.name}."):
                pass
        except OSError as error:
            raise self._cannot(error) from None

    def discard_old(self) -> None:
        """Remove an earlier check's result, which must not stand for one that did not happen.

        See ``put_aside`` for where this one comes to nothing.
        """
        sweep_beside(self.path.parent)
        with contextlib.suppress(FileNotFoundError):
            self._old = self.path.read_bytes()
            self.path.unlink()

    def put_aside(self) -> Path | None:
        """Keep the removed result under another name; None where nothing was or could be kept."""
        aside = self.path.with_name(f"{self.path.name}.before")
        if self.latest is not None or self._old is None:
            return None
        with contextlib.suppress(OSError):
            write_atomically(aside, self._old)
            return aside
        return None

    def save(self, result: GateResult) -> None:
        """Bring the file up to this result; a full disk keeps what is there and is remembered.

        Of a large file, changed cases may wait a while for their place; see ``finish``.
        """
        self.latest = result
        new = [case for case in result.cases if self._written.get(case.id) is not case]
        changed = any(case.id in self._written for case in new)
        try:
            if self._end < _WHOLE_BYTES or result.complete:
                self._rewrite(result)
            elif not changed:
                self._add(new)
            elif self._may_rewrite():
                self._rewrite(result)
            else:
                self._stale = True
        except OSError as error:
            self.failure = self._cannot(error)
        else:
            self.failure = None

    def finish(self) -> None:
        """Write what still waits for its place; harmless where nothing does."""
        if self._stale and self.latest is not None:
            try:
                self._rewrite(self.latest)
            except OSError as error:
                self.failure = self._cannot(error)

    def _may_rewrite(self) -> bool:
        return time.monotonic() - self._rewritten_s >= self._rewriting_s / _REWRITING_SHARE

    def _rewrite(self, result: GateResult) -> None:
        start_s = time.monotonic()
        head = _text_of(result.model_copy(update={"cases": ()}), without="cases")[:-1]
        text = head + CASES_BEGIN + b",".join(map(_text_of, result.cases))
        write_atomically(self.path, text + CASES_END)
        self._written = {case.id: case for case in result.cases}
        self._end = len(text)
        self._stale = False
        self._rewritten_s = time.monotonic()
        self._rewriting_s = self._rewritten_s - start_s

    def _add(self, new: list[CaseResult]) -> None:
        """Put new cases behind the last one; what stands before them waits for ``finish``.

        Where this is cut off half-way, a reader goes by the last whole case.
        """
        comma = b"," if self._written else b""
        more = comma + b",".join(map(_text_of, new))
        with self.path.open("r+b", buffering=0) as file:
            try:
                _put(file.fileno(), more + CASES_END, self._end)
            except OSError:
                # Its old end had room, and has it again.
                _put(file.fileno(), CASES_END, self._end)
                file.truncate(self._end + len(CASES_END))
                raise
            os.fsync(file.fileno())
        self._written.update({case.id: case for case in new})
        self._end += len(more)
        self._stale = True

    def _cannot(self, error: OSError) -> ResultFileError:
        return ResultFileError(
            f"{self.path} cannot be written ({error.strerror}), so the result would be lost; "
            f"free space there, or name another place with --json FILE"
        )


def _put(descriptor: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _text_of(record: Record, *, without: str = "") -> bytes:
    left_out = {without} if without else None
    try:
        return record.model_dump_json(exclude=left_out).encode()
    except (PydanticSerializationError, UnicodeEncodeError):
        # Names of files and messages may hold what no encoding has; as text they are replaced.
        dumped = record.model_dump(mode="json", exclude=left_out)
        return json.dumps(dumped, ensure_ascii=False).encode(errors="replace")


def sweep_beside(folder: Path) -> None:
    """Remove what was half written into a folder by processes that were killed in the midst."""
    for file in folder.glob(f".*.{ANY}*"):
        owner = file.name[file.name.rindex(ANY) :]
        if is_left_behind(Path(owner)):
            with contextlib.suppress(OSError):
                file.unlink()


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a file so that a reader sees the old or the new one, never a part.

    Raises:
        OSError: it could not be written; the old file is as it was.
    """
    prefix = f".{path.name}.{own_prefix()}"
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode(errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
