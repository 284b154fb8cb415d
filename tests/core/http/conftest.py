"""What the tests of the web share.

HTTP is the same on every database, so these tests run on SQLite alone, but for those that ask for both.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import mostly_sqlite, world
from tests.databases import change, open_url
from tests.served import Served, served

shared_url = mostly_sqlite.shared_url


@pytest.fixture(scope="session")
def remembering_template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the test world, in which there are assessments to undo, to copy."""
    path = Path(shutil.copy(sqlite_template, tmp_path_factory.mktemp("template") / "remembering.db"))
    with closing(open_url(f"sqlite:///{path}")) as database:
        change(database, world.remember)
    return path


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a fresh copy of the test world; for ``service`` of the one in which there is more to undo."""
    if getattr(request, "param", "sqlite") == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    template = "remembering_template" if _wants_service(request) else "sqlite_template"
    return f"sqlite:///{shutil.copy(request.getfixturevalue(template), tmp_path / 'normata.db')}"


def _wants_service(request: pytest.FixtureRequest) -> bool:
    """Whether a test has declared that it takes ``service``: it may also ask for it later."""
    return "service" in request.fixturenames


@pytest.fixture
def service(database_url: str, request: pytest.FixtureRequest) -> Iterator[Served]:
    """The application over a fresh copy of the test world, in which there are assessments to undo."""
    with served(database_url) as opened:
        if not (opened.database.embedded and _wants_service(request)):
            change(opened.database, world.remember)
        yield opened


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a copy of the test world that a module's tests share, since none of them changes it."""
    with served(shared_url) as opened:
        change(opened.database, world.remember)
        yield opened
