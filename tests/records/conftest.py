"""What the tests of records share: the application, in which each test brings its own records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.served import Served, served


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a world that a module's tests share: each restores records of its own."""
    with served(shared_url) as opened:
        yield opened


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened
