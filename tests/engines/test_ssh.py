"""Cases measured over ssh: a real sshd on this machine's loopback, with keys of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.launchers import PLANTED, demo_through, planted_repository, through
from tests.leftovers import processes_in
from tests.moments import wait_for
from tests.test_outposts import COUNT, Field, lost

pytestmark = pytest.mark.engines

SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
NO_SSHD = "no sshd, so nothing was measured over ssh; apt-get install openssh-server"
OPENS_WITHIN_S = 20


class Server:
    """An sshd for this user alone; what it starts has its temporary files in ``tmp``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tmp = folder, folder / "there"
        self.tmp.mkdir(parents=True)
        folder.chmod(0o700)
        for name in ("host", "user"):
            key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(key, check=True)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        public = (folder / "host.pub").read_text()
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {public}")
        self._write("sshd_config", [
            "ListenAddress 127.0.0.1", f"Port {self.port}", f"HostKey {folder}/host",
            f"AuthorizedKeysFile {folder}/user.pub", f"PidFile {folder}/pid", "StrictModes no",
            "UsePAM no", "PermitRootLogin yes", "PasswordAuthentication no",
            f"SetEnv TMPDIR={self.tmp}",
        ])  # fmt: skip
        self._write("ssh_config", [
            "Host node1", "HostName 127.0.0.1", f"Port {self.port}", f"User {getpass.getuser()}",
            f"IdentityFile {folder}/user", "IdentitiesOnly yes",
            f"UserKnownHostsFile {folder}/known", "BatchMode yes",
        ])  # fmt: skip

    def _write(self, name: str, lines: list[str]) -> None:
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def launcher(self) -> str:
        """In words for the command line."""
        return f"ssh -F {self.folder}/ssh_config node1"

    def start(self) -> subprocess.Popen[bytes]:
        """Run it, and wait until it answers."""
        if os.geteuid() == 0:  # where its distribution's service has not made it
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        assert SSHD is not None
        with (self.folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")], stderr=log
            )
        deadline_s = time.monotonic() + OPENS_WITHIN_S
        while time.monotonic() < deadline_s:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return server
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server, or a skip that says how to get one; at the end nothing is left of what it ran."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip(NO_SSHD)
    made = Server(tmp_path_factory.mktemp("ssh") / "server")
    running = made.start()
    yield made
    for child in psutil.Process(running.pid).children(recursive=True):
        child.kill()
    running.kill()
    running.wait()
    assert not processes_in(made.tmp)


def cut(server: Server, outpost: psutil.Process) -> None:
    """End the server's end of the connection behind an outpost, but nothing that runs there."""
    listener = int((server.folder / "pid").read_text())
    for process in outpost.parents():
        if process.name() == "sshd" and process.pid != listener:
            process.kill()


def test_every_verdict_is_reached_over_ssh(server: Server, tmp_path: Path) -> None:
    ran = through(planted_repository(tmp_path / "repo"), server.launcher)
    assert ran.verdicts == PLANTED, ran.out + ran.err
    assert ran.code == 1
    assert ran.result is not None
    assert {case.device for case in ran.result.cases} == {f"{server.launcher}: cpu"}
    assert not list(server.tmp.iterdir())


def test_the_demo_is_judged_over_ssh(server: Server, tmp_path: Path) -> None:
    result = demo_through(tmp_path, server.launcher)
    assert {case.device for case in result.cases} == {f"{server.launcher}: cpu"}


def test_both_sides_are_shipped_to_a_host_that_does_not_have_them(
    server: Server, tmp_path: Path
) -> None:
    repository = planted_repository(tmp_path / "repo")
    hide = server.folder / "hide"
    hide.write_text(
        f"#!/bin/sh\nexec unshare --mount sh -c 'mount -t tmpfs none {tmp_path} && exec \"$@\"' "
        f'sh "$@"\n'
    )
    hide.chmod(0o755)
    if subprocess.run([str(hide), "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user may hide no folder (unshare --mount), so it is there on both sides")
    ran = through(repository, f"{server.launcher} {hide}", TMPDIR=str(tmp_path))
    assert ran.verdicts == PLANTED, ran.out + ran.err
    assert "shipping both sides" in ran.out
    assert {case.file for case in ran.result.cases} == {"benchmarks/bench_pace.py"}  # type: ignore[union-attr]
    assert not list(server.tmp.iterdir())


def test_a_connection_that_breaks_costs_its_case_alone(server: Server, tmp_path: Path) -> None:
    field = Field(tmp_path)
    gate = field.start(server.launcher, server.launcher)
    cut(server, field.measuring(2))
    out, err = gate.communicate(timeout=120)
    assert gate.returncode == 3, out + err
    assert [lost(case) for case in field.cases] == [n == 2 for n in range(COUNT)], out
    assert "exited with 255" in field.cases[2]["reasons"][-1]["text"]
    assert sum(case["speedup"] is not None for case in field.cases) == COUNT - 1, out
    assert not processes_in(server.tmp), "the outpost saw its streams close, and swept up"
    assert not list(server.tmp.iterdir())


def test_an_ended_check_leaves_nothing_at_the_host(server: Server, tmp_path: Path) -> None:
    field = Field(tmp_path)
    gate = field.start(server.launcher)
    wait_for(f"1/{COUNT}", gate)
    gate.send_signal(signal.SIGTERM)
    out, err = gate.communicate(timeout=60)
    assert gate.returncode == 143, out + err
    assert not processes_in(server.tmp)
    assert not list(server.tmp.iterdir())


def test_a_host_that_refuses_is_refused_in_its_words(server: Server, tmp_path: Path) -> None:
    field = Field(tmp_path)
    ran = field.check(server.launcher.replace("node1", "-p 1 node1"))
    assert ran.code == 3, ran.out + ran.err
    assert "Connection refused" in ran.err
    ran = field.check(server.launcher, more=("--launcher-python", "/no/such/python"))
    assert ran.code == 3, ran.out + ran.err
    assert "--launcher-python FILE" in ran.err
