"""What people read: terminal, help, schema. Golden files are renewed by UPDATE_GOLDEN=1."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from sns_gate.report import json as result_file
from sns_gate.report import words
from sns_gate.report.table import PLOT_WIDTH
from sns_gate.report.terminal import render
from sns_gate.report.words import next_step
from sns_gate.report.writing import ResultFile
from sns_gate.types import (
    Block,
    CaseResult,
    EnvironmentFingerprint,
    Explanation,
    GateResult,
    MeasurementTier,
    Outcome,
    Profile,
    ProfiledPart,
    Reason,
    RevisionInfo,
    Speedup,
    Verdict,
)
from sns_gate.verdict import EXIT_MEANINGS, conclusion, exit_code, outcome

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str, text: str) -> None:
    """Hold a text against its golden file."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def case(
    id_: str, verdict: Verdict, *interval: float, note: str = "", **more: object
) -> CaseResult:
    fields: dict[str, object] = {"id": id_, "verdict": verdict, "note": note, "tolerance": 0.02}
    if interval:
        low, estimate, high = interval
        fields |= {
            "speedup": Speedup(estimate=estimate, low=low, high=high),
            "tier": MeasurementTier.B, "mode": "cold", "detectable_pct": 2.54,
            "baseline_ms": 0.05761, "candidate_ms": 0.05761 / estimate,
        }  # fmt: skip
    return CaseResult.model_validate(fields | more)


EXPLAINED = Explanation(
    baseline=Profile(
        source="kernels", outside_us=0.5, launches=(1, 1),
        parts=(ProfiledPart(name="add_kernel", calls=1, us=57.0),),
    ),
    candidate=Profile(
        source="kernels", outside_us=1.5, launches=(2, 2), choices=("add_kernel: BLOCK: 128",),
        parts=(
            ProfiledPart(name="add_kernel", calls=1, us=57.2),
            ProfiledPart(name="void fill<float, 4>(float*)", calls=1, us=1.7),
        ),
    ),
)  # fmt: skip
CASES = (
    case("softmax[n=4096]", Verdict.UNCHANGED, 0.9981, 1.0001, 1.002),
    case("add", Verdict.SLOWER, 0.9673, 0.9713, 0.9753, explanation=EXPLAINED),
    case("scale", Verdict.SLOWER, 0.2474, 0.2491, 0.2509),
    case("mlp", Verdict.FASTER, 1.0961, 1.1072, 1.1183),
    case("sort", Verdict.INCONCLUSIVE, 0.9612, 1.0, 1.041, note="too wide",
         reasons=(Reason(code="needs-more-processes", text="more placements would not do"),)),
    case("gelu", Verdict.BROKEN, broken_sides=("candidate",),
         reasons=(Reason(code="raised", text="candidate worker 0: ValueError: boom",
                         detail="Traceback\n  line 1\nValueError: boom"),)),
    case("rope", Verdict.ADDED),
    case("topk", Verdict.REFUSED, 0.99, 1.0, 1.01, note="tier C",
         reasons=(Reason(code="gpu-shared", text="another process used this GPU"),)),
)  # fmt: skip


def result(*cases: CaseResult, **more: object) -> GateResult:
    found = EnvironmentFingerprint(
        gpu_name="NVIDIA H200",
        driver_version="580.159.04",
        torch_version="2.11.0",
        python_version="3.12.3",
    )
    code = exit_code(cases)
    base = GateResult(
        tool_version="0", verdict=outcome(code), exit_code=int(code), complete=True, tolerance=0.02,
        baseline=RevisionInfo(
            ref="merge base with origin/main", commit="ab" * 20, fingerprint=found
        ),
        candidate=RevisionInfo(ref="working tree", commit="cd" * 20, dirty=True,
                               changed_files=("a.py", "b.py"), fingerprint=found),
        device="cuda:0", seed=0, processes=4, placements=4, started_at="2026-01-01T00:00:00+00:00",
        seconds=21.3, cases=cases,
    )  # fmt: skip
    return base.model_copy(update={"conclusion": conclusion(code, base)} | more)


def printed(found: GateResult, width: int = 140, **options: object) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, **options)  # type: ignore[arg-type]
    render(found, console)
    output = console.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def test_the_terminal_report_is_the_golden_one() -> None:
    golden("terminal.txt", printed(result(*CASES)))


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_no_line_is_wider_than_the_terminal_and_no_verdict_is_lost(width: int) -> None:
    text = printed(result(*CASES), width=width)
    assert max(map(len, text.splitlines())) <= width
    for one in CASES:  # a name may be folded, and is never cut
        assert one.id[:12] in text
    for one in CASES:
        if one.speedup:
            assert words.speedup(one) in text
    for verdict in ("slower", "faster", "unchanged", "broken", "refused", "added"):
        assert verdict in text


def test_a_terminal_without_unicode_gets_none() -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"

    console = Console(file=Ascii(), width=140, highlight=False)
    render(result(CASES[0], CASES[1]), console)
    console.file.seek(0)
    table = console.file.read().split("\n\n")[0]
    assert "●" not in table
    assert "o" in table


def test_no_colour_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    coloured = printed(result(*CASES), force_terminal=True)
    assert "\x1b[31m" not in coloured
    assert "\x1b[1;31m" not in coloured


def test_the_sentence_never_says_pass_where_nothing_was_measured() -> None:
    for found in (result(), result(CASES[6])):
        assert found.verdict is Outcome.NOTHING_COMPARED
        assert words.headline(found) == "Nothing was compared, so this is no pass."
    unfinished = result(CASES[0], complete=False)
    assert words.headline(unfinished) == "The check did not finish: 1 case measured."


def test_the_sentence_says_what_a_reviewer_needs() -> None:
    slower = words.headline(result(*CASES[:4]))
    assert slower == "2 of 4 cases are slower than merge base with origin/main at ababababa."
    assert words.headline(result(CASES[0])).startswith("No case is slower than")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(1234.5, "1.234 s"), (12.3456, "12.35 ms"), (0.05761, "57.61 µs"), (0.0000042, "4.200 ns"),
     (0.123456, "123.5 µs"), (None, "")],
)  # fmt: skip
def test_durations_have_four_digits_and_a_unit(ms: float | None, text: str) -> None:
    assert words.duration(ms) == text


def test_the_plot_puts_slower_left_and_faster_right() -> None:
    text = printed(result(CASES[1], CASES[3]))
    slower, faster = (
        next(li for li in text.splitlines() if li.startswith(n)) for n in ("add", "mlp")
    )
    assert slower.index("●") < slower.index("│") - 1
    assert faster.index("●") > faster.index("│") + 1
    assert PLOT_WIDTH == 23


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    block = Block(
        placement=0, baseline_worker=0, candidate_worker=1, settling=0, sides="bc", ms=(1.0, 2.0),
        device_mhz=(None, 1980.5), held_us=(None, 3.0), log_speedup=-0.7,
    )  # fmt: skip
    found = result(*CASES, CASES[0].model_copy(update={"id": "b", "blocks": (block,)}))
    file = ResultFile(tmp_path / "r.json")
    file.save(found)
    assert file.failure is None
    assert result_file.read(tmp_path / "r.json") == found
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_the_schema_is_the_golden_one_and_describes_every_result() -> None:
    schema = json.loads(result_file.schema())
    golden("schema.json", result_file.schema() + "\n")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(result(*CASES).model_dump_json()), schema)


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "sns_gate", *arguments]
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse words its help anew in 3.12 and later"
)
def test_the_help_is_the_golden_one() -> None:
    golden("help.txt", run("--help"))
    golden("help-check.txt", run("check", "--help"))


def test_the_help_answers_within_a_third_of_a_second() -> None:
    def cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = cpu_s()
    for _ in range(5):
        run("--help")
    assert (cpu_s() - before) / 5 < 0.3  # of the CPU, so that a busy machine is no fault of ours


def test_the_readme_has_the_table_of_exit_codes() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_MEANINGS.items():
        assert f"| {int(code)} | {meaning} |" in readme


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = (
        "import sys, sns_gate, sns_gate.cli; sns_gate.benchmark; "
        "heavy = ('torch', 'numpy', 'pydantic', 'git', 'rich', 'pynvml'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError):
        __import__("sns_gate").no_such_name  # noqa: B018


def test_the_page_of_evidence_is_made_from_the_data_that_is_kept() -> None:
    from studies.evidence import PAGE, render

    assert PAGE.read_text(encoding="utf-8") == render()


def test_the_next_step_never_suggests_a_tolerance_that_is_no_wider() -> None:
    vague = case("sort", Verdict.INCONCLUSIVE, 0.85, 0.95, 1.06, note="too wide")
    assert next_step(result(vague, processes=6)) == (
        "narrow the intervals (--processes 12), or raise the tolerance (--tolerance 5%)"
    )
    assert "--tolerance 25%" in next_step(result(vague, tolerance=0.1))
    assert "--processes 32)" in next_step(result(vague, processes=16))
    assert "--processes 64)" in next_step(result(vague, processes=64))
    assert "tolerance" not in next_step(result(vague, tolerance=0.5))


def test_a_case_that_waits_for_its_second_measurement_is_to_be_checked_again() -> None:
    waiting = case("sort", Verdict.INCONCLUSIVE, 0.7, 0.75, 0.8, note="unconfirmed")
    assert next_step(result(waiting, complete=False)).startswith("check again")


@pytest.mark.parametrize(
    ("device", "tolerance", "said"),
    [
        ("cuda:0", 0.02, "finely: sns-gate check --filter add --processes 12"),
        ("cuda:0", 0.1, "--filter add --tolerance 10% --processes 12"),
        ("cpu", 0.02, "--filter add --device cpu --processes 12"),
        ("ssh 'a b': cuda:0", 0.02, "finely, with the same --launcher: sns-gate check --filter"),
    ],
)
def test_a_slower_case_is_measured_again_under_the_conditions_that_it_was_judged_by(
    device: str, tolerance: float, said: str
) -> None:
    found = result(case("add", Verdict.SLOWER, 0.7, 0.75, 0.8, device=device), tolerance=tolerance)
    assert said in next_step(found)
    assert "a b" not in next_step(found), "a result may be anybody's, and a launcher is run"


def test_a_machine_that_no_worker_has_described_leaves_no_gap() -> None:
    found = result()
    bare = found.candidate.model_copy(update={"fingerprint": None})
    assert "\ncuda:0; 4 processes a side" in printed(found.model_copy(update={"candidate": bare}))


def test_a_quiet_report_shows_what_somebody_has_to_look_at() -> None:
    text = printed_quietly(result(*CASES))
    assert "slower" in text
    assert "softmax" not in text, "unchanged"
    assert "mlp" not in text, "faster"
    assert printed_quietly(result(CASES[0])).splitlines() == [
        "No case is slower than merge base with origin/main at ababababa: 1 case compared."
    ]


def printed_quietly(found: GateResult) -> str:
    console = Console(file=io.StringIO(), width=140, highlight=False)
    render(found, console, quiet=True)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]
