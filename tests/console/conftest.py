"""What the tests of the console share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests import mostly_sqlite
from tests.console.browser import Browser, new_link
from tests.served import Served, served

# What differs between the databases is in their own packages, and in the tests that ask for both.
database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

MakeLink = Callable[[str], str]


@pytest.fixture
def instance(database_url: str) -> Iterator[Served]:
    """The shipped application over a fresh copy of the test world."""
    with served(database_url) as application:
        yield application


@pytest.fixture
def browser(instance: Served) -> Browser:
    """A browser that nobody has signed in with."""
    return Browser(instance)


@pytest.fixture
def link_of(instance: Served) -> MakeLink:
    """Makes a link for one of the world's users, as the command line does: the secret of it."""
    return partial(new_link, instance)


@pytest.fixture
def sign_in(link_of: MakeLink) -> Callable[[Browser, str], None]:
    """Signs one of the world's users in with a browser."""

    def sign_in(browser: Browser, user: str) -> None:
        assert browser.post("/sign-in/link/", secret=link_of(user)).status_code == 303

    return sign_in
