"""Cases measured by Slurm's own daemons: a controller and two nodes on this machine's loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.launchers import PLANTED, demo_through, planted_repository, through
from tests.leftovers import processes_in
from tests.test_outposts import COUNT, Field, lost

pytestmark = pytest.mark.engines

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "squeue", "scancel")
NO_SLURM = "no Slurm, so nothing was measured by it; apt-get install slurmctld slurmd slurm-client"
NODES = ("node1", "node2")
OPENS_WITHIN_S = 30


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in made]


class Cluster:
    """Two nodes of one core each, with configuration, keys and state in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, host = folder, socket.gethostname().partition(".")[0]
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self._ports = free_ports(1 + len(NODES))
        nodes = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1"
            for name, port in zip(NODES, self._ports[1:], strict=True)
        ]
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text("\n".join([
            "ClusterName=tests", f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self._ports[0]}", "SlurmUser=root",
            f"AuthInfo=socket={folder}/munge.socket", f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool.%n", f"SlurmctldPidFile={folder}/controller.pid",
            f"SlurmdPidFile={folder}/%n.pid", f"SlurmctldLogFile={folder}/controller.log",
            f"SlurmdLogFile={folder}/%n.log", "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none", "ReturnToService=2", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU", *nodes,
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        ]) + "\n", encoding="utf-8")  # fmt: skip

    def start(self) -> None:
        """Run all daemons, and wait until both nodes are idle."""
        at = self.folder
        self._run("munged", "--force", f"--key-file={at}/munge.key",
                  f"--socket={at}/munge.socket", f"--pid-file={at}/munge.pid",
                  f"--log-file={at}/munge.log", f"--seed-file={at}/munge.seed")  # fmt: skip
        self._run("slurmctld", "-f", str(self.configuration))
        for node in NODES:
            self._run("slurmd", "-f", str(self.configuration), "-N", node)
        deadline_s = time.monotonic() + OPENS_WITHIN_S
        while (said := self._run("sinfo", "--noheader", "--format=%T %D").strip()) != "idle 2":
            assert time.monotonic() < deadline_s, f"{said}\n{(at / 'controller.log').read_text()}"
            time.sleep(0.1)

    def stop(self) -> None:
        """End everything that its files name."""
        with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
            self._run("scancel", "--full", "--user=root")
        for file in self.folder.glob("*.pid"):
            with contextlib.suppress(psutil.NoSuchProcess, ValueError):
                daemon = psutil.Process(int(file.read_text()))
                for process in (*daemon.children(recursive=True), daemon):
                    process.kill()
        for daemon in self._steps():
            daemon.kill()

    def lose(self, node: str) -> None:
        """End a node's daemon and all that runs there, at once."""
        daemon = psutil.Process(int((self.folder / f"{node}.pid").read_text()))
        own = [f"[{job}." for job in self.jobs(node)]
        steps = [one for one in self._steps() if any(job in one.cmdline()[0] for job in own)]
        victims = [daemon, *steps]
        for process in list(victims):
            victims += process.children(recursive=True)
        for process in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def jobs(self, node: str) -> list[str]:
        """What runs at a node."""
        return self._run(
            "squeue", "--noheader", "--states=RUNNING", "--format=%i", f"--nodelist={node}"
        ).split()

    def cancel(self, job: str) -> None:
        """As its user or an administrator does."""
        self._run("scancel", job)

    def _steps(self) -> list[psutil.Process]:
        return [one for one in psutil.process_iter() if one.name() == "slurmstepd"]

    def _run(self, name: str, *arguments: str) -> str:
        path = program(name)
        assert path is not None
        return subprocess.run(
            [path, *arguments], check=True, capture_output=True, text=True, timeout=30,
            env=os.environ | {"SLURM_CONF": str(self.configuration)},
        ).stdout  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster, or a skip that says how to get one."""
    missing = [name for name in PROGRAMS if program(name) is None]
    if missing:
        pytest.skip(f"{NO_SLURM} munge (missing: {', '.join(missing)})")
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons want to be root's, so nothing was measured by them; use sudo")
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def cluster(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("SLURM_CONF", str(running.configuration))
    return running


def launcher(node: str) -> str:
    return f"srun --quiet -N1 -n1 -w {node}"


def test_every_verdict_is_reached_on_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    ran = through(planted_repository(tmp_path / "repo"), *map(launcher, NODES))
    assert ran.verdicts == PLANTED, ran.out + ran.err
    assert ran.code == 1
    assert ran.result is not None
    places = {f"{launcher(node)}: cpu" for node in NODES}
    assert {case.device for case in ran.result.cases} <= places
    assert not any(map(cluster.jobs, NODES))


def test_the_demo_is_judged_on_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    result = demo_through(tmp_path, *map(launcher, NODES))
    assert {case.device for case in result.cases} == {f"{launcher(node)}: cpu" for node in NODES}
    assert not any(map(cluster.jobs, NODES))


def test_a_cancelled_job_costs_its_case_alone(cluster: Cluster, tmp_path: Path) -> None:
    one_is_lost(tmp_path, lambda node: cluster.cancel(cluster.jobs(node)[0]))


def test_a_node_that_goes_down_costs_its_case_alone(cluster: Cluster, tmp_path: Path) -> None:
    one_is_lost(tmp_path, cluster.lose)


def one_is_lost(folder: Path, lose: Callable[[str], object]) -> None:
    """The case under way at a node is broken by its end, and the other node measures the rest."""
    field = Field(folder)
    gate = field.start(*map(launcher, NODES))
    node = field.measuring(2).environ()["SLURMD_NODENAME"]
    lose(node)
    out, err = gate.communicate(timeout=120)
    assert gate.returncode == 3, out + err
    assert [lost(case) for case in field.cases] == [n == 2 for n in range(COUNT)], out
    assert field.cases[2]["device"] == f"{launcher(node)}: cpu"
    assert sum(case["speedup"] is not None for case in field.cases) == COUNT - 1, out
    assert not processes_in(field.tmp)
