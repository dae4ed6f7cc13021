"""The fake GitHub and a client of it, for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.fake_github import FakeGitHub
from tests.github.client import BASE, HEAD, Client


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
