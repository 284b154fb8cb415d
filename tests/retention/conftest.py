"""What the tests of retention share: the application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import mostly_sqlite
from tests.served import Served, served

# What differs between the databases is in their own packages, and in the tests that ask for both.
database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a world that a module's tests share."""
    with served(shared_url) as opened:
        yield opened


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened
