"""What the tests of the web share.

HTTP is the same on every database, so these tests run on SQLite alone, but for those that ask for ``both``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.postgres import Server
from tests.served import Served, served


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh copy of the test world."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[getattr(request, "param", "sqlite")]
    url: str = request.getfixturevalue(name)
    return url


@pytest.fixture(scope="module")
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a copy of the test world that a module's tests share."""
    if getattr(request, "param", "sqlite") == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "normata.db"
        template: Path = request.getfixturevalue("sqlite_template")
        yield f"sqlite:///{shutil.copy(template, path)}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"normata_{uuid4().hex}"
    yield server.create(name, template=request.getfixturevalue("postgres_template"))
    server.drop(name)


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
