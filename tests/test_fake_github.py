"""The fake GitHub: its limits, faults, pages and permissions, over real HTTP."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.fake_github import FakeGitHub
from tests.github_answers import CONTENT_LIMIT_BYTES
from tests.github_faults import Fault
from tests.github_limits import COMMENT_LIMIT, DESCRIPTION_LIMIT, OUTPUT_LIMIT_BYTES
from tests.github_schema import FOLDER
from tests.github_state import ACTIONS, Level

HEAD, BASE, NEXT = "a" * 40, "b" * 40, "c" * 40
REPO = "/repos/octo-org/kernels"
COMMENTS = f"{REPO}/issues/7/comments"
CONTENTS = f"{REPO}/contents"
OUTPUT = {"title": "2 cases are slower", "summary": "see below"}
CHECK = {"name": "sns-gate", "head_sha": HEAD, "conclusion": "failure", "output": OUTPUT}
ANNOTATION = {
    "path": "benchmarks/bench_work.py",
    "start_line": 3,
    "end_line": 3,
    "annotation_level": "failure",
    "message": "slower",
}
GIVE_UP_S = 0.1


class Client:
    """The least of a client: a session that knows the server and a token."""

    def __init__(self, fake: FakeGitHub, session: requests.Session) -> None:
        self._fake, self.session, self.token = fake, session, fake.token

    def __call__(
        self, method: str, path: str, body: object = None, timeout_s: float = 10
    ) -> requests.Response:
        """Send a request; a path may be a whole address, such as a link's."""
        return self.session.request(
            method,
            path if path.startswith("http") else self._fake.url + path,
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=timeout_s,
        )

    def pages(self, path: str) -> list[list[Any]]:
        """All pages of a list, by the links to the next."""
        response = self("GET", path)
        pages = [response.json()]
        while "next" in response.links:
            response = self("GET", response.links["next"]["url"])
            pages.append(response.json())
        return pages


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    """A repository with one pull request."""
    with FakeGitHub() as fake:
        fake.add_pull(7, HEAD, BASE, "alice")
        yield fake


@pytest.fixture
def client(fake: FakeGitHub) -> Iterator[Client]:
    """A client with the workflow's token; the fake's own answers fit the description."""
    with requests.Session() as session:
        yield Client(fake, session)
    assert [told for told in fake.violations if "answer:" in told or "failed" in told] == []


def test_a_comment_is_made_found_edited_and_deleted(fake: FakeGitHub, client: Client) -> None:
    made = client("POST", COMMENTS, {"body": "slower"})
    assert (made.status_code, made.headers["location"]) == (201, made.json()["url"])
    assert made.json()["user"] | {"login": ACTIONS, "type": "Bot"} == made.json()["user"]
    assert made.json()["performed_via_github_app"]["slug"] == "github-actions"
    path = f"{REPO}/issues/comments/{made.json()['id']}"
    assert client("PATCH", path, {"body": "faster"}).json()["body"] == "faster"
    [found] = client("GET", COMMENTS).json()
    assert (found["body"], found["id"]) == ("faster", made.json()["id"])
    assert found["updated_at"] > found["created_at"]
    assert [comment.body for comment in fake.comments_on(7)] == ["faster"]
    assert client("DELETE", path).status_code == 204
    assert client("DELETE", path).status_code == 404
    assert fake.comments == {}
    assert fake.violations == []


def test_a_comment_at_the_limit_is_taken_and_one_over_it_refused(
    fake: FakeGitHub, client: Client
) -> None:
    assert client("POST", COMMENTS, {"body": "🚀" * COMMENT_LIMIT}).status_code == 201
    refused = client("POST", COMMENTS, {"body": "x" * (COMMENT_LIMIT + 1)})
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["message"] == "Body is too long (maximum is 65536 characters)"
    assert len(fake.comments) == 1
    edited = f"{REPO}/issues/comments/{next(iter(fake.comments))}"
    assert client("PATCH", edited, {"body": "x" * (COMMENT_LIMIT + 1)}).status_code == 422
    assert client("POST", COMMENTS, {"body": " \n"}).status_code == 422
    assert fake.violations == []


