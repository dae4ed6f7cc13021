"""The result file: written whole or not at all, read with suspicion."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from sns_gate.errors import ResultFileError
from sns_gate.types import GateResult


class ResultFile:
    """Where a check keeps its result.

    Args:
        path: the file; its folder must exist.

    Attributes:
        failure: why the latest result could not be saved, None where it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: ResultFileError | None = None

    def require_writable(self) -> None:
        """Fail before measuring rather than after.

        Raises:
            ResultFileError: the folder takes no file.
        """
        try:
            with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=f".{self.path.name}."):
                pass
        except OSError as error:
            raise self._cannot(error) from None

    def save(self, result: GateResult) -> None:
        """Replace the file by this result; a full disk keeps the old one and is remembered."""
        try:
            write_atomically(self.path, result.model_dump_json())
        except OSError as error:
            self.failure = self._cannot(error)
        else:
            self.failure = None

    def _cannot(self, error: OSError) -> ResultFileError:
        return ResultFileError(
            f"{self.path} cannot be written ({error.strerror}), so the result would be lost; "
            f"free space there, or name another place with --json FILE"
        )


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new one, never a part.

    Raises:
        OSError: it could not be written; the old file is as it was.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def read(path: Path) -> GateResult:
    """Read a result file.

    Raises:
        ResultFileError: it cannot be read, or is no result of this schema.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ResultFileError(
            f"{path} cannot be read: {reason}; name the file that 'sns-gate check --json' wrote"
        ) from None
    try:
        return GateResult.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ResultFileError(
            f"{path} is no result of sns-gate {_schema_of(text)}: {where}: {first['msg']}; it was "
            f"cut off, edited, or written by another version"
        ) from None


def schema() -> str:
    """The JSON schema of result files."""
    return json.dumps(GateResult.model_json_schema(), indent=2)


def _schema_of(text: str) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        return f"(schema {json.loads(text)['schema_version']})"
    return "(no schema version)"
