"""The workflow's checkout: shallow or whole, with a token in it or without; real git throughout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sns_gate.errors import RefusedRun, RevisionError
from sns_gate.github.checkout import Checkout
from sns_gate.github.event import Event, Target
from tests.conftest import commit, git, new_repository

HEADER = "http.https://github.com/.extraheader"


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with a tag, a branch, and their merge as HEAD."""
    folder = new_repository(tmp_path / "origin", {"a.py": "a = 1\n"})
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "tag", "v1")
    commit(folder, {"a.py": "a = 2\n"}, "on main")
    git(folder, "switch", "--quiet", "--create", "change", "HEAD~1")
    commit(folder, {"b.py": "b = 1\n"}, "on the branch")
    git(folder, "switch", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "merge", "change")
    return folder


def clone(origin: Path, *options: str) -> Path:
    folder = origin.with_name(f"clone{len(list(origin.parent.iterdir()))}")
    subprocess.run(
        ["git", "clone", "--quiet", *options, f"file://{origin}", str(folder)], check=True
    )
    return folder


def event(name: str, sha: str, baseline: str | None) -> Event:
    return Event(name, Target("https://api.github.com", "o/r", sha), baseline)


def shallow(folder: Path) -> bool:
    return git(folder, "rev-parse", "--is-shallow-repository") == "true"


def test_a_shallow_checkout_gets_the_base_of_its_merge_and_no_more(origin: Path) -> None:
    folder = clone(origin, "--depth=1")
    merge = git(folder, "rev-parse", "HEAD")
    pull = event("pull_request", merge, f"{merge}^1")
    checkout = Checkout(folder)
    checkout.fetch(pull)
    assert git(folder, "rev-parse", checkout.baseline(pull)) == git(origin, "rev-parse", "HEAD^1")
    assert shallow(folder)


def test_a_whole_history_is_never_cut(origin: Path) -> None:
    folder = clone(origin)
    count = git(folder, "rev-list", "--count", "--all")
    merge = git(folder, "rev-parse", "HEAD")
    for wanted in (f"{merge}^1", git(origin, "rev-parse", "v1"), None):
        Checkout(folder).fetch(event("push", merge, wanted))
    assert not shallow(folder)
    assert git(folder, "rev-list", "--count", "--all") == count
    # A commit that came since is added to the history, not put in its place.
    new = commit(origin, {"c.py": "c = 1\n"})
    Checkout(folder).fetch(event("push", merge, new))
    assert not shallow(folder)
    assert git(folder, "cat-file", "-t", new) == "commit"


def test_a_push_and_a_merge_group_get_the_commit_that_they_name(origin: Path) -> None:
    folder = clone(origin, "--depth=1")
    before = git(origin, "rev-parse", "HEAD~1")
    Checkout(folder).fetch(event("push", git(folder, "rev-parse", "HEAD"), before))
    assert git(folder, "cat-file", "-t", before) == "commit"


def test_a_schedule_compares_with_the_last_tag_before_it(origin: Path) -> None:
    folder = clone(origin, "--depth=1")
    nightly = event("schedule", git(folder, "rev-parse", "HEAD"), None)
    checkout = Checkout(folder)
    checkout.fetch(nightly)
    assert checkout.baseline(nightly) == "v1"
    git(origin, "tag", "--delete", "v1")
    with pytest.raises(RevisionError, match="name one with the input 'baseline'"):
        Checkout(origin).baseline(nightly)


def test_what_the_remote_does_not_give_is_said_with_the_way_to_have_it(origin: Path) -> None:
    folder = clone(origin, "--depth=1")
    with pytest.raises(RevisionError, match="fetch-depth: 0"):
        Checkout(folder).fetch(event("push", "a" * 40, "b" * 40))
    with pytest.raises(RevisionError, match="after a forced push"):
        Checkout(clone(origin)).fetch(event("push", "a" * 40, "b" * 40))


