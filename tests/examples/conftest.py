"""The fixtures of the integrations: the shipped server over a copy of the test world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from normata.core.db.database import Database
from tests.examples.integrating import Integrations
from tests.mostly_sqlite import database_url, shared_url
from tests.pooled import opened
from tests.server import serving

__all__ = ["database_url", "shared_url"]


@pytest.fixture
def integrations(database: Database, database_url: str, tmp_path: Path) -> Iterator[Integrations]:
    """A server of the test's own."""
    with serving(database_url) as base:
        yield Integrations(base, database, tmp_path)


@pytest.fixture(scope="module")
def unchanged(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrations]:
    """A server for the tests of a module in which nothing is to change."""
    with opened(shared_url) as database, serving(shared_url) as base:
        yield Integrations(base, database, tmp_path_factory.mktemp("files"))
