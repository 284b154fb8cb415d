"""People of the world who have signed in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.browser import Browser, new_link
from tests.served import Served, served


class People:
    """A browser of each of the world's users, signed in when it is first asked for."""

    def __init__(self, instance: Served) -> None:
        self.instance = instance
        self.bearers: dict[str, dict[str, str]] = {}
        self._browsers: dict[str, Browser] = {}

    def __getitem__(self, user: str) -> Browser:
        if user not in self._browsers:
            browser = self._browsers[user] = Browser(self.instance)
            assert browser.post("/sign-in/link/", secret=new_link(self.instance, user)).status_code == 303
        return self._browsers[user]


@pytest.fixture
def people(database_url: str) -> Iterator[People]:
    """Them, over a fresh copy of the world."""
    with served(database_url) as instance:
        yield People(instance)


@pytest.fixture(scope="module")
def readers(shared_url: str) -> Iterator[People]:
    """Them, for tests that change nothing but their sessions."""
    with served(shared_url) as instance:
        yield People(instance)
