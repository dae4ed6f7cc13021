"""Requests and answers at the fake GitHub that do not fit GitHub's description."""

from __future__ import annotations

import pytest
import requests

from tests.fake_github import FakeGitHub
from tests.github.client import ANNOTATION, BASE, CHECK, COMMENTS, HEAD, OUTPUT, REPO, Client


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
