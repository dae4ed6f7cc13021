"""The least of a client of the fake GitHub, and what its tests send."""

from __future__ import annotations

from typing import Any

import requests

from tests.fake_github import FakeGitHub

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
