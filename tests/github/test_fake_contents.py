"""Commits, references and files at the fake GitHub."""

from __future__ import annotations

import base64

import pytest

from tests.fake_github import FakeGitHub
from tests.github.client import BASE, CONTENTS, HEAD, NEXT, REPO, Client
from tests.github_answers import CONTENT_LIMIT_BYTES


def test_a_push_moves_the_head_and_adds_a_commit(fake: FakeGitHub, client: Client) -> None:
    fake.push(7, NEXT, "Faster\n\nPerf-Accept: square[n=2000] wanted", author="bob")
    pull = client("GET", f"{REPO}/pulls/7").json()
    assert (pull["head"]["sha"], pull["base"]["sha"], pull["commits"]) == (NEXT, BASE, 2)
    commits = client("GET", f"{REPO}/pulls/7/commits").json()
    assert [(one["sha"], one["author"]["login"]) for one in commits] == [
        (HEAD, "alice"),
        (NEXT, "bob"),
    ]
    told = client("GET", f"{REPO}/commits/{NEXT}").json()
    assert told["commit"]["message"].endswith("wanted")
    assert told["parents"][0]["sha"] == HEAD
    merge = client("GET", f"{REPO}/commits/{pull['merge_commit_sha']}").json()
    assert [parent["sha"] for parent in merge["parents"]] == [BASE, NEXT]
    fake.push(7, "d" * 40, force=True)
    assert [one["sha"] for one in client("GET", f"{REPO}/pulls/7/commits").json()] == ["d" * 40]
    assert fake.violations == []


def test_references_name_commits(fake: FakeGitHub, client: Client) -> None:
    for ref, sha in (
        ("main", BASE),
        ("heads/change-7", HEAD),
        ("pull/7/head", HEAD),
        ("pull/7/merge", fake.pulls[7].merge_commit_sha),
    ):
        assert client("GET", f"{REPO}/commits/{ref}").json()["sha"] == sha
    fake.add_commit(NEXT, "by an address without an account", author=None)
    assert client("GET", f"{REPO}/commits/{NEXT}").json()["author"] is None
    assert client("GET", f"{REPO}/commits/{'9' * 40}").status_code == 422
    assert fake.violations == []


def test_a_file_is_shown_with_its_content_its_blob_and_its_addresses(
    fake: FakeGitHub, client: Client
) -> None:
    fake.add_file(HEAD, "sns-gate.toml", "hello\n")
    told = client("GET", f"{CONTENTS}/sns-gate.toml?ref={HEAD}").json()
    assert (told["type"], told["name"], told["path"]) == ("file", "sns-gate.toml", "sns-gate.toml")
    assert (told["encoding"], told["content"], told["size"]) == ("base64", "aGVsbG8K\n", 6)
    assert told["sha"] == "ce013625030ba8dba906f756967f9e9ca394464a"
    page = "https://github.com/octo-org/kernels"
    assert told["_links"] == {
        "self": f"{fake.url}{CONTENTS}/sns-gate.toml?ref={HEAD}",
        "git": f"{fake.url}{REPO}/git/blobs/{told['sha']}",
        "html": f"{page}/blob/{HEAD}/sns-gate.toml",
    }
    assert [told["url"], told["git_url"], told["html_url"]] == list(told["_links"].values())
    assert told["download_url"] == f"{page}/raw/{HEAD}/sns-gate.toml"
    assert client("GET", told["url"]).json() == told
    client.token = fake.fork_token
    assert client("GET", told["url"]).json() == told
    assert fake.violations == []


@pytest.mark.parametrize(
    ("text", "content", "size"),
    [
        ("", "", 0),
        ("x" * 45, f"{'eHh4' * 15}\n", 45),
        ("é" * 24, f"{'w6nDqcOp' * 7}w6nD\nqcOp\n", 48),
    ],
)
def test_content_comes_in_lines_of_sixty_characters(
    fake: FakeGitHub, client: Client, text: str, content: str, size: int
) -> None:
    fake.add_file("main", "sns-gate.toml", text)
    told = client("GET", f"{CONTENTS}/sns-gate.toml").json()
    assert (told["encoding"], told["content"], told["size"]) == ("base64", content, size)
    assert base64.b64decode(content).decode() == text
    assert fake.violations == []


def test_a_file_is_found_in_folders_and_a_folder_is_not(fake: FakeGitHub, client: Client) -> None:
    fake.add_file("main", "a/b c/d#1.toml", "x = 1\n")
    told = client("GET", f"{CONTENTS}/a/b%20c/d%231.toml").json()
    assert (told["name"], told["path"], told["content"]) == (
        "d#1.toml",
        "a/b c/d#1.toml",
        "eCA9IDEK\n",
    )
    assert client("GET", told["url"]).json() == told
    assert client("GET", f"{CONTENTS}/a%2Fb%20c%2Fd%231.toml").json() == told
    assert client("GET", f"{CONTENTS}/a/b%20c").status_code == 404
    assert client("GET", f"{CONTENTS}/d%231.toml").status_code == 404
    assert fake.violations == []


def test_a_file_is_that_of_the_commit_or_branch_that_is_asked_for(
    fake: FakeGitHub, client: Client
) -> None:
    fake.add_file("main", "sns-gate.toml", "base")
    fake.add_file("change-7", "sns-gate.toml", "head")
    fake.branches["release/1"] = NEXT
    fake.add_commit(NEXT, "release")
    fake.add_file("release/1", "sns-gate.toml", "next")
    for query, text in (
        ("", "base"),
        ("?ref=main", "base"),
        (f"?ref={BASE}", "base"),
        ("?ref=change-7", "head"),
        ("?ref=pull/7/head", "head"),
        (f"?ref={HEAD}", "head"),
        ("?ref=release/1", "next"),
    ):
        told = client("GET", f"{CONTENTS}/sns-gate.toml{query}").json()
        assert base64.b64decode(told["content"]).decode() == text
        assert client("GET", told["url"]).json() == told
    fake.push(7, "d" * 40)
    assert client("GET", f"{CONTENTS}/sns-gate.toml?ref=change-7").status_code == 404
    assert fake.violations == []


@pytest.mark.parametrize("ref", ["9" * 40, "nowhere"])
def test_a_file_of_a_commit_that_there_is_not_is_not_found(
    fake: FakeGitHub, client: Client, ref: str
) -> None:
    fake.add_file("main", "sns-gate.toml", "x")
    answer = client("GET", f"{CONTENTS}/sns-gate.toml?ref={ref}")
    assert answer.status_code == 404
    assert answer.json()["message"] == f"No commit found for the ref {ref}"
    assert fake.violations == []


def test_a_file_over_the_limit_is_shown_without_its_content(
    fake: FakeGitHub, client: Client
) -> None:
    fake.add_file("main", "at.toml", "x" * CONTENT_LIMIT_BYTES)
    fake.add_file("main", "over.toml", "x" * (CONTENT_LIMIT_BYTES - 1) + "é")
    at = client("GET", f"{CONTENTS}/at.toml").json()
    assert (at["encoding"], at["size"]) == ("base64", CONTENT_LIMIT_BYTES)
    assert len(base64.b64decode(at["content"])) == CONTENT_LIMIT_BYTES
    over = client("GET", f"{CONTENTS}/over.toml")
    assert over.status_code == 200
    told = over.json()
    assert (told["encoding"], told["content"]) == ("none", "")
    assert told["size"] == CONTENT_LIMIT_BYTES + 1
    assert fake.violations == []


def test_a_forks_pull_request_is_found_by_its_branch_and_not_by_its_commit(
    fake: FakeGitHub, client: Client
) -> None:
    fake.add_pull(8, NEXT, BASE, "mallory", head_repo="mallory/kernels")
    [own] = client("GET", f"{REPO}/commits/{HEAD}/pulls").json()
    assert own["number"] == 7
    assert client("GET", f"{REPO}/commits/{NEXT}/pulls").json() == []
    [found] = client("GET", f"{REPO}/pulls?state=open&head=mallory:change-8").json()
    assert (found["head"]["sha"], found["head"]["repo"]["full_name"]) == (NEXT, "mallory/kernels")
    assert found["head"]["repo"]["fork"]
    assert found["base"]["repo"]["full_name"] == "octo-org/kernels"
    assert [one["number"] for one in client("GET", f"{REPO}/pulls").json()] == [8, 7]
    fake.pulls[8].head_repo = None
    assert client("GET", f"{REPO}/pulls/8").json()["head"]["repo"] is None
    fake.pulls[8].state = "closed"
    assert [one["number"] for one in client("GET", f"{REPO}/pulls").json()] == [7]
    assert client("GET", f"{REPO}/pulls/8").json()["closed_at"]
    assert fake.violations == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/repos/octo-org/other/pulls/7", None),
        ("GET", f"{REPO}/pulls/8", None),
        ("GET", f"{REPO}/issues/8/comments", None),
        ("GET", f"{REPO}/issues/8/events", None),
        ("GET", f"{REPO}/pulls/8/commits", None),
        ("GET", f"{CONTENTS}/sns-gate.toml", None),
        ("POST", f"{REPO}/issues/8/comments", {"body": "x"}),
        ("PATCH", f"{REPO}/issues/comments/1", {"body": "x"}),
        ("PATCH", f"{REPO}/check-runs/1", {"conclusion": "success"}),
    ],
)
def test_what_there_is_not_is_not_found(
    fake: FakeGitHub, client: Client, method: str, path: str, body: object
) -> None:
    answer = client(method, path, body)
    assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")
    assert fake.violations == []


def test_the_names_of_owner_and_repository_have_no_case(fake: FakeGitHub, client: Client) -> None:
    assert client("GET", "/repos/Octo-Org/KERNELS/pulls/7").status_code == 200
    assert fake.violations == []
