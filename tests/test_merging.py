"""Several results of one change as one: shards, and kinds of machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sns_gate.cli.step import one_result
from sns_gate.errors import UsageError
from sns_gate.merging import merge
from sns_gate.protocol import CaseSpec
from sns_gate.report import html, markdown
from sns_gate.report import json as result_file
from sns_gate.report.writing import ResultFile
from sns_gate.session import PlannedCase, Roster
from sns_gate.types import CaseResult, EnvironmentFingerprint, GateResult, Verdict
from tests.conftest import check, commit, sns_gate
from tests.test_report import case, printed, result

FINE = case("softmax", Verdict.UNCHANGED, 0.99, 1.0, 1.01)
SLOWER = case("softmax", Verdict.SLOWER, 0.8, 0.85, 0.9)
OTHER = case("add", Verdict.FASTER, 1.1, 1.2, 1.3)


def on(gpu: str, *cases: CaseResult, torch: str = "2.11.0", **more: object) -> GateResult:
    found = EnvironmentFingerprint(gpu_name=gpu, torch_version=torch)
    made = result(*cases)
    sides = {
        side: getattr(made, side).model_copy(update={"fingerprint": found})
        for side in ("baseline", "candidate")
    }
    return made.model_copy(update={**sides, **more})


def test_a_case_that_is_slower_on_one_kind_of_gpu_alone_is_seen_as_that() -> None:
    merged = merge([on("H100", SLOWER, OTHER), on("A100", FINE, OTHER)])
    assert {one.id: one.verdict.value for one in merged.cases} == {
        "softmax on H100": "slower", "add on H100": "faster",
        "softmax on A100": "unchanged", "add on A100": "faster",
    }  # fmt: skip
    assert (merged.exit_code, merged.verdict.value, merged.conclusion) == (1, "fail", "failure")
    assert [one.name for one in merged.machines] == ["H100", "A100"]
    text = markdown.comment(merged)
    assert "1 of 4 cases is slower" in text
    assert "**On A100**" in text
    assert "H100 and A100" in text
    shown = printed(merged)
    assert "H100: H100, torch 2.11.0" in shown
    assert "<h3>On A100</h3>" in html.render(merged)


def test_shards_of_one_kind_are_one_result_with_the_cases_own_names() -> None:
    merged = merge([on("H100", FINE, shard="1/2"), on("H100", OTHER, shard="2/2")])
    assert [one.id for one in merged.cases] == ["softmax", "add"]
    assert (merged.machines, merged.shard, merged.exit_code) == ((), None, 0)


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([], "no result to merge"),
        ([on("H100", FINE, shard="1/3"), on("H100", OTHER, shard="3/3")], "number 2 is missing"),
        ([on("H100", FINE), on("H100", FINE)], "hold the case 'softmax'"),
        ([on("H100", FINE), on("A100", FINE, tolerance=0.05)], "other tolerances"),
        ([on("H100", FINE, shard="1/2"), on("H100", OTHER)], "shards of other divisions"),
        (
            [
                on("H100", FINE, shard="1/2").model_copy(update={"case_list": "a"}),
                on("H100", OTHER, shard="2/2").model_copy(update={"case_list": "b"}),
            ],
            "cut out of unlike lists of cases",
        ),
    ],
)
def test_what_would_let_a_case_pass_unseen_is_refused(results: list[GateResult], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        merge(results)


@pytest.mark.parametrize("shards", [("0/0",), ("1/1", "5/1"), ("1/2", "2/2", "2/2")])
def test_shards_that_no_division_makes_are_refused(shards: tuple[str, ...]) -> None:
    parts = [
        on("H100", case(f"case{at}", Verdict.UNCHANGED, 0.99, 1.0, 1.01), shard=shard)
        for at, shard in enumerate(shards)
    ]
    with pytest.raises(UsageError, match="which no division makes"):
        merge(parts)


def test_the_step_that_posts_merges_what_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in (("a", on("H100", SLOWER)), ("b", on("A100", FINE))):
        ResultFile(tmp_path / f"{name}.json").save(found)
    temp = {"RUNNER_TEMP": str(tmp_path / "temp")}
    (tmp_path / "temp").mkdir()
    one = one_result({"GATE_INPUT_JSON": str(tmp_path / "a.json"), **temp})
    assert one == str(tmp_path / "a.json")
    both = one_result({"GATE_INPUT_JSON": f"{tmp_path}/*.json", **temp})
    assert len(result_file.read(Path(both)).cases) == 2
    twice = f"{tmp_path}/a.json\n{tmp_path}/a.json"
    assert not Path(one_result({"GATE_INPUT_JSON": twice, **temp})).exists()
    assert "it is unclear which one counts" in capsys.readouterr().err


def test_results_of_other_revisions_are_not_merged() -> None:
    other = on("A100", FINE)
    moved = other.model_copy(
        update={"baseline": other.baseline.model_copy(update={"commit": "e" * 40})}
    )
    with pytest.raises(UsageError, match="other baselines"):
        merge([on("H100", FINE), moved])


def test_one_unfinished_result_keeps_the_whole_from_passing() -> None:
    cut = on("A100", FINE, complete=False, exit_code=143)
    merged = merge([on("H100", FINE), cut])
    assert (merged.complete, merged.exit_code, merged.conclusion) == (False, 3, "failure")


def test_machines_of_one_gpu_are_told_apart_by_what_differs() -> None:
    merged = merge([on("H100", FINE), on("H100", FINE, torch="2.12.0")])
    assert [one.name for one in merged.machines] == ["H100, torch 2.11.0", "H100, torch 2.12.0"]
    bare = result(FINE).model_copy(update={"candidate": result().candidate.model_copy(
        update={"fingerprint": None})})  # fmt: skip
    assert [one.name for one in merge([bare, on("H100", FINE)]).machines] == [
        "machine 1", "H100, torch 2.11.0",
    ]  # fmt: skip


@given(cases=st.integers(1, 50), parts=st.integers(1, 9), decided=st.integers(0, 9))
def test_every_case_is_in_one_part(cases: int, parts: int, decided: int) -> None:
    planned = tuple(
        PlannedCase(CaseSpec(f"c{n}", "f.py", 1, None, "auto"), 0.02) for n in range(cases)
    )
    roster = Roster(planned, tuple(case(f"d{n}", Verdict.ADDED) for n in range(decided)))
    found = [roster.part(number, parts) for number in range(1, parts + 1)]
    ids = [id_ for part in found for id_ in (*part.order, *(one.id for one in part.decided))]
    assert sorted(ids) == sorted([*roster.order, *(one.id for one in roster.decided)])
    sizes = [len(part.order) + len(part.decided) for part in found]
    assert max(sizes) - min(sizes) <= 1


def test_shards_of_a_real_check_make_the_whole_again(repository: Path) -> None:
    bench = """
        from sns_gate import benchmark
        from pkg import work

        @benchmark(params={"n": [500, 600]})
        def other(n):
            return lambda: work(n)
    """
    commit(repository, {"benchmarks/bench_other.py": bench})
    commit(repository, {"README": "the same"})
    for number in (1, 2):
        ran = check(repository, "--shard", f"{number}/2")
        assert ran.result is not None, ran.err
        ResultFile(repository / f"{number}.json").save(ran.result)
    whole = sns_gate(repository, "merge", "1.json", "2.json", "--json", "whole.json", "--quiet")
    assert whole.code in (0, 3), whole.err
    merged = result_file.read(repository / "whole.json")
    assert {one.id for one in merged.cases} == {"square[n=2000]", "other[n=500]", "other[n=600]"}
    lost = sns_gate(repository, "merge", "1.json")
    assert lost.code == 2
    assert "number 2 is missing" in lost.err
    empty = check(repository, "--shard", "4/4")
    assert empty.code == 5
    assert "shard 4/4 holds no case" in empty.err
    wrong = check(repository, "--shard", "3/2")
    assert wrong.code == 2
    assert "there is no part 3 of 2" in wrong.err