def test_the_token_of_a_checkout_is_dropped_and_one_that_stays_is_refused(
    origin: Path, tmp_path: Path
) -> None:
    folder = clone(origin)
    git(folder, "config", HEADER, "AUTHORIZATION: basic c2VjcmV0")
    git(folder, "config", "http.extraheader", "AUTHORIZATION: basic c2VjcmV0")
    checkout = Checkout(folder)
    with pytest.raises(RefusedRun, match="persist-credentials: false"):
        checkout.credentials.require_none()
    checkout.credentials.drop()
    checkout.credentials.require_none()
    assert "c2VjcmV0" not in (folder / ".git/config").read_text()
    # Newer checkouts keep it in a file of its own that the repository includes.
    kept = tmp_path / "git-credentials-1.config"
    kept.write_text('[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic eA==\n')
    git(folder, "config", f"includeIf.gitdir:{folder}/.git.path", str(kept))
    with pytest.raises(RefusedRun):
        checkout.credentials.require_none()
    checkout.credentials.drop()
    checkout.credentials.require_none()
    assert not kept.exists()


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("core.sshCommand", "ssh -i /home/runner/key -o StrictHostKeyChecking=yes", True),
        ("core.sshCommand", "ssh -o IdentityFile=/home/runner/key", True),
        ("core.sshCommand", "ssh -o Compression=yes", False),
        ("credential.helper", "store --file=/home/runner/tokens", True),
        ("credential.https://github.com.helper", "!gh auth git-credential", True),
        ("credential.helper", "", False),
        ("remote.mirror.url", "https://x-access-token:abc@github.com/o/r", True),
        ("remote.mirror.url", "git@github.com:o/r.git", False),
        ("url.https://abc@github.com/.insteadOf", "https://github.com/", True),
        ("url.git@github.com:.insteadOf", "https://github.com/", False),
    ],
)
@pytest.mark.parametrize("place", ["config", "modules/third/party/config"])
def test_whatever_else_git_would_prove_itself_with_is_refused(
    origin: Path, name: str, value: str, place: str, *, kept: bool
) -> None:
    folder = clone(origin)
    file = folder / ".git" / place
    (file.parent / "objects").mkdir(parents=True, exist_ok=True)
    git(folder, "config", "--file", str(file), name, value)
    credentials = Checkout(folder).credentials
    credentials.drop()
    if not kept:
        credentials.require_none()
        return
    with pytest.raises(RefusedRun, match="persist-credentials: false") as refused:
        credentials.require_none()
    assert "abc" not in str(refused.value)


def test_the_token_of_a_submodule_is_dropped_too(origin: Path) -> None:
    folder = clone(origin)
    file = folder / ".git/modules/third/config"
    (file.parent / "objects").mkdir(parents=True)
    branch = file.parent / "refs/heads/config"
    branch.parent.mkdir(parents=True)
    branch.write_text("a" * 40)
    (folder / ".git/modules/config/objects").mkdir(parents=True)
    git(folder, "config", "--file", str(file), HEADER, "AUTHORIZATION: basic c2VjcmV0")
    credentials = Checkout(folder).credentials
    with pytest.raises(RefusedRun):
        credentials.require_none()
    credentials.drop()
    credentials.require_none()
    assert "c2VjcmV0" not in file.read_text()


def test_a_branch_that_moved_on_is_asked_for_again(
    origin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A runner's folder stays, and with it what an earlier run fetched."""
    folder = clone(origin)
    git(folder, "branch", "main-too", "origin/main")
    now = commit(origin, {"a.py": "a = 3\n"})
    assert Checkout(folder).named("main") == now
    git(folder, "remote", "set-url", "origin", "file:///nowhere")
    assert Checkout(folder).named("change") == "origin/change"
    assert "taken as this checkout has it, origin/change" in capsys.readouterr().err
    assert Checkout(folder).named("main-too") == "main-too"


def test_a_whole_history_whose_merge_is_missing_stays_whole(origin: Path) -> None:
    merge = git(origin, "rev-parse", "HEAD")
    folder = clone(origin, "--branch", "change", "--single-branch")
    count = git(folder, "rev-list", "--count", "HEAD")
    pull = event("pull_request", merge, f"{merge}^1")
    checkout = Checkout(folder)
    checkout.fetch(pull)
    assert not shallow(folder)
    assert git(folder, "rev-list", "--count", "HEAD") == count
    assert git(folder, "rev-parse", checkout.baseline(pull)) == git(origin, "rev-parse", "HEAD^1")


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    with pytest.raises(RevisionError, match="run actions/checkout first"):
        Checkout(tmp_path)


@pytest.mark.parametrize("ref", ["v1", "change", "SHA"])
@pytest.mark.parametrize("options", [("--depth=1",), ()])
def test_a_baseline_that_the_workflow_names_is_fetched(
    origin: Path, ref: str, options: tuple[str, ...]
) -> None:
    folder = clone(origin, *options)
    wanted = git(origin, "rev-parse", "change" if ref == "SHA" else ref)
    found = Checkout(folder).named(wanted if ref == "SHA" else ref)
    assert git(folder, "rev-parse", f"{found}^{{commit}}") == wanted
    assert shallow(folder) is bool(options)


def test_a_baseline_before_this_commit_is_of_this_checkout(origin: Path) -> None:
    folder = clone(origin)
    git(folder, "switch", "--quiet", "--create", "topic", "HEAD^2")
    assert Checkout(folder).named("HEAD^") == "HEAD^"


@pytest.mark.parametrize("ref", ["nosuch", "--upload-pack=touch owned"])
def test_a_baseline_that_nobody_has_is_named(origin: Path, ref: str) -> None:
    folder = clone(origin, "--depth=1")
    with pytest.raises(RevisionError, match="name a commit, a branch or a tag"):
        Checkout(folder).named(ref)
    assert not list(folder.glob("owned"))
