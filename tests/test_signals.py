"""Signals that arrive while a check cleans up: it is done wholly, and the signal is obeyed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sns_gate.errors import Terminated
from sns_gate.protocol import Ready
from sns_gate.revisions import scratch_folder
from sns_gate.signals import go_on, signals_raise, to_its_end
from tests.conftest import QUICK, clean_environment, commit, git
from tests.leftovers import left_behind
from tests.test_workers import HELLO, worker

ENDINGS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated, signal.SIGHUP: Terminated}


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_in_a_clean_up_raises_once_that_is_done(number: signal.Signals) -> None:
    done = []

    def undo() -> None:
        os.kill(os.getpid(), number)
        done.append("after the signal")

    with signals_raise():
        with pytest.raises(ENDINGS[number]):
            to_its_end(undo)
        to_its_end(lambda: done.append("later"))
    assert done == ["after the signal", "later"]


def test_a_clean_up_inside_another_does_not_cut_that_one_short() -> None:
    done = []

    def inner() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("inner")

    def outer() -> None:
        to_its_end(inner)
        done.append("outer")

    with signals_raise(), pytest.raises(Terminated):
        to_its_end(outer)
    assert done == ["inner", "outer"]


def test_a_clean_up_that_fails_keeps_the_signal_and_says_what_failed() -> None:
    def undo() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise OSError("the disk is gone")

    with signals_raise(), pytest.raises(Terminated) as ended:
        to_its_end(undo)
    assert isinstance(ended.value.__context__, OSError)


def test_who_catches_errors_does_not_keep_a_signal() -> None:
    def works() -> None:
        with contextlib.suppress(Exception):  # as libraries do
            os.kill(os.getpid(), signal.SIGTERM)

    with signals_raise(), pytest.raises(Terminated):
        works()


class Finalized:
    """Its finalizer is where a signal arrives, so that nothing can catch what that raises."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_in_a_finalizer_is_not_lost(number: signal.Signals) -> None:
    def works() -> None:
        Finalized(number)
        time.sleep(10)

    with signals_raise(), pytest.raises(ENDINGS[number]):
        works()


def kept(number: int) -> None:
    """A signal whose exception goes no further, as where C code drops errors of a callback."""
    with contextlib.suppress(BaseException):
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_that_something_kept_ends_whoever_asks_for_more_work(
    tmp_path: Path, number: signal.Signals
) -> None:
    asked, silent = worker(tmp_path, ""), worker(tmp_path, "time.sleep(60)")
    silent.send(HELLO)
    try:
        with signals_raise():
            go_on()
            kept(number)
            with pytest.raises(ENDINGS[number]):
                asked.send(HELLO)
            with pytest.raises(ENDINGS[number]):
                silent.receive(Ready, 30)
            to_its_end(go_on)  # no clean-up is cut short
        go_on()
    finally:
        asked.kill()
        silent.kill()


def test_what_else_a_finalizer_raises_is_still_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raises:
        def __del__(self) -> None:
            raise ValueError("in a finalizer")

    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: said.append(lost.exc_value))
    with signals_raise():
        Raises()
    assert [str(error) for error in said] == ["in a finalizer"]


def test_only_the_first_signal_raises_and_an_ignored_one_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_raise():
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(Terminated):
                os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_scratch_folder_goes_although_a_signal_arrives_while_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remove = shutil.rmtree

    def interrupted(folder: Path, *, ignore_errors: bool) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        remove(folder, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with signals_raise(), pytest.raises(Terminated), scratch_folder() as folder:
        (folder / "file").touch()
    assert not list(tmp_path.iterdir())


#: A git that ends whoever removes a worktree, just before it does so.
GIT = """#!/bin/sh
case "$*" in *"worktree remove"*) kill -{number} $PPID; sleep 0.1;; esac
exec {git} "$@"
"""


@pytest.mark.parametrize("number", [number.name for number in ENDINGS])
def test_a_check_that_is_ended_while_it_cleans_up_leaves_nothing(
    repository: Path, number: str
) -> None:
    commit(repository, {"README": "the same"})
    commands, tmp = repository.parent / "commands", repository.parent / "tmp"
    commands.mkdir()
    tmp.mkdir()
    real = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout
    own = commands / "git"
    own.write_text(GIT.format(number=number.removeprefix("SIG"), git=real.strip()))
    own.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-m", "sns_gate", "check", *QUICK, "--baseline", "HEAD~1"],
        cwd=repository, text=True, capture_output=True, check=False,
        env=clean_environment(TMPDIR=str(tmp), PATH=f"{commands}:{os.environ['PATH']}"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert ran.returncode == (130 if number == "SIGINT" else 143), ran.stdout + ran.stderr
    assert "compared" in ran.stdout
    assert not left_behind(repository, tmp)
    assert "prunable" not in git(repository, "worktree", "list")
