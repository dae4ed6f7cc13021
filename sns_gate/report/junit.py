"""A result as JUnit's XML, for systems that show tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from sns_gate.plain import plain
from sns_gate.report import words
from sns_gate.report.inside import sentence
from sns_gate.types import CaseResult, GateResult, Verdict

_FAILURES = (Verdict.SLOWER, Verdict.WRONG)
#: Nothing was found and nothing was cleared: neither a failure nor a pass.
_SKIPPED = (Verdict.INCONCLUSIVE, Verdict.ADDED)
_ERRORS = (Verdict.REFUSED, Verdict.BROKEN, Verdict.REMOVED)


def junit(result: GateResult, name: str = "sns-gate") -> str:
    """One suite with a test a case: slower and wrong fail, what could not be judged is an error.

    Where the policy makes refused or inconclusive cases pass, they are skipped tests.

    Args:
        result: finished or not.
        name: of the suite.
    """
    suite = ET.Element("testsuite", name=name, timestamp=result.started_at)
    outcomes = [_add(suite, case, result) for case in result.cases]
    for kind, count in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(kind, str(outcomes.count(count)))
    suite.set("tests", str(len(result.cases)))
    suite.set("time", f"{result.seconds:.3f}")
    ET.SubElement(suite, "system-out").text = plain(words.headline(result))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return ET.tostring(whole, encoding="unicode", xml_declaration=True) + "\n"


def _add(suite: ET.Element, case: CaseResult, result: GateResult) -> str:
    """Add a test; what became of it, empty for a pass."""
    test = ET.SubElement(
        suite,
        "testcase",
        name=plain(case.id),
        classname=plain(case.file or "sns-gate"),
        time=f"{case.seconds:.3f}",
    )
    kind = _outcome(case, result)
    if kind:
        what = ET.SubElement(test, kind, type=case.verdict.value, message=plain(_message(case)))
        what.text = "\n".join(plain(line) for line in _details(case)) or None
    return kind


def _outcome(case: CaseResult, result: GateResult) -> str:
    if case.id in {one.case for one in result.accepted}:
        return "skipped"
    if case.verdict in _FAILURES:
        return "failure"
    if case.verdict is Verdict.INCONCLUSIVE and result.on_inconclusive == "failure":
        return "error"
    if case.verdict is Verdict.REFUSED and result.on_refused != "failure":
        return "skipped"
    if case.verdict in _ERRORS:
        return "error"
    return "skipped" if case.verdict in _SKIPPED else ""


def _message(case: CaseResult) -> str:
    speedup = words.speedup(case)
    return f"{words.verdict(case)}, speedup {speedup}" if speedup else words.verdict(case)


def _details(case: CaseResult) -> list[str]:
    lines = [f"{reason.text} [{reason.code}]" for reason in case.reasons]
    if case.explanation is not None:
        lines.insert(0, sentence(case.explanation, case.verdict))
    lines += [line for reason in case.reasons for line in reason.detail.splitlines()]
    return lines
