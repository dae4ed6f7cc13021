"""What a kernel's tuner chose stays with the worker that chose it; what was compiled is shared."""

from __future__ import annotations

from pathlib import Path

from sns_gate.types import Verdict
from tests.conftest import QUICK, commit, new_repository, sns_gate

#: Keeps its choices where inductor and triton keep theirs, as a kernel that is compiled and tuned.
BENCH = """
import os
import time
from pathlib import Path

import pkg
from sns_gate import benchmark

known = set()

def chosen(file):
    if file in known:
        return
    known.add(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(str(os.getpid()))
    assert file.read_text() == str(os.getpid()), f"read what another worker chose: {file.name}"

@benchmark
def tuned():
    triton, inductor = (
        Path(os.environ[name]) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    )
    def call():
        chosen(inductor / "best_config")
        chosen(triton / "digest" / "kernel.autotune.json")
        compiled = triton / "digest" / "kernel.cubin"
        with (Path(os.environ["LEDGER"]) / Path(triton).parent.name).open("a") as ledger:
            ledger.write("found\\n" if compiled.exists() else "compiled\\n")
        compiled.touch()
        time.sleep(0.002)
        return len(pkg.NAME)
    return call
"""


def test_each_worker_tunes_for_itself_and_none_compiles_twice(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    files = {"pkg.py": "NAME = 'one'\n", "benchmarks/bench_tuned.py": BENCH}
    repository = new_repository(tmp_path / "repository", files)
    commit(repository, {"pkg.py": "NAME = 'two'\n"})
    ran = sns_gate(
        repository, "check", "--baseline", "HEAD~1", *QUICK, "--pass-env", "LEDGER",
        LEDGER=str(ledger),
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    assert ran.result is not None
    assert ran.result.cases[0].verdict == Verdict.UNCHANGED, ran.result.cases[0].reasons
    for side in ("baseline", "candidate"):
        lines = (ledger / side).read_text().split()
        assert lines[0] == "compiled"
        assert len(lines) > len(QUICK)
        assert set(lines[1:]) == {"found"}
