"""For tests of what is the same on every database: on SQLite alone, but for those that ask for both.

They ask by ``on_both`` and ``on_both_shared`` of :mod:`tests.databases`. A ``conftest.py`` takes these fixtures as its
own.
"""

from __future__ import annotations

import shutil

import pytest


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
