"""Which user code under test runs as, and whom an earlier check of this folder had let in."""

from __future__ import annotations

import contextlib
import getpass
import os
import pwd
import shlex
import subprocess
import sys
from pathlib import Path

from sns_gate.accounts.account import OWN, Account
from sns_gate.accounts.other import Other, Switched, ThroughSudo
from sns_gate.errors import ConfigError

#: Names the user to whom a check's folder is open, for whoever has to clean up after it.
_MARK = "worker-user"


def account_for(name: str | None, python: Path, scratch: Path) -> Account:
    """The user that code under test runs as, once it is seen that the gate may become it.

    Args:
        name: of the user, None for the gate's own.
        python: interpreter of the workers.
        scratch: the check's own folder, which is opened to the user; its other contents are not.

    Raises:
        ConfigError: there is no such user, it would keep nothing from the code under test, or the
            gate may not become it.
        RevisionError: the user may not enter the scratch folder, or read the interpreter.
    """
    if name is None:
        return OWN
    account = _account(_user(name), python, scratch)
    _require_switch(account)
    account.let_in()
    (scratch / _MARK).write_text(name, encoding="utf-8")
    account.require([scratch, python])
    return account


def end_marked(folder: Path) -> int:
    """Kill what the other user of a check's folder still runs there; how many there were."""
    return _marked(folder).end(folder)


def remove_marked(folder: Path) -> None:
    """Take away what the other user of a check's folder left there, and end what writes more."""
    account = _marked(folder)
    account.end(folder)
    account.remove(folder)


def _marked(folder: Path) -> Account:
    mark = folder / _MARK
    with contextlib.suppress(OSError, KeyError, ValueError):
        if mark.lstat().st_uid == os.geteuid():
            user = pwd.getpwnam(mark.read_text(encoding="utf-8"))
            return _account(user, Path(sys.executable), folder)
    return OWN


def _account(user: pwd.struct_passwd, python: Path, scratch: Path) -> Other:
    if os.geteuid() == 0:
        return Switched(user, scratch)
    return ThroughSudo(user, scratch, python)


def _user(name: str) -> pwd.struct_passwd:
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(
            f"there is no user '{name}' on this machine, so no worker can run as it; make one, for "
            f"example with 'sudo useradd --system --shell /usr/sbin/nologin {name}'"
        ) from None
    if user.pw_uid in (0, os.geteuid()):
        who = "who may read everything" if user.pw_uid == 0 else "the gate's own user"
        raise ConfigError(
            f"'worker-user' names {name}, {who}, so nothing would be kept from the code under "
            f"test; name a user who owns nothing, or leave the setting out"
        )
    return user


def _require_switch(account: Other) -> None:
    name = account.user.pw_name
    try:
        done = account.run("id -u")
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    else:
        if done.stdout.strip() == str(account.user.pw_uid):
            return
        why = done.stderr.strip() or f"'id -u' said {done.stdout.strip() or 'nothing'}"
    line = shlex.quote(f"{_own_name()} ALL=({name}) NOPASSWD: ALL")
    mend = (
        "this root may not change its user, as in some containers: leave 'worker-user' out"
        if os.geteuid() == 0
        else f"an administrator allows it with: echo {line} | sudo tee /etc/sudoers.d/sns-gate-user"
    )
    raise ConfigError(f"workers cannot run as {name} ({why}), so nothing was measured; {mend}")


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"#{os.getuid()}"
