"""Another, unprivileged user: reached directly by root, through sudo by everybody else."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from sns_gate.accounts.account import Account, Streams
from sns_gate.errors import RevisionError

_TIMEOUT_S = 60.0
_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
#: Files that the user makes can be read by the gate, whatever the gate's own mask is.
_UMASK = 0o022
_READABLE, _ENTERABLE, _ALL_WRITE = 0o444, 0o111, 0o003
#: Prints the first path that may not be entered (x), run (e) or read (r); kinds and paths in turn.
_FIRST_CLOSED = """
while [ $# -gt 0 ]; do
  if [ -d "$2" ] || [ "$1" = e ]; then [ -x "$2" ] || { printf %s "$2"; exit; }; fi
  [ "$1" = x ] || [ -r "$2" ] || { printf %s "$2"; exit; }
  shift 2
done
"""
#: Takes away the uppermost of what is the user's own.
_REMOVE = 'find "$1" -user "$(id -u)" -prune -exec chmod -R u+rwX {} + -exec rm -rf {} +'
_END = """
for place in /proc/[0-9]*; do
  if tr '\\0' '\\n' < "$place/environ" | grep -qF "TMPDIR=$1/"; then
    kill -KILL "${place#/proc/}" && printf .
  fi
done
"""
_SEND = 'number=$1; shift; for pid; do kill -s "$number" -- "$pid"; done'
#: Starts the program with the variables that its first line of input holds: sudo lets none through,
#: and what stood among its words would be anybody's to read. It stands between sudo and the program
#: because sudo stops itself where its own child is stopped, and nobody could let it go on.
_START = f"""
import contextlib, json, os, signal, sys
variables = json.loads(open(0, "rb", 0, closefd=False).readline())
os.umask({_UMASK})
child = os.fork()
if child == 0:
    os.execvpe(sys.argv[1], sys.argv[1:], variables)
os.close(0)
os.close(1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if code < 0:
    with contextlib.suppress(OSError):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class Other(Account):
    """A user who can neither read what is the gate's own nor signal it.

    Args:
        user: as the system knows it.
        scratch: the check's own folder; what is below it may be shown and handed over.
    """

    def __init__(self, user: pwd.struct_passwd, scratch: Path) -> None:
        self.user, self.scratch = user, scratch
        self._readable: set[Path] = set()

    def variables(self, folder: Path) -> dict[str, str]:
        """As ``Account``; many a user of a service is given a folder that is not its own."""
        home, name = Path(self.user.pw_dir), self.user.pw_name
        own = home.is_dir() and home.stat().st_uid == self.user.pw_uid
        return {"HOME": str(home if own else folder), "USER": name, "LOGNAME": name}

    @abstractmethod
    def let_in(self) -> None:
        """Let the user enter the scratch folder."""

    @abstractmethod
    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a shell's script as the user, from the root folder.

        Raises:
            OSError, subprocess.TimeoutExpired: it cannot be run, or does not end.
        """

    def require(self, paths: Sequence[Path]) -> None:
        """Refuse unless the user may read all of these.

        Raises:
            RevisionError: one may not be entered, or read; the message names the first.
        """
        asked = {path for path in paths if path.exists()} - self._readable
        words = [word for path in sorted(asked) for word in _steps(path)]
        closed = self.run(_FIRST_CLOSED, *words).stdout if words else ""
        if closed:
            what = "enter the folder" if Path(closed).is_dir() else "read"
            raise RevisionError(
                f"the user {self.user.pw_name}, whom 'worker-user' names, may not {what} {closed}, "
                f"so no worker could run; let that user with 'chmod o+rX {closed}', or keep what "
                f"is needed in a place that is open to it (the check's own folder: TMPDIR)"
            )
        self._readable |= asked

    def show(self, folder: Path) -> None:
        """Let the user read a folder below the scratch folder, whatever the gate's mask is."""
        if folder in self._readable or not folder.is_relative_to(self.scratch):
            return
        self._let_in(folder)
        _open_up(folder)
        for inside, folders, files in os.walk(folder):
            for name in (*folders, *files):
                _open_up(Path(inside, name))

    def _let_in(self, folder: Path) -> None:
        """Open the way to a folder, as far as it lies below the scratch folder."""
        for parent in folder.parents:
            if parent.is_relative_to(self.scratch) and parent != self.scratch:
                _open_up(parent)

    def remove(self, folder: Path) -> None:
        """As ``Account``, with the user's own rights, whatever it has put there."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.run(_REMOVE, str(folder))


class Switched(Other):
    """The user as root becomes it: by setuid and setgid."""

    def let_in(self) -> None:
        """As ``Other``, and nobody but its group."""
        os.chown(self.scratch, -1, self.user.pw_gid)
        self.scratch.chmod(0o750)

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """As ``Other``."""
        return subprocess.run(  # noqa: S603 (own scripts)
            ["sh", "-c", script, "sh", *words],  # noqa: S607 (from the path below)
            cwd="/", env=_PATH, capture_output=True, text=True, errors="replace",
            timeout=_TIMEOUT_S, check=False, **self._identity,
        )  # fmt: skip

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "user": self.user.pw_uid,
            "group": self.user.pw_gid,
            "extra_groups": os.getgrouplist(self.user.pw_name, self.user.pw_gid),
            "umask": _UMASK,
        }

    def hand_over(self, folder: Path) -> None:
        """As ``Account``; a folder last, so that nobody can lead this astray from inside it."""
        self._let_in(folder)
        for path, folders, files in os.walk(folder, topdown=False):
            for name in (*folders, *files):
                self._own(Path(path, name))
        self._own(folder)

    def remove(self, folder: Path) -> None:
        """As ``Other``; the folders that are left are root's again, before root works in them."""
        super().remove(folder)
        for inside, folders, _ in os.walk(folder):
            for name in folders:
                os.chown(Path(inside, name), 0, 0, follow_symlinks=False)

    def _own(self, path: Path) -> None:
        os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)

    def end(self, folder: Path) -> int:
        """As ``Account``; root sees the variables of processes that hide them from their user."""
        count = 0
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                given = process.environ().get("TMPDIR", "")
                theirs = process.uids().real == self.user.pw_uid
                if theirs and given and Path(given).is_relative_to(folder):
                    process.kill()
                    count += 1
        return count


class ThroughSudo(Other):
    """The user as sudo lets the gate's own become it.

    Args:
        user: as the system knows it.
        scratch: the check's own folder.
        python: interpreter that the user may run.
    """

    def __init__(self, user: pwd.struct_passwd, scratch: Path, python: Path) -> None:
        super().__init__(user, scratch)
        self._sudo = ("sudo", "-n", "-u", user.pw_name, "--")
        self._python = python

    def let_in(self) -> None:
        """As ``Other``, and everybody else, as who is not root has no group of the user's."""
        self.scratch.chmod(0o755)

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """As ``Other``."""
        return subprocess.run(  # noqa: S603 (own scripts)
            [*self._sudo, "sh", "-c", script, "sh", *words], cwd="/", stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip

    def start(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Streams
    ) -> subprocess.Popen[bytes]:
        """As ``Account``."""
        process = subprocess.Popen(  # noqa: S603 (running the user's code is what was asked)
            [*self._sudo, str(self._python), "-I", "-c", _START, *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=streams.stdout,
            stderr=streams.stderr,
            start_new_session=True,
        )
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(dict(environment)).encode() + b"\n")
                process.stdin.flush()
                if streams.stdin != subprocess.PIPE:
                    process.stdin.close()
        return process

    def process(self, pid: int) -> int:
        """As ``Account``: the child of the user's first process, below sudo's or in its place."""
        with contextlib.suppress(psutil.Error):
            sudo = psutil.Process(pid)
            for process in (sudo, *sudo.children(recursive=True)):
                if process.uids().real == self.user.pw_uid:
                    return next((child.pid for child in process.children()), process.pid)
        return pid

    def signal(self, number: signal.Signals, pids: Sequence[int]) -> None:
        """As ``Account``; what sudo itself started is never stopped, as sudo would stop with it."""
        if number == signal.SIGSTOP:
            pids = [pid for pid in pids if self._started_by_user(pid)]
        if not pids:
            return
        name = number.name.removeprefix("SIG")
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.run(_SEND, name, *map(str, pids))

    def _started_by_user(self, pid: int) -> bool:
        with contextlib.suppress(psutil.Error):
            parent = psutil.Process(pid).parent()
            return parent is not None and parent.uids().real == self.user.pw_uid
        return False

    def hand_over(self, folder: Path) -> None:
        """As ``Account``: a copy that the user makes takes the folder's place."""
        self._let_in(folder)
        aside = folder.with_name(f"{folder.name}.handed-over")
        folder.rename(aside)
        self._readable.discard(aside)
        self.show(aside)
        if not aside.is_relative_to(self.scratch):
            aside.chmod(stat.S_IMODE(aside.stat().st_mode) | _READABLE | _ENTERABLE)
        with _open_to_all(folder.parent):
            done = self.run('umask 022; cp -R -- "$1" "$2"', str(aside), str(folder))
        shutil.rmtree(aside, ignore_errors=True)
        if done.returncode or folder.stat().st_uid != self.user.pw_uid:
            raise RevisionError(
                f"{folder} could not be handed over to {self.user.pw_name}: {done.stderr.strip()}; "
                f"free disk space, or mend what is named"
            )

    def end(self, folder: Path) -> int:
        """As ``Account``."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            return len(self.run(_END, str(folder)).stdout)
        return 0


@contextlib.contextmanager
def _open_to_all(folder: Path) -> Iterator[None]:
    """Let everybody make new entries in a folder for a moment, and touch nobody else's."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & _ALL_WRITE == _ALL_WRITE:  # as /tmp is
        yield
        return
    folder.chmod(0o1777)
    try:
        yield
    finally:
        folder.chmod(mode)


def _open_up(path: Path) -> None:
    """Let everybody read what its owner may, and enter or run it."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
        return
    mode = stat.S_IMODE(status.st_mode)
    wanted = mode | _READABLE | (_ENTERABLE if mode & stat.S_IXUSR else 0)
    if wanted != mode:
        path.chmod(wanted)


def _steps(path: Path) -> Iterator[str]:
    """What the user has to enter to read a path, uppermost first, links and what they name."""
    for one in dict.fromkeys((path, path.resolve())):
        for parent in reversed(one.parents):
            yield from ("x", str(parent))
        yield from ("r", str(one))
