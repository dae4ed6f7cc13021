"""Faults that a test plans at the fake GitHub."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.fake_github import FakeGitHub
from tests.github.client import BASE, COMMENTS, GIVE_UP_S, HEAD, NEXT, REPO, Client
from tests.github_faults import Fault


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
