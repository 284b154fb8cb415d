"""What the tests of the web share.

HTTP is the same on every database, so these tests run on SQLite alone, but for those that ask for both.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import mostly_sqlite, world
from tests.databases import change
from tests.served import Served, served

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world, in which there are assessments to undo."""
    with served(database_url) as opened:
        change(opened.database, world.remember)
        yield opened


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a copy of the test world that a module's tests share, since none of them changes it."""
    with served(shared_url) as opened:
        change(opened.database, world.remember)
        yield opened
