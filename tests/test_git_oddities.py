"""Repositories as they also are: judged as any other, or refused in words, and left as found."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import (
    BENCH,
    QUICK,
    WORK,
    Ran,
    clean_environment,
    commit,
    git,
    new_repository,
    sns_gate,
)
from tests.leftovers import left_behind

CASE = "square[n=2000]"
FILES = {
    "pkg/__init__.py": WORK,
    "benchmarks/bench_work.py": BENCH,
    ".gitignore": "result.json\n__pycache__/\n",
}


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    """A folder for the temporary files of a test's checks alone."""
    made = tmp_path / "tmp"
    made.mkdir()
    return made


def judged(ran: Ran) -> None:
    """The case was measured, and nothing else was."""
    assert "Traceback" not in ran.err + ran.out
    assert ran.verdicts.keys() == {CASE}, ran.out + ran.err
    assert ran.unchanged(CASE), ran.out + ran.err


def test_a_detached_head_in_a_folder_of_any_name_is_judged(tmp_path: Path, tmp: Path) -> None:
    repository = new_repository(tmp_path / 'it\'s a "répo"\nof 试验 [red]', FILES)
    branch = 'o\'dd/"brünch"-试' + os.fsdecode(b"\xff")
    git(repository, "branch", "--move", "main", branch)
    commit(repository, {"README": "more", 'new "näme"\n2.py': "x = 1\n"})
    git(repository, "checkout", "--quiet", "--detach")
    (repository / 'untracked "näme"\n3.py').touch()
    ran = sns_gate(repository, "check", *QUICK, "--baseline", f"{branch}~1", TMPDIR=str(tmp))
    judged(ran)
    assert ran.result is not None
    assert ran.result.baseline.ref == 'o\'dd/"brünch"-试?~1'
    assert ran.result.candidate.changed_files == ('untracked "näme"\n3.py',)
    ascii_only = sns_gate(repository, "report", "result.json", PYTHONIOENCODING="ascii")
    assert ascii_only.code == ran.code
    assert "br\\xfcnch" in ascii_only.out
    assert not left_behind(repository, tmp)


def test_a_folder_that_no_import_path_can_name_is_said_and_no_fault_of_the_candidate(
    tmp_path: Path, tmp: Path
) -> None:
    repository = new_repository(tmp_path / "a:b", FILES)
    ran = sns_gate(repository, "check", *QUICK, "--baseline", "HEAD", TMPDIR=str(tmp))
    assert ran.code == 2
    assert f"the folder {repository} has ':' in its name" in ran.err
    assert not left_behind(repository, tmp)


def test_a_linked_worktree_with_several_merge_bases_is_judged_by_one_and_stays(
    tmp_path: Path, tmp: Path
) -> None:
    repository, linked = new_repository(tmp_path / "r", FILES), tmp_path / "linked"
    git(repository, "worktree", "add", "--quiet", "-b", "topic", str(linked))
    topic, main = commit(linked, {"topic": "1"}), commit(repository, {"main": "1"})
    git(repository, "merge", "--quiet", "--no-ff", "--message", "criss", topic)
    git(linked, "merge", "--quiet", "--no-ff", "--message", "cross", main)
    assert len(git(linked, "merge-base", "--all", "main", "topic").split()) == 2
    commit(linked, {"pkg/extra.py": "x = 1\n"})
    ran = sns_gate(linked, "check", *QUICK, TMPDIR=str(tmp))
    judged(ran)
    assert ran.result is not None
    assert ran.result.baseline.ref == "merge base with main"
    assert ran.result.baseline.commit in (topic, main)
    assert not (repository / "result.json").exists()
    assert not left_behind(linked, tmp, worktrees=2)
    assert git(linked, "branch", "--show-current") == "topic"


def test_a_sparse_checkout_is_judged_and_stays_sparse(tmp_path: Path, tmp: Path) -> None:
    repository = new_repository(tmp_path / "r", FILES | {"large/data.py": "x = 1\n"})
    commit(repository, {"README": "more"})
    git(repository, "sparse-checkout", "set", "pkg", "benchmarks")
    judged(sns_gate(repository, "check", *QUICK, "--baseline", "HEAD~1", TMPDIR=str(tmp)))
    assert not (repository / "large").exists()
    assert not git(repository, "status", "--porcelain")
    assert not left_behind(repository, tmp)


