"""Signals and time limits that come while clocks are being pinned leave none pinned."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from sns_gate.clocks import helper as clock_helper
from tests.fake_nvml import FakeNvml
from tests.test_clocks import eventually, fake, run, start, state, untouched

__all__ = ["fake", "state"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("slow", [True, False])
def test_a_signal_while_the_clocks_are_being_pinned_leaves_none_pinned(
    fake: FakeNvml, state: Path, tmp_path: Path, number: signal.Signals, *, slow: bool
) -> None:
    """The device has heard it, and whoever asked does not know yet; a helper may write late."""
    before, after = (0.4, 0) if slow else (0, 0.4)
    helper = tmp_path / "helper.py"
    helper.write_text(
        f"import runpy, sys, time\ntime.sleep({before} * (sys.argv[2] == 'lock-sm'))\n"
        f"try:\n    runpy.run_path({clock_helper.__file__!r}, run_name='__main__')\n"
        f"finally:\n    time.sleep({after} * (sys.argv[2] == 'lock-sm'))\n"
    )
    script = f"""
    from sns_gate.signals import signals_raise
    with signals_raise():
        p = policy(helper=(sys.executable, {str(helper)!r}))
        print("up", flush=True)
        try:
            p.apply()
            time.sleep(60)
        finally:
            p.restore()
    """
    process = start(fake, state, script)
    assert process.stdout is not None
    process.stdout.readline()
    assert eventually(lambda: list(state.glob("*.json")) if slow else not untouched(fake))
    time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=30)
    time.sleep(0.5)
    assert eventually(lambda: untouched(fake) and not list(state.glob("*.json"))), fake.writes()


def test_a_helper_that_gives_no_answer_may_have_pinned_and_is_undone(
    fake: FakeNvml, state: Path, tmp_path: Path
) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text(
        f"import runpy, sys, time\n"
        f"try:\n    runpy.run_path({clock_helper.__file__!r}, run_name='__main__')\n"
        f"finally:\n    time.sleep(60 * (sys.argv[2] == 'lock-sm'))\n"
    )
    said = run(fake, state, f"""
    from sns_gate.clocks import writer
    writer._HELPER_TIMEOUT_S = 1.0
    try:
        policy(helper=(sys.executable, {str(helper)!r})).apply()
    except ClockLockError as error:
        print(error)
    """)  # fmt: skip
    assert "it is not known what it did" in said
    assert untouched(fake)
    assert not list(state.glob("*.json"))