@pytest.mark.parametrize("part", ["summary", "text"])
def test_a_check_run_over_the_limit_is_refused_by_characters_and_by_bytes(
    fake: FakeGitHub, client: Client, part: str
) -> None:
    at = CHECK | {"output": OUTPUT | {part: "x" * OUTPUT_LIMIT_BYTES}}
    made = client("POST", f"{REPO}/check-runs", at)
    assert made.status_code == 201
    over = CHECK | {"output": OUTPUT | {part: "x" * (OUTPUT_LIMIT_BYTES + 1)}}
    refused = client("POST", f"{REPO}/check-runs", over)
    assert refused.status_code == 422
    assert "Only 65535 characters are allowed; 65536 were" in refused.json()["message"]
    wide = {"output": OUTPUT | {part: "é" * (OUTPUT_LIMIT_BYTES // 2 + 1)}}
    refused = client("PATCH", f"{REPO}/check-runs/{made.json()['id']}", wide)
    assert refused.status_code == 422
    assert "bytesize of 65535" in refused.json()["errors"][0]["message"]
    assert len(fake.check_runs) == 1
    assert fake.violations == []


def test_more_than_fifty_annotations_in_a_request_are_refused(
    fake: FakeGitHub, client: Client
) -> None:
    many = CHECK | {"output": OUTPUT | {"annotations": [ANNOTATION] * 51}}
    refused = client("POST", f"{REPO}/check-runs", many)
    assert refused.status_code == 422
    assert "No more than 50 items are allowed; 51 were supplied." in refused.json()["message"]
    long = CHECK | {"output": OUTPUT | {"annotations": [ANNOTATION | {"title": "x" * 256}]}}
    assert client("POST", f"{REPO}/check-runs", long).status_code == 422
    assert fake.check_runs == {}
    assert fake.violations == []


def test_annotations_of_later_requests_join_the_earlier_ones(
    fake: FakeGitHub, client: Client
) -> None:
    fifty = CHECK | {"output": OUTPUT | {"annotations": [ANNOTATION] * 50, "text": "long"}}
    made = client("POST", f"{REPO}/check-runs", fifty).json()
    assert (made["status"], made["conclusion"]) == ("completed", "failure")
    assert [pull["number"] for pull in made["pull_requests"]] == [7]
    more = {"output": OUTPUT | {"annotations": [ANNOTATION]}}
    told = client("PATCH", f"{REPO}/check-runs/{made['id']}", more).json()["output"]
    assert (told["annotations_count"], told["text"]) == (51, None)
    assert len(fake.check_runs[made["id"]].annotations) == 51
    assert fake.violations == []


def test_check_runs_of_a_commit_are_listed_the_latest_of_a_name_unless_all_are_wanted(
    fake: FakeGitHub, client: Client
) -> None:
    client("POST", f"{REPO}/check-runs", CHECK | {"name": "other"})
    first, second = (client("POST", f"{REPO}/check-runs", CHECK).json()["id"] for _ in range(2))
    path = f"{REPO}/commits/{HEAD}/check-runs?check_name=sns-gate"
    assert [run["id"] for run in client("GET", path).json()["check_runs"]] == [second]
    whole = client("GET", f"{path}&filter=all&status=completed&app_id=15368").json()
    assert [run["id"] for run in whole["check_runs"]] == [first, second]
    assert whole["total_count"] == 2
    assert client("GET", f"{path}&app_id=1").json()["total_count"] == 0
    assert fake.violations == []


def test_a_check_run_is_completed_with_a_conclusion_only(fake: FakeGitHub, client: Client) -> None:
    queued = client("POST", f"{REPO}/check-runs", {"name": "sns-gate", "head_sha": HEAD}).json()
    assert (queued["status"], queued["completed_at"]) == ("queued", None)
    path = f"{REPO}/check-runs/{queued['id']}"
    assert client("PATCH", path, {"status": "in_progress"}).json()["status"] == "in_progress"
    assert fake.violations == []
    assert client("PATCH", path, {"status": "completed"}).status_code == 422
    assert len(fake.violations) == 1
    unfinished = CHECK | {"status": "completed"}
    del unfinished["conclusion"]
    assert client("POST", f"{REPO}/check-runs", unfinished).status_code == 422
    assert list(fake.check_runs) == [queued["id"]]


def test_a_status_over_the_limit_is_refused(fake: FakeGitHub, client: Client) -> None:
    status = {"state": "success", "context": "sns-gate", "description": "x" * DESCRIPTION_LIMIT}
    made = client("POST", f"{REPO}/statuses/{HEAD}", status)
    assert (made.status_code, made.json()["creator"]["login"]) == (201, ACTIONS)
    status["description"] += "x"
    refused = client("POST", f"{REPO}/statuses/{HEAD}", status)
    assert refused.status_code == 422
    assert "maximum is 140 characters" in refused.json()["errors"][0]["message"]
    assert [(one.sha, one.state, one.context) for one in fake.statuses] == [
        (HEAD, "success", "sns-gate")
    ]
    assert fake.violations == []


def test_two_hundred_comments_come_in_pages_oldest_first(fake: FakeGitHub, client: Client) -> None:
    fake.add_comments(7, 200, "alice")
    pages = client.pages(COMMENTS)
    assert [len(page) for page in pages] == [30] * 6 + [20]
    bodies = [comment["body"] for page in pages for comment in page]
    assert bodies == [f"comment {i + 1}" for i in range(200)]
    assert [len(page) for page in client.pages(f"{COMMENTS}?per_page=100")] == [100, 100]
    assert {request.path for request in fake.requests} == {COMMENTS}
    assert fake.violations == []


def test_no_page_has_more_than_a_hundred(fake: FakeGitHub, client: Client) -> None:
    fake.add_comments(7, 101, "alice")
    assert [len(page) for page in client.pages(f"{COMMENTS}?per_page=1000")] == [100, 1]


def test_links_lead_from_every_page_to_its_neighbours_and_the_ends(
    fake: FakeGitHub, client: Client
) -> None:
    fake.add_comments(7, 5, "alice")
    numbers = []
    for page in (1, 2, 3, 9):
        links = client("GET", f"{COMMENTS}?per_page=2&page={page}").links
        numbers.append({rel: link["url"].rpartition("page=")[2] for rel, link in links.items()})
    assert numbers == [
        {"next": "2", "last": "3"},
        {"prev": "1", "next": "3", "last": "3", "first": "1"},
        {"prev": "2", "first": "1"},
        {"prev": "3", "first": "1"},
    ]
    assert "link" not in client("GET", COMMENTS).headers
    # GitHub names the repository by its number there: a link is followed, not built.
    first = client("GET", f"{COMMENTS}?per_page=2")
    assert "/repositories/" in first.links["next"]["url"]


def test_comments_since_a_time_are_listed(fake: FakeGitHub, client: Client) -> None:
    fake.add_comments(7, 3, "alice")
    since = client("GET", COMMENTS).json()[1]["updated_at"]
    assert len(client("GET", f"{COMMENTS}?since={since}").json()) == 2
    assert client("GET", f"{COMMENTS}?since=yesterday").status_code == 422
    assert len(fake.violations) == 1


@pytest.mark.parametrize("authorization", [None, "Bearer unknown", "Basic ghs_0", "ghs_0"])
def test_without_a_known_token_nothing_is_answered(
    fake: FakeGitHub, client: Client, authorization: str | None
) -> None:
    answer = client.session.get(
        fake.url + COMMENTS, headers={"Authorization": authorization}, timeout=10
    )
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")
    assert fake.requests[0].status == 401


def test_a_forks_token_reads_and_cannot_write(fake: FakeGitHub, client: Client) -> None:
    client.token = fake.fork_token
    assert client("GET", COMMENTS).status_code == 200
    for path, body in (
        (COMMENTS, {"body": "x"}),
        (f"{REPO}/check-runs", CHECK),
        (f"{REPO}/statuses/{HEAD}", {"state": "success"}),
    ):
        answer = client("POST", path, body)
        assert answer.status_code == 403
        assert answer.json()["message"] == "Resource not accessible by integration"
        assert int(answer.headers["x-ratelimit-remaining"]) > 0
    assert (fake.comments, fake.check_runs, fake.statuses) == ({}, {}, [])
    assert fake.violations == []


def test_a_token_writes_what_it_is_granted(fake: FakeGitHub, client: Client) -> None:
    client.token = fake.add_token(ACTIONS, grants={"pull-requests"})
    assert client("POST", COMMENTS, {"body": "x"}).status_code == 201
    assert client("POST", f"{REPO}/check-runs", CHECK).status_code == 403
    assert client("POST", f"{REPO}/statuses/{HEAD}", {"state": "success"}).status_code == 403


def test_a_comment_is_edited_by_its_author_or_by_who_may_write(
    fake: FakeGitHub, client: Client
) -> None:
    path = f"{REPO}/issues/comments/{fake.add_comment(7, 'alice', 'mine').id}"
    client.token = fake.add_token("mallory")
    assert client("PATCH", path, {"body": "no"}).status_code == 403
    assert client("DELETE", path).status_code == 403
    client.token = fake.add_token("alice")
    assert client("PATCH", path, {"body": "yes"}).status_code == 200
    fake.permission("carol", "write")
    client.token = fake.add_token("carol")
    edited = client("PATCH", path, {"body": "tidied"}).json()
    assert (edited["body"], edited["user"]["login"]) == ("tidied", "alice")


def test_only_an_app_makes_check_runs_and_changes_none_but_its_own(
    fake: FakeGitHub, client: Client
) -> None:
    run = client("POST", f"{REPO}/check-runs", CHECK).json()
    fake.permission("carol", "admin")
    client.token = fake.add_token("carol")
    assert client("POST", f"{REPO}/check-runs", CHECK).status_code == 403
    assert client("POST", f"{REPO}/statuses/{HEAD}", {"state": "success"}).status_code == 201
    client.token = fake.add_token("another[bot]")
    refused = client("PATCH", f"{REPO}/check-runs/{run['id']}", {"conclusion": "success"})
    assert (refused.status_code, fake.check_runs[run["id"]].conclusion) == (403, "failure")


@pytest.mark.parametrize(
    ("user", "level", "expected"),
    [
        ("carol", "admin", ("admin", "admin")),
        ("carol", "maintain", ("write", "maintain")),
        ("carol", "write", ("write", "write")),
        ("carol", "triage", ("read", "triage")),
        ("alice", None, ("read", "read")),
        ("carol", "none", ("none", "none")),
    ],
)
def test_a_users_permission_is_told(
    fake: FakeGitHub, client: Client, user: str, level: Level | None, expected: tuple[str, str]
) -> None:
    if level:
        fake.permission(user, level)
    told = client("GET", f"{REPO}/collaborators/{user.upper()}/permission").json()
    assert (told["permission"], told["role_name"]) == expected
    assert told["user"]["login"] == user
    assert told["user"]["permissions"]["push"] == (expected[0] in ("write", "admin"))
    assert fake.violations == []


def test_bots_and_strangers_have_no_permission_and_strangers_learn_none(
    fake: FakeGitHub, client: Client
) -> None:
    bot = client("GET", f"{REPO}/collaborators/github-actions%5Bbot%5D/permission")
    assert (bot.status_code, bot.json()["message"]) == (404, f"{ACTIONS} is not a user")
    assert client("GET", f"{REPO}/collaborators/nobody/permission").status_code == 404
    client.token = fake.add_token("mallory")
    assert client("GET", f"{REPO}/collaborators/alice/permission").status_code == 403
    assert fake.violations == []


def test_events_tell_who_set_a_label_and_when(fake: FakeGitHub, client: Client) -> None:
    fake.add_pull(8, NEXT, BASE, "alice", labels=["perf"])
    fake.label(7, "accept-slowdown", "carol")
    fake.unlabel(7, "accept-slowdown", "alice")
    fake.label(7, "accept-slowdown", ACTIONS)
    events = client("GET", f"{REPO}/issues/7/events").json()
    assert [(one["event"], one["actor"]["login"], one["label"]["name"]) for one in events] == [
        ("labeled", "carol", "accept-slowdown"),
        ("unlabeled", "alice", "accept-slowdown"),
        ("labeled", ACTIONS, "accept-slowdown"),
    ]
    assert sorted(one["created_at"] for one in events) == [one["created_at"] for one in events]
    pull = client("GET", f"{REPO}/pulls/7").json()
    assert [label["name"] for label in pull["labels"]] == ["accept-slowdown"]
    [opened] = client("GET", f"{REPO}/issues/8/events").json()
    assert opened["actor"]["login"] == "alice"
    assert fake.violations == []


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


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("POST", COMMENTS, {"body": "x", "marker": "y"}, "'marker' was unexpected"),
        ("POST", COMMENTS, {}, "'body' is a required property"),
        ("POST", COMMENTS, {"body": 3}, "3 is not of type 'string'"),
        ("POST", COMMENTS, None, "the body is missing"),
        ("GET", COMMENTS, {"body": "x"}, "a body where none is taken"),
        ("GET", f"{COMMENTS}?perpage=5", None, "'perpage' is unknown"),
        ("GET", f"{COMMENTS}?per_page=five", None, "'five' is not of type 'integer'"),
        ("GET", f"{COMMENTS}?page=1&page=2", None, "given twice"),
        ("GET", f"{REPO}/pulls/seven", None, "'seven' is not of type 'integer'"),
        ("GET", f"{REPO}/pulls?state=any", None, "'any' is not one of"),
        ("POST", f"{REPO}/check-runs", CHECK | {"conclusion": "slower"}, "'slower' is not one of"),
        (
            "POST",
            f"{REPO}/check-runs",
            CHECK | {"output": OUTPUT | {"annotations": [ANNOTATION | {"line": 3}]}},
            "'line' was unexpected",
        ),
    ],
)
def test_a_request_that_does_not_fit_the_description_is_a_violation(
    fake: FakeGitHub, client: Client, method: str, path: str, body: object, told: str
) -> None:
    assert client(method, path, body).status_code == 422
    [violation] = fake.violations
    assert told in violation
    assert violation.startswith(f"{method} {path.partition('?')[0]}: ")


@pytest.mark.parametrize("raw", [b"{", b'{"body": NaN}', b'{"body": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_json_is_a_violation(
    fake: FakeGitHub, client: Client, raw: bytes
) -> None:
    headers = {"Authorization": f"Bearer {fake.token}"}
    answer = client.session.post(fake.url + COMMENTS, data=raw, headers=headers, timeout=10)
    assert answer.status_code == 422
    assert len(fake.violations) == 1
    assert fake.comments == {}


def test_an_operation_that_the_api_does_not_have_is_a_violation(
    fake: FakeGitHub, client: Client
) -> None:
    assert client("PUT", COMMENTS, {"body": "x"}).status_code == 404
    assert client("GET", f"{REPO}/comments").status_code == 404
    assert len(fake.violations) == 2


def test_an_answer_of_the_fakes_own_that_does_not_fit_is_a_violation() -> None:
    with FakeGitHub() as fake, requests.Session() as session:
        fake.add_pull(7, HEAD, BASE, "alice").title = None  # type: ignore[assignment] # as if broken
        assert Client(fake, session)("GET", f"{REPO}/pulls/7").status_code == 422
        assert "answer: title: None is not of type 'string'" in fake.violations[0]


def test_an_error_of_the_fakes_own_is_a_violation() -> None:
    with FakeGitHub() as fake, requests.Session() as session:
        fake.meanwhile("GET", "pulls", lambda: 1 // 0)
        with pytest.raises(requests.ConnectionError):
            Client(fake, session)("GET", f"{REPO}/pulls/7")
    assert "ZeroDivisionError" in fake.violations[0]


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (401, {}, "Bad credentials"),
        (403, {}, "Resource not accessible by integration"),
        (403, {"Retry-After": "2"}, "secondary rate limit"),
        (403, {"X-RateLimit-Remaining": "0", "x-ratelimit-reset": "1"}, "API rate limit exceeded"),
        (404, {}, "Not Found"),
        (422, {}, "Validation Failed"),
        (429, {"retry-after": "2"}, "secondary rate limit"),
        (500, {}, "Server Error"),
        (502, {}, "Server Error"),
        (503, {}, "Server Error"),
    ],
)
def test_a_status_is_answered_with_its_headers_and_githubs_message(
    fake: FakeGitHub, client: Client, status: int, headers: dict[str, str], message: str
) -> None:
    fake.fail("POST", "/comments$", status, headers=headers)
    answer = client("POST", COMMENTS, {"body": "x"})
    assert answer.status_code == fake.requests[0].status == status
    assert message in answer.json()["message"]
    for name, value in headers.items():
        assert answer.headers[name] == value
    assert fake.comments == {}
    assert client("POST", COMMENTS, {"body": "x"}).status_code == 201
    assert fake.violations == []


def test_a_status_is_answered_with_the_body_that_the_test_gives(
    fake: FakeGitHub, client: Client
) -> None:
    fake.fail("GET", "pulls", 503, body="<b>unavailable</b>")
    fake.fail("GET", "pulls", 500, body={"message": "\x1b[31m"})
    assert client("GET", f"{REPO}/pulls/7").text == "<b>unavailable</b>"
    assert client("GET", f"{REPO}/pulls/7").json() == {"message": "\x1b[31m"}


def test_a_timeout_lasts_until_the_client_gives_up(fake: FakeGitHub, client: Client) -> None:
    fake.fail("GET", "comments", "timeout")
    with pytest.raises(requests.ReadTimeout):
        client("GET", COMMENTS, timeout_s=GIVE_UP_S)
    assert fake.requests[0].status is None
    assert client("GET", COMMENTS).status_code == 200


def test_closing_cuts_a_timeout_short() -> None:
    began_s = time.monotonic()
    with ThreadPoolExecutor(1) as pool, requests.Session() as session:
        with FakeGitHub() as fake:
            fake.fail("GET", "pulls", "timeout")
            waiting = pool.submit(Client(fake, session), "GET", f"{REPO}/pulls/7", timeout_s=60)
            while not fake.requests:
                time.sleep(0.01)
        with pytest.raises(requests.ConnectionError):
            waiting.result()
    assert time.monotonic() - began_s < 5


def test_a_reset_is_a_connection_error(fake: FakeGitHub, client: Client) -> None:
    fake.fail("GET", "comments", "reset")
    with pytest.raises(requests.ConnectionError, match="reset by peer"):
        client("GET", COMMENTS)
    assert fake.requests[0].status is None
    assert client("GET", COMMENTS).status_code == 200
    assert fake.violations == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", COMMENTS, 200), ("POST", COMMENTS, 201), ("PATCH", "comment", 200)],
)
def test_broken_json_has_a_good_status(
    fake: FakeGitHub, client: Client, method: str, path: str, status: int
) -> None:
    comment = fake.add_comment(7, "alice", "hello")
    path = f"{REPO}/issues/comments/{comment.id}" if path == "comment" else path
    fake.fail(method, "comments", "broken json")
    answer = client(method, path, None if method == "GET" else {"body": "x"})
    assert answer.status_code == status
    with pytest.raises(requests.JSONDecodeError):
        answer.json()
    assert [one.body for one in fake.comments_on(7)] == ["hello"]


