"""Settings and where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from sns_gate.config import (
    POLICY,
    Layers,
    Settings,
    Source,
    read_environment,
    read_file,
    resolve,
    setting_options,
)
from sns_gate.errors import ConfigError

NOTHING = Source("nothing", {})


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_command_line_beats_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    file = read_file(
        write(tmp_path, "sns-gate.toml", "tolerance = 0.05\nprocesses = 5\nseed = 5\n")
    )
    environment = read_environment({"SNS_GATE_PROCESSES": "6", "SNS_GATE_SEED": "6", "HOME": "/"})
    line = Source("the command line", {"seed": "7"})
    settings = Layers(environment, line).over(file)
    assert (settings.tolerance, settings.processes, settings.seed) == (0.05, 6, 7)
    assert settings.placements == Settings().placements


def test_the_table_in_pyproject_serves_as_well(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", '[tool.sns-gate]\ntolerance = "5%"\npass-env = "CC"\n')
    settings = resolve(read_file(tmp_path))
    assert settings.tolerance == 0.05
    assert settings.pass_env == ("CC",)


def test_no_file_means_defaults(tmp_path: Path) -> None:
    assert resolve(read_file(tmp_path)) == Settings()


def test_two_configurations_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "[tool.sns-gate]\n")
    write(tmp_path, "sns-gate.toml", "")
    with pytest.raises(ConfigError, match=r"both .*move everything into one"):
        read_file(tmp_path)


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"'tolerence' in .*sns-gate.toml; did you mean 'tolerance'"
    ):
        read_file(write(tmp_path, "sns-gate.toml", "tolerence = 0.05\n"))
    with pytest.raises(ConfigError, match="did you mean 'on-refused'"):
        read_file(write(tmp_path, "sns-gate.toml", "on_refused = 'success'\n"))
    with pytest.raises(ConfigError, match="in the environment; did you mean 'processes'"):
        read_environment({"SNS_GATE_PROCESES": "3"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tolerance", "fast", "setting 'tolerance' in x: .*got 'fast'"),
        ("tolerance", -1, "setting 'tolerance' in x: write a number above 0, got -1"),
        ("tolerance", 0, "a tolerance of 0 asks for proof"),
        ("tolerance", "0%", "a tolerance of 0 asks for proof"),
        ("tolerance", "abc%", "setting 'tolerance' in x: .*got 'abc%'"),
        ("timeout", "inf", "setting 'timeout' in x"),
        ("tolerance", "300%", "write a share below 1, such as 2% or 0.02"),
        ("tolerance", 2, r"write a share below 1, such as 2% or 0.02 \(2% for 2 percent\)"),
        ("memory-tolerance", 10, "write a share, such as 10% or 0.1; 10 would be 1000%"),
        ("memory-tolerance", "1.5", "write a share, such as 10% or 0.1"),
        ("memory-tolerance", "nan", "write a finite number"),
        ("shard", "3/2", "there is no part 3 of 2; the parts are 1 to 2"),
        ("state-dir", "here", "write a path from the root on"),
        ("build", 3, "write a list of texts, got 3"),
        ("benchmarks", 3, "write a path in quotes, got 3"),
        ("filter", ["a", 3], "write text in quotes"),
        ("clocks", "fast", "write MHZ or MHZ,WATTS, such as 1500 or 1500,400, got 'fast'"),
        ("processes", 2, "write a number of at least 3, got 2"),
        ("processes", 99, "write a number of at most 64, got 99"),
        ("processes", "two", "write a whole number, got 'two'"),
        ("lock-timeout", "30s", "write a number, got '30s'"),
        ("launcher", "ssh 'gpu1", 'this is no command .*; close what is open in it, got "ssh'),
        ("launcher-python", "a b", "write a path without spaces"),
        ("pass-env", "A=B", "write the name of a variable alone"),
        ("device", "rocm", "setting 'device' in x"),
        ("on-refused", "maybe", "write 'success', 'neutral' or 'failure', got"),
    ],
)
def test_a_wrong_value_names_key_place_and_what_would_fit(
    key: str, value: object, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(Source("x", {key: value}))


def test_a_large_memory_tolerance_is_one_where_it_is_written_so() -> None:
    for value, read in (("300%", 3.0), (0.5, 0.5), (1, 1.0), ("0", 0.0)):
        assert resolve(Source("x", {"memory-tolerance": value})).memory_tolerance == read


def test_a_header_of_the_other_file_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"belongs into pyproject.toml; leave its header out"):
        read_file(write(tmp_path, "sns-gate.toml", "[tool.sns-gate]\ntolerance = 0.05\n"))


def test_broken_toml_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sns-gate.toml is not valid TOML"):
        read_file(write(tmp_path, "sns-gate.toml", "tolerance = \n"))
    (tmp_path / "sns-gate.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_file(tmp_path)


def test_policy_comes_from_the_other_file_and_measuring_does_not() -> None:
    mine = Source("mine", {"tolerance": 0.5, "on-refused": "success", "seed": 8, "filter": "x"})
    theirs = Source("theirs", {"tolerance": 0.01, "seed": 3})
    governed = Layers(NOTHING, NOTHING).governed(mine, theirs)
    assert governed.tolerance == 0.01
    assert governed.on_refused == Settings().on_refused  # the default where they have none
    assert governed.filter == ()
    assert governed.seed == 8


def test_every_setting_that_decides_what_passes_is_policy() -> None:
    assert set(POLICY) == {
        "benchmarks", "filter", "also-against", "tolerance", "precision", "memory-tolerance",
        "budget", "processes", "placements", "on-refused", "on-inconclusive", "accept", "explain",
        "policy-from", "launcher", "launcher-python", "worker-user",
    }  # fmt: skip


def test_a_change_has_no_say_in_whose_policy_holds() -> None:
    layers = Layers(NOTHING, NOTHING)
    assert layers.policy_from(Source("theirs", {"policy-from": "baseline"})) == "baseline"
    assert layers.policy_from(NOTHING) == "candidate"
    line = Layers(NOTHING, Source("line", {"policy-from": "candidate"}))
    assert line.policy_from(Source("theirs", {"policy-from": "baseline"})) == "candidate"


def test_every_setting_of_a_check_is_an_option_with_a_help_text() -> None:
    options = setting_options()
    assert [option.name for option in options] == [
        n.replace("_", "-") for n in Settings.model_fields if n != "accept"
    ]
    assert all(len(option.help) > 15 for option in options)


def test_precision_defaults_to_a_quarter_of_the_tolerance() -> None:
    assert Settings().precision_for(0.02) == 0.005
    assert resolve(Source("x", {"precision": 0.1})).precision_for(0.02) == 0.1