def test_empty_submodules_are_named_with_the_build_that_fills_them(
    tmp_path: Path, tmp: Path
) -> None:
    library = new_repository(
        tmp_path / "library",
        {"lib/__init__.py": WORK, "benchmarks/bench_work.py": BENCH.replace("pkg", "lib")},
    )
    files = FILES | {"pkg/__init__.py": "from vendor.lib import work\n"}
    origin = new_repository(tmp_path / "origin", files)
    git(origin, "submodule", "--quiet", "add", library.as_uri(), "vendor")
    commit(origin, {"README": "with a submodule"})
    commit(origin, {"README": "more"})
    git(tmp_path, "clone", "--quiet", str(origin), "clone")
    clone = tmp_path / "clone"
    fill = "git -c protocol.file.allow=always submodule update --init"
    options = (*QUICK, "--baseline", "HEAD~1")
    without = sns_gate(clone, "check", *options, TMPDIR=str(tmp))
    assert (without.code, set(without.verdicts.values())) == (3, {"broken"})
    for side in ("baseline", "candidate"):
        assert f"the {side}'s submodules vendor are empty" in without.out
    filled = sns_gate(clone, "check", *options, "--build", fill, TMPDIR=str(tmp))
    judged(filled)
    assert "submodules" not in filled.out
    # The working tree has its submodule now, and a fresh checkout of the baseline has not.
    half = sns_gate(clone, "check", *options, TMPDIR=str(tmp))
    assert (half.code, half.case(CASE).broken_sides) == (3, ("baseline",))
    assert "the baseline's submodules vendor are empty" in half.out
    assert "the candidate's submodules" not in half.out
    assert not left_behind(clone, tmp)
    # And inside the submodule, whose .git is a file.
    assert (clone / "vendor/.git").is_file()
    judged(sns_gate(clone / "vendor", "check", *QUICK, "--baseline", "HEAD", TMPDIR=str(tmp)))
    assert not left_behind(clone / "vendor", tmp)


def test_pointers_to_large_files_are_files_and_a_filter_that_is_missing_is_named(
    tmp_path: Path, tmp: Path
) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12\n"
    attributes = "*.bin filter=large diff=large merge=large -text\n"
    repository = new_repository(
        tmp_path / "r", FILES | {"data.bin": pointer, ".gitattributes": attributes}
    )
    commit(repository, {"README": "more"})
    options = (*QUICK, "--baseline", "HEAD~1")
    judged(sns_gate(repository, "check", *options, TMPDIR=str(tmp)))
    git(repository, "config", "filter.large.smudge", "no-such-filter %f")
    git(repository, "config", "filter.large.required", "true")
    ran = sns_gate(repository, "check", *options, TMPDIR=str(tmp))
    assert ran.code == 2
    assert ran.result is None
    assert "git could not check" in ran.err
    assert "no-such-filter: not found" in ran.err
    assert "mend what git names" in ran.err
    assert "Traceback" not in ran.err
    assert not left_behind(repository, tmp)


def test_of_several_merge_bases_the_one_taken_and_the_others_are_named(
    tmp_path: Path, tmp: Path
) -> None:
    repository = new_repository(tmp_path / "r", FILES)
    git(repository, "checkout", "--quiet", "-b", "topic")
    topic = commit(repository, {"topic": "1"}, "on the topic")
    git(repository, "checkout", "--quiet", "main")
    main = commit(repository, {"main": "1"}, "on the main branch")
    git(repository, "merge", "--quiet", "--no-edit", topic)
    git(repository, "checkout", "--quiet", "topic")
    git(repository, "merge", "--quiet", "--no-edit", main)
    commit(repository, {"README": "more"})
    ran = sns_gate(repository, "check", *QUICK, TMPDIR=str(tmp))
    judged(ran)
    assert ran.result is not None
    said = {reason.code: reason.text for reason in ran.result.disclosures}["several-merge-bases"]
    taken, other = (topic, main) if ran.result.baseline.commit == topic else (main, topic)
    assert f"{taken[:9]} is taken and not {other[:7]}" in said
    assert "--baseline COMMIT" in said
    assert said.split(",")[0] in " ".join(ran.out.split())
    named = sns_gate(repository, "check", *QUICK, "--baseline", other, TMPDIR=str(tmp))
    assert "several-merge-bases" not in {r.code for r in named.result.disclosures}  # type: ignore[union-attr]


@pytest.mark.parametrize("damage", ["index", "tree"])
def test_a_damaged_repository_is_named_with_gits_own_words(tmp_path: Path, damage: str) -> None:
    repository = new_repository(tmp_path / "r", FILES)
    commit(repository, {"README": "more"})
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    if damage == "index":
        (repository / ".git/index").write_text("no index")
    else:
        (repository / ".git/objects" / tree[:2] / tree[2:]).unlink()
    ran = sns_gate(repository, "check", *QUICK, "--baseline", "HEAD~1")
    assert ran.code == 2, ran.err
    assert f"failed in {repository}" in ran.err
    assert ("index file smaller than expected" if damage == "index" else "fatal: ") in ran.err
    assert "'git fsck'" in ran.err
    assert "Traceback" not in ran.err


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = shlex.quote(str(tmp_path / "gone"))
    command = (
        f"mkdir {gone} && cd {gone} && rmdir {gone} && exec {sys.executable} -m sns_gate check"
    )
    done = subprocess.run(
        ["sh", "-c", command], env=clean_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "the folder that sns-gate was started in is gone" in done.stderr
    assert "Traceback" not in done.stderr