def test_an_answer_cut_short_is_an_error_of_the_transport(fake: FakeGitHub, client: Client) -> None:
    fake.fail("GET", "pulls", "cut short")
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        client("GET", f"{REPO}/pulls/7")
    assert client("GET", f"{REPO}/pulls/7").status_code == 200
    assert fake.violations == []


def test_a_page_of_html_is_a_bad_gateway(fake: FakeGitHub, client: Client) -> None:
    fake.fail("GET", "pulls", "html")
    answer = client("GET", f"{REPO}/pulls/7")
    assert (answer.status_code, answer.headers["content-type"]) == (502, "text/html")
    assert answer.text.startswith("<html>")


@pytest.mark.parametrize("fault", [500, "timeout", "reset", "broken json", "cut short", "html"])
def test_a_write_that_was_applied_before_its_fault_and_is_repeated_makes_a_duplicate(
    fake: FakeGitHub, client: Client, fault: Fault
) -> None:
    fake.fail("POST", "comments", fault, applied=True)
    try:
        answer = client("POST", COMMENTS, {"body": "x"}, timeout_s=GIVE_UP_S)
        assert answer.status_code in (201, 500, 502)
    except requests.RequestException:
        pass
    assert len(fake.comments) == 1
    assert client("POST", COMMENTS, {"body": "x"}).status_code == 201
    assert [comment.body for comment in fake.comments_on(7)] == ["x", "x"]


def test_faults_come_in_the_order_in_which_they_were_planned(
    fake: FakeGitHub, client: Client
) -> None:
    fake.fail("GET", "pulls", 500, times=2, after=1)
    fake.fail("GET|POST", "pulls|comments", 503)
    paths = [f"{REPO}/pulls/7", COMMENTS, *[f"{REPO}/pulls/7"] * 3]
    assert [client("GET", path).status_code for path in paths] == [200, 503, 500, 500, 200]
    assert [request.status for request in fake.asked("GET", "pulls")] == [200, 500, 500, 200]


def test_an_unknown_fault_is_refused(fake: FakeGitHub) -> None:
    with pytest.raises(ValueError, match="'slow' is no fault; take a status or one of: timeout"):
        fake.fail("GET", "pulls", "slow")  # type: ignore[arg-type] # that is the point


def test_something_happens_between_two_requests(fake: FakeGitHub, client: Client) -> None:
    fake.meanwhile("GET", "pulls/7$", lambda: fake.push(7, NEXT), after=1)
    shas = [client("GET", f"{REPO}/pulls/7").json()["head"]["sha"] for _ in range(3)]
    assert shas == [HEAD, NEXT, NEXT]


def test_hasty_writes_are_refused_when_the_test_asks_for_it() -> None:
    now_s = 100.0
    with FakeGitHub(clock=lambda: now_s) as fake, requests.Session() as session:
        fake.add_pull(7, HEAD, BASE, "alice")
        client = Client(fake, session)
        assert client("POST", COMMENTS, {"body": "1"}).status_code == 201
        assert client("POST", COMMENTS, {"body": "2"}).status_code == 201
        fake.least_write_gap_s = 1
        refused = client("POST", COMMENTS, {"body": "3"})
        assert (refused.status_code, refused.headers["retry-after"]) == (403, "1")
        assert "secondary rate limit" in refused.json()["message"]
        assert client("GET", COMMENTS).status_code == 200
        now_s += 1
        assert client("POST", COMMENTS, {"body": "4"}).status_code == 201
        assert [comment.body for comment in fake.comments_on(7)] == ["1", "2", "4"]
        assert fake.violations == []


def test_requests_are_logged(fake: FakeGitHub, client: Client) -> None:
    client("POST", COMMENTS, {"body": "x"})
    client("GET", f"{COMMENTS}?per_page=5&page=2")
    logged = [(one.method, one.path, one.query, one.body, one.status) for one in fake.requests]
    assert logged == [
        ("POST", COMMENTS, {}, {"body": "x"}, 201),
        ("GET", COMMENTS, {"per_page": 5, "page": 2}, None, 200),
    ]
    assert fake.requests[0].headers["Content-Type"] == "application/json"


def test_an_enterprise_server_has_its_api_under_a_prefix() -> None:
    with FakeGitHub(prefix="/api/v3") as fake, requests.Session() as session:
        fake.add_pull(7, HEAD, BASE, "alice")
        fake.add_comments(7, 3, "alice")
        client = Client(fake, session)
        assert fake.url.endswith("/api/v3")
        pages = client.pages(f"{COMMENTS}?per_page=2")
        assert [len(page) for page in pages] == [2, 1]
        host = fake.url.removesuffix("/api/v3")
        assert pages[0][0]["url"].startswith(f"{fake.url}{REPO}/issues/comments/")
        assert pages[0][0]["html_url"].startswith(f"{host}/octo-org/kernels/pull/7#issuecomment-")
        assert {request.path for request in fake.requests} == {COMMENTS}
        assert fake.violations == []
        assert client("GET", host + COMMENTS).status_code == 404
        assert len(fake.violations) == 1


