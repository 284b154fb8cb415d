"""What the tests of the web share.

HTTP is the same on every database, so these tests run on SQLite alone, but for those that ask for ``both``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.served import Served, served


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh copy of the test world."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[getattr(request, "param", "sqlite")]
    url: str = request.getfixturevalue(name)
    return url


@pytest.fixture(scope="module")
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a copy of the test world that a module's tests share."""
    if getattr(request, "param", "sqlite") == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "normata.db"
        return f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), path)}"
    shared_postgres_url: str = request.getfixturevalue("shared_postgres_url")
    return shared_postgres_url


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a copy of the test world that a module's tests share, since none of them changes it."""
    with served(shared_url) as opened:
        yield opened
