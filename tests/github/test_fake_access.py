"""Who may do what at the fake GitHub: tokens, forks, apps and permissions."""

from __future__ import annotations

import pytest

from tests.fake_github import FakeGitHub
from tests.github.client import BASE, CHECK, COMMENTS, HEAD, NEXT, REPO, Client
from tests.github_state import ACTIONS, Level


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
