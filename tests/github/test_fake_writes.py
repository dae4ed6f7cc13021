"""The fake GitHub's comments, check runs and statuses: their limits and their pages."""

from __future__ import annotations

import pytest

from tests.fake_github import FakeGitHub
from tests.github.client import ANNOTATION, CHECK, COMMENTS, HEAD, OUTPUT, REPO, Client
from tests.github_limits import COMMENT_LIMIT, DESCRIPTION_LIMIT, OUTPUT_LIMIT_BYTES
from tests.github_state import ACTIONS


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