def test_many_clients_at_once_are_all_answered(fake: FakeGitHub) -> None:
    def post(i: int) -> int:
        with requests.Session() as session:
            return Client(fake, session)("POST", COMMENTS, {"body": str(i)}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(post, range(40))) == {201}
    assert {comment.body for comment in fake.comments.values()} == {str(i) for i in range(40)}
    assert len(fake.requests) == 40


def test_every_operation_of_the_description_is_served(fake: FakeGitHub, client: Client) -> None:
    comment = fake.add_comment(7, "alice", "x").id
    fake.add_file("main", "sns-gate.toml", "x")
    run = client("POST", f"{REPO}/check-runs", CHECK).json()["id"]
    named = {
        "owner": "octo-org",
        "repo": "kernels",
        "issue_number": "7",
        "pull_number": "7",
        "comment_id": str(comment),
        "check_run_id": str(run),
        "username": "alice",
        "ref": HEAD,
        "sha": HEAD,
        "commit_sha": HEAD,
        "path": "sns-gate.toml",
    }
    bodies = {
        "issues/create-comment": {"body": "x"},
        "issues/update-comment": {"body": "x"},
        "checks/create": CHECK,
        "checks/update": {"conclusion": "success", "output": OUTPUT},
        "repos/create-commit-status": {"state": "success"},
    }
    extract = json.loads((FOLDER / "api-extract.json").read_text(encoding="utf-8"))
    asked = [
        (told["operationId"], method, template)
        for template, methods in extract["paths"].items()
        for method, told in methods.items()
    ]
    for id_, method, template in sorted(asked, key=lambda one: one[1] == "delete"):
        answer = client(method.upper(), template.format(**named), bodies.get(id_))
        assert answer.status_code < 300, (id_, answer.text)
    assert fake.violations == []
