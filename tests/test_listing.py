"""What needs no measurement: the list of cases, completion, and a result as JUnit's XML."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

from sns_gate.report.junit import junit
from sns_gate.types import Acceptance, Verdict
from tests.conftest import check, commit, sns_gate
from tests.test_report import CASES, case, result


def test_cases_are_listed_with_where_they_stand_and_what_they_take(repository: Path) -> None:
    bench = """
        from sns_gate import benchmark

        @benchmark(params={"n": [1, 2]})
        def other(n):
            return lambda: n
    """
    commit(repository, {"benchmarks/bench_other.py": bench, "benchmarks/bench_bad.py": "1 / 0\n"})
    listed = sns_gate(repository, "list", "--device", "cpu")
    assert listed.code == 1, "a file that does not load is a fault to mend"
    said = listed.out.splitlines()
    assert any("other[n=2]" in line and "benchmarks/bench_other.py:4" in line for line in said)
    assert "bench_bad.py does not load: ZeroDivisionError" in listed.out
    whole = " ".join(listed.out.split())
    assert "3 cases, about 8.1 s of measuring; starting workers and measuring again" in whole
    assert whole.endswith("come on top, and so does building"), "how long is not known yet"
    twice = bench.replace("def other", "def another").replace(
        "@benchmark(", '@benchmark(name="other", '
    )
    commit(repository, {"benchmarks/bench_twice.py": twice, "benchmarks/bench_bad.py": ""})
    repeated = sns_gate(repository, "list", "--device", "cpu")
    assert repeated.code == 1
    assert "'other[n=2]' is the id of several cases" in repeated.out
    (repository / "benchmarks/bench_twice.py").unlink()
    check(repository, "--filter", "square")
    known = sns_gate(repository, "list", "--device", "cpu", "--filter", "square")
    assert "1 case, about" in known.out
    assert "1 of them from the last result" in known.out
    assert re.search(r"come on top, [\d.]+ m?s last time", " ".join(known.out.split()))


def test_what_the_shell_is_given_knows_every_command_and_its_options(tmp_path: Path) -> None:
    for shell in ("bash", "zsh"):
        printed = sns_gate(tmp_path, "completion", shell)
        assert printed.code == 0, printed.err
        for word in ("check", "explain", "--baseline", "--tolerance"):
            assert word in printed.out
    script = tmp_path / "completion.bash"
    script.write_text(sns_gate(tmp_path, "completion", "bash").out)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_a_result_is_a_suite_with_a_test_a_case() -> None:
    suite = ET.fromstring(junit(result(*CASES))).find("testsuite")  # noqa: S314 (just written)
    assert suite is not None
    counts = {key: int(suite.get(key, "")) for key in ("tests", "failures", "errors", "skipped")}
    assert counts["tests"] == len(CASES)
    kinds = {test.get("name"): [child.tag for child in test] for test in suite.iter("testcase")}
    assert kinds["add"] == ["failure"]
    assert kinds["softmax[n=4096]"] == []
    assert kinds["gelu"] == ["error"]
    assert kinds["topk"] == ["error"]
    assert kinds["sort"] == ["skipped"]
    flat = [kind for found in kinds.values() for kind in found]
    assert counts["failures"] == flat.count("failure")
    assert counts["errors"] == flat.count("error")
    assert counts["skipped"] == flat.count("skipped")
    failure = suite.find("testcase[@name='add']/failure")
    assert failure is not None
    assert "slower, speedup 0.9713 [0.9673, 0.9753]" in failure.get("message", "")
    assert "the extra 2.900 µs under the profiler are in fill" in (failure.text or "")


def test_what_policy_or_somebody_lets_pass_is_skipped_and_no_pass() -> None:
    slower, refused = case("a", Verdict.SLOWER, 0.8, 0.85, 0.9), case("b", Verdict.REFUSED)
    found = result(slower, refused, on_refused="neutral").model_copy(
        update={"accepted": (Acceptance(case="a", by="ann", how="label"),)}
    )
    suite = ET.fromstring(junit(found)).find("testsuite")  # noqa: S314
    assert suite is not None
    assert (suite.get("skipped"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")
    strict = result(case("c", Verdict.INCONCLUSIVE, 0.9, 1.0, 1.1), on_inconclusive="failure")
    assert '<error type="inconclusive"' in junit(strict)


def test_names_that_xml_cannot_hold_are_made_plain() -> None:
    text = junit(result(case("a\x00\x1b[31m<&>\ud800", Verdict.SLOWER, 0.8, 0.85, 0.9)))
    name = next(ET.fromstring(text).iter("testcase")).get("name", "")  # noqa: S314
    assert "<&>" in name
    assert "\x1b" not in name


def test_a_report_that_cannot_be_written_is_said_and_the_result_stays(repository: Path) -> None:
    commit(repository, {"README": "the same"})
    check(repository)
    shown = sns_gate(repository, "report", "result.json", "--junit", "no/such/folder.xml")
    assert shown.code == 2
    assert "no/such/folder.xml cannot be written" in shown.err
    written = sns_gate(repository, "report", "result.json", "--junit", "report.xml")
    assert written.code == 0
    assert (repository / "report.xml").read_text().startswith("<?xml")
