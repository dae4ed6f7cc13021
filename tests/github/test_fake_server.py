"""The fake GitHub as a server: its log, its addresses, many clients, all operations."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import requests

from tests.fake_github import FakeGitHub
from tests.github.client import BASE, CHECK, COMMENTS, HEAD, OUTPUT, REPO, Client
from tests.github_schema import FOLDER


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
