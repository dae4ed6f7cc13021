"""Workers of another user: what is the gate's own is out of their reach, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sns_gate.accounts import account_for
from sns_gate.config import Source, resolve
from sns_gate.errors import ConfigError, WorkerDied
from sns_gate.session.outputs import compare_outputs
from sns_gate.types import CHECKED, GateResult
from tests.conftest import QUICK, WORK, clean_environment, commit, git, new_repository
from tests.leftovers import processes_in
from tests.test_outputs import RANDOM, Returning

ROOT = Path(__file__).resolve().parents[1]
#: The gate may run as the first, its workers as the second.
GATE, WORKER = "nobody", "daemon"
SUDOER = f"{GATE} by its own sudo"
BENCH = """
import os
import signal
import subprocess
import sys

from sns_gate import benchmark
from pkg import work

import pkg


def gate():
    pid = os.getpid()
    while b"check" not in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0"):
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    return pid


TRIES = {
    "read a secret": lambda: open(os.environ["SECRET"]),
    "read the gate's variables": lambda: open(f"/proc/{gate()}/environ"),
    "read the gate's memory": lambda: open(f"/proc/{gate()}/mem", "rb"),
    "signal the gate": lambda: os.kill(gate(), signal.SIGTERM),
    "read the logs": lambda: os.listdir(os.environ["TMPDIR"] + "/../../../../logs"),
    "change its code": lambda: open(pkg.__file__, "a"),
    "change the gate": lambda: open(sys.modules["sns_gate"].__file__, "a"),
    "write in the check's folder": lambda: open(os.environ["TMPDIR"] + "/../../../../x", "w"),
}


def said(action):
    try:
        action()
    except PermissionError:
        return "may not"
    return "could"


@benchmark
def tries():
    found = {name: said(action) for name, action in TRIES.items()}
    own = os.path.join(os.environ["TMPDIR"], "mine")
    open(own, "w").close()
    closed = os.path.join(os.environ["TMPDIR"], "closed")
    os.makedirs(os.path.join(closed, "inside"))
    os.chmod(closed, 0)
    mode = oct(os.stat(os.environ["TMPDIR"] + "/../../../..").st_mode & 0o777)
    who = (os.getuid(), os.stat(own).st_uid, os.access(os.environ["HOME"], os.W_OK), mode)
    raise RuntimeError(f"{who} {found}")


@benchmark(params={"n": [2000]})
def square(n):
    forever = "import time; time.sleep(300)"
    subprocess.Popen([sys.executable, "-c", forever], start_new_session=True)
    return lambda: work(n)
"""
#: A setuid program in sudo's place: it makes the one user the other and nothing else. Like sudo it
#: is root's, waits for what it started, and stops where that is stopped.
SUDO = """
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int status;
    if (getuid() != FROM || count < 6 || strcmp(words[1], "-n") || strcmp(words[2], "-u")
        || strcmp(words[4], "--"))
        return 1;
    if (setresuid(0, 0, 0)) return 1;
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) || setgid(GROUP) || setuid(TO)) return 1;
        clearenv();
        setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
        execvp(words[5], words + 5);
        _exit(127);
    }
    do {
        if (waitpid(child, &status, WUNTRACED) < 0) return 1;
        if (WIFSTOPPED(status)) kill(getpid(), SIGSTOP);
    } while (WIFSTOPPED(status));
    if (WIFSIGNALED(status)) kill(getpid(), WTERMSIG(status));
    return WEXITSTATUS(status);
}
"""


def _runs(python: str, user: str, code: str, **environment: str) -> bool:
    """Whether a user can run this with an interpreter."""
    with contextlib.suppress(PermissionError):
        done = subprocess.run(
            [python, "-c", code], user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=(),
            cwd="/", env={"PATH": os.environ["PATH"], **environment}, capture_output=True,
            check=False,
        )  # fmt: skip
        return done.returncode == 0
    return False


class Place:
    """A repository, a temporary folder and interpreters that every user may enter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tmp = folder, folder / "tmp"
        self.tmp.mkdir()
        self.secret = folder / "secret"
        self.secret.write_text("not for workers")
        self.secret.chmod(0o600)
        files = {"pkg/__init__.py": WORK, "benchmarks/bench_tries.py": BENCH,
                 ".gitignore": "result.json\n"}  # fmt: skip
        self.repository = new_repository(folder / "repository", files)
        commit(self.repository, {"README": "the same"})
        self.environment = clean_environment(
            TMPDIR=str(self.tmp), SNS_GATE_STATE_DIR=str(folder / "state"), SECRET=str(self.secret),
            PYTHONPATH=os.pathsep.join([str(ROOT), *site.getsitepackages()]),
        )  # fmt: skip

    def python(self, user: str, code: str) -> str:
        """An interpreter with which a user can run this."""
        for one in (sys.executable, "/usr/bin/python3"):
            path = self.environment["PYTHONPATH"]
            if Path(one).exists() and _runs(one, user, code, PYTHONPATH=path):
                return one
        pytest.skip(f"no interpreter here that the user {user} may run and that fits")

    def through_sudo(self) -> None:
        """Let the gate's user become the workers', and own what a user owns."""
        gate, worker = pwd.getpwnam(GATE), pwd.getpwnam(WORKER)
        source, program = self.folder / "sudo.c", self.folder / "sudo"
        source.write_text(SUDO)
        numbers = {"FROM": gate.pw_uid, "TO": worker.pw_uid, "GROUP": worker.pw_gid}
        defined = [f"-D{name}={number}" for name, number in numbers.items()]
        subprocess.run(["gcc", *defined, "-o", str(program), str(source)], check=True)
        program.chmod(0o4755)
        for path in (self.folder, *self.folder.rglob("*")):
            if path != program:
                os.lchown(path, gate.pw_uid, gate.pw_gid)
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"

    def start(self, python: str, user: str, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [python, "-m", "sns_gate", "check", *QUICK, "--baseline", "HEAD~1", *options],
            cwd=self.repository, env=self.environment, user=user,
            group=pwd.getpwnam(user).pw_gid, extra_groups=(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def check(self, python: str, user: str, *options: str) -> subprocess.CompletedProcess[str]:
        gate = self.start(python, user, *options)
        out, err = gate.communicate(timeout=150)
        return subprocess.CompletedProcess(gate.args, gate.returncode, out, err)

    def ready(self, gate: str) -> tuple[str, str]:
        """Interpreters of the gate and of its workers, once the gate may become the workers' user.

        Args:
            gate: root, the other user with a stand-in for sudo, or with this machine's own sudo.
        """
        runs = self.python(WORKER, "import sys; sys.exit(sys.version_info < (3, 10))")
        if gate == "root":
            return sys.executable, runs
        python = self.python(GATE, "import sns_gate.gate")
        self.through_sudo()
        program = self.folder / "sudo"
        if gate == SUDOER:
            program.unlink()
            become = ["sudo", "-n", "-u", WORKER, "--", "true"]
            allowed = f"import subprocess, sys; sys.exit(subprocess.call({become}))"
            if shutil.which("sudo") is None or not _runs(python, GATE, allowed):
                pytest.skip(f"no sudo here lets {GATE} become {WORKER}")
        elif os.statvfs(program).f_flag & os.ST_NOSUID:
            pytest.skip("programs in /tmp are not given their owner's rights here")
        return python, runs

    @property
    def result(self) -> GateResult:
        return GateResult.model_validate_json((self.repository / "result.json").read_bytes())

    def left(self) -> list[str]:
        """Everything that is left of checks."""
        return [*map(str, self.tmp.rglob("*")), *processes_in(self.tmp)]


def user_of(gate: str) -> str:
    return gate.partition(" ")[0]


@pytest.fixture
def place() -> Iterator[Place]:
    if os.geteuid() != 0:
        pytest.skip("only root can start the gate and its workers as two other users")
    folder = Path(tempfile.mkdtemp(prefix="worker-user-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield Place(folder)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("gate", ["root", GATE, SUDOER])
def test_workers_of_another_user_reach_nothing_of_the_gates_and_leave_nothing(
    place: Place, gate: str
) -> None:
    python, runs = place.ready(gate)
    build = "{python} -c \"open('built', 'w').close(); open('{prefix}/x.py', 'w').close()\""
    ran = place.check(
        python, user_of(gate), "--worker-user", WORKER, "--python", runs, "--pass-env", "SECRET",
        "--candidate", "HEAD", "--build", build,
    )  # fmt: skip
    assert (ran.returncode, len(place.result.cases)) == (3, 2), ran.stdout + ran.stderr
    cases = {case.id: case for case in place.result.cases}
    assert cases["square[n=2000]"].speedup is not None, "outputs were compared, and it was timed"
    said = cases["tries"].reasons[0].text
    uid = pwd.getpwnam(WORKER).pw_uid
    mode = "0o750" if gate == "root" else "0o755"  # who is not root has no group of the worker's
    assert f"({uid}, {uid}, True, '{mode}')" in said
    # What a build made is the user's own, so that builds can change what they find.
    built = ("change its code",)
    assert said.count("'may not'") == 8 - len(built), said
    assert all(f"'{name}': 'could'" in said for name in built)
    assert not place.left()
    assert git(place.repository, "-c", "safe.directory=*", "worktree", "list").count("\n") == 0


@pytest.mark.parametrize("gate", ["root", GATE, SUDOER])
@pytest.mark.parametrize("after_s", [0.9, 1.6, 2.5])
def test_a_check_that_is_ended_early_leaves_nothing_of_its_other_user(
    place: Place, gate: str, after_s: float
) -> None:
    python, runs = place.ready(gate)
    ended = place.start(
        python,
        user_of(gate),
        "--worker-user",
        WORKER,
        "--python",
        runs,
        "--pass-env",
        "SECRET",
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        ended.wait(after_s)
    ended.send_signal(signal.SIGTERM)
    _, said = ended.communicate(timeout=100)
    assert "Traceback" not in said
    assert not place.left()


def test_a_revision_that_no_build_changes_is_not_the_workers_to_change(place: Place) -> None:
    runs = place.python(WORKER, "import sys; sys.exit(sys.version_info < (3, 10))")
    place.check(
        sys.executable, "root", "--worker-user", WORKER, "--python", runs, "--pass-env", "SECRET"
    )
    said = next(c for c in place.result.cases if c.id == "tries").reasons[0].text
    assert said.count("'may not'") == 8, said


def test_a_working_tree_that_the_user_may_not_read_is_refused_by_its_first_folder(
    place: Place,
) -> None:
    runs = place.python(WORKER, "import sys; sys.exit(sys.version_info < (3, 10))")
    place.repository.chmod(0o700)
    ran = place.check(sys.executable, "root", "--worker-user", WORKER, "--python", runs)
    assert ran.returncode == 2
    closed = f"the user {WORKER}, whom 'worker-user' names, may not enter the folder"
    assert f"{closed} {place.repository}, so no worker could run" in ran.stderr
    assert not place.left()


def test_a_user_who_would_keep_nothing_is_refused(tmp_path: Path) -> None:
    own = pwd.getpwuid(os.geteuid()).pw_name
    python = Path(sys.executable)
    for name, message in (
        (own, "nothing would be kept from the code under test"),
        ("root", "nothing would be kept from the code under test"),
        ("no-such-user-here", "sudo useradd --system"),
    ):
        with pytest.raises(ConfigError, match=message):
            account_for(name, python, tmp_path)
    for name in ("-u", "a b", ""):
        with pytest.raises(ConfigError, match="write the name of a user"):
            resolve(Source("x", {"worker-user": name}))


def test_who_may_not_become_the_user_is_told_what_would_allow_it(place: Place) -> None:
    python = place.python(GATE, "import sns_gate.gate")
    place.through_sudo()
    (place.folder / "sudo").unlink()
    refusing = place.folder / "sudo"
    refusing.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    refusing.chmod(0o755)
    ran = place.check(python, GATE, "--worker-user", WORKER)
    assert ran.returncode == 2
    assert f"workers cannot run as {WORKER} (sudo: a password is required)" in ran.stderr
    assert f"'{GATE} ALL=({WORKER}) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/" in ran.stderr
    assert not place.left()


@pytest.mark.parametrize("ending", [".json", ".bin"])
def test_what_a_worker_links_to_in_place_of_its_output_is_not_read(
    tmp_path: Path, ending: str
) -> None:
    def linked(stem: Path) -> None:
        written = stem.with_suffix(ending)
        written.rename(tmp_path / f"moved{ending}")
        written.symlink_to(tmp_path / f"moved{ending}")

    pair = Returning("baseline", RANDOM), Returning("candidate", RANDOM + 1, linked)
    with pytest.raises(WorkerDied, match=r"wrote (no|an) output"):
        compare_outputs(pair, CHECKED, 1, 1.0)
