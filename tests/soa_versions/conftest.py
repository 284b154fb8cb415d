"""What the tests of versions share: both databases for a story, and SQLite for the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import mostly_sqlite
from tests.cli.conftest import normata
from tests.served import Served, served

__all__ = ["normata"]

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened
