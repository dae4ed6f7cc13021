"""What a checkout keeps to speak to its remote with: dropped where it can be, else refused."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import git

from sns_gate.errors import RefusedRun

_HEADER = re.compile(r"http\.(.*\.)?extraheader", re.DOTALL)
_INCLUDE = re.compile(r"includeif\..*\.path", re.DOTALL)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.DOTALL)
_ADDRESS = re.compile(r"(?:remote|submodule)\..*\.(?:push)?url", re.DOTALL)
_IN_PLACE_OF = re.compile(r"url\..*\.(?:push)?insteadof", re.DOTALL)
_WITH_A_SECRET = re.compile(r"https?://[^/@\s]+@", re.IGNORECASE)
_KEY = re.compile(r"(?:^|\s)-i\s*\S|IdentityFile", re.IGNORECASE)


@dataclass(frozen=True)
class _Setting:
    """A line of git's configuration; its name as git writes it, section and key in lower case."""

    place: tuple[str, ...]
    name: str
    value: str

    @property
    def is_header(self) -> bool:
        """Whether it is what ``actions/checkout`` keeps a token in."""
        return _HEADER.fullmatch(_folded(self.name)) is not None

    @property
    def includes_them(self) -> bool:
        """Whether it includes the file that newer ones keep it in."""
        found = _INCLUDE.fullmatch(_folded(self.name))
        return found is not None and "git-credentials" in self.value

    @property
    def is_secret(self) -> bool:
        """Whether git would prove with it who we are, and so could whoever reads it."""
        name = _folded(self.name)
        return bool(
            self.is_header
            or (_HELPER.fullmatch(name) and self.value)
            or (_ADDRESS.fullmatch(name) and _WITH_A_SECRET.search(self.value))
            or (_IN_PLACE_OF.fullmatch(name) and _WITH_A_SECRET.search(self.name))
            or (name == "core.sshcommand" and _KEY.search(self.value))
        )


class Credentials:
    """Those of a checkout and of its submodules, not those of the machine's user.

    Args:
        repository: the checkout.
    """

    def __init__(self, repository: git.Repo) -> None:
        self._git = repository.git
        self._modules = Path(repository.common_dir) / "modules"

    def drop(self) -> None:
        """Forget the token that the checkout keeps for later fetches, wherever it keeps it."""
        for found in list(self._settings()):
            if found.is_header or found.includes_them:
                self._git.config(*found.place, "--unset-all", found.name, with_exceptions=False)
            if found.includes_them:
                with contextlib.suppress(OSError):
                    Path(os.path.expandvars(found.value)).unlink()

    def require_none(self) -> None:
        """Refuse to run anybody's code while a token or key lies beside it.

        Raises:
            RefusedRun: git would use one from here.
        """
        kept = next((found for found in self._settings() if found.is_secret), None)
        if kept is not None:
            name = _WITH_A_SECRET.sub("https://…@", kept.name)
            raise RefusedRun(
                "credentials-persist",
                f"the checkout still holds a token or a key ({name}), which the code under test "
                f"could read, so nothing was run; give actions/checkout "
                f"'persist-credentials: false', and take what else was set up out of the "
                f"checkout's configuration",
            )

    def _settings(self) -> Iterator[_Setting]:
        places: list[tuple[str, ...]] = [("--local",)]
        # A module may have any name, and so may a branch in it.
        found = (path for path in sorted(self._modules.rglob("config")) if _is_of_git(path))
        places += [("--file", str(path)) for path in found]
        for place in places:
            listed = str(self._git.config(*place, "--list", "--null", "--includes"))
            for entry in filter(None, listed.split("\0")):
                name, _, value = entry.partition("\n")
                yield _Setting(place, name, value)


def _is_of_git(config: Path) -> bool:
    return config.is_file() and (config.parent / "objects").is_dir()


def _folded(name: str) -> str:
    """A name whose section and key are in lower case, as git compares them."""
    section, dot, rest = name.partition(".")
    middle, last_dot, key = rest.rpartition(".")
    return f"{section.lower()}{dot}{middle}{last_dot}{key.lower()}"
