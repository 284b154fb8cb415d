"""Databases for the tests of the database package: fresh copies of the example, on both."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert

from normata.core.db.database import Database
from tests.core.db.example import LABELS, build, label, open_url
from tests.core.db.sessions import Service, Session, session
from tests.postgres import Server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the example in it, to be copied."""
    path = tmp_path_factory.mktemp("template") / "example.db"
    build(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> Iterator[str]:
    """The name of a database with the example in it, to be copied."""
    name = f"normata_template_{uuid4().hex}"
    build(postgres.create(name))
    yield name
    postgres.drop(name)


@pytest.fixture
def path(sqlite_template: Path, tmp_path: Path) -> Path:
    """A fresh copy of the example in SQLite."""
    path = tmp_path / "normata.db"
    shutil.copy(sqlite_template, path)
    return path


@pytest.fixture
def sqlite_url(path: Path) -> str:
    """The address of a fresh copy in SQLite."""
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(postgres: Server, postgres_template: str) -> Iterator[str]:
    """The address of a fresh copy in PostgreSQL."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name, template=postgres_template)
    postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A fresh copy of the example; the test runs once on each database."""
    opened = open_url(request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]))
    yield opened
    opened.close()


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    """A fresh copy in SQLite."""
    opened = open_url(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Session]:
    """A session of PostgreSQL that sees everything."""
    with session(postgres_url) as everything:
        yield everything


@pytest.fixture
def service(postgres_url: str) -> Iterator[Service]:
    """PostgreSQL as the service has it, with one connection for everything."""
    acting = Service(postgres_url)
    yield acting
    acting.close()


@pytest.fixture
def read(database: Database) -> Callable[..., list[Any]]:
    """The rows of a statement, as plain tuples, over a database with six labels more."""
    database.write_now(lambda transaction: transaction.execute_many(insert(label), LABELS))

    def run(statement: Any, parameters: dict[str, Any] | None = None) -> list[Any]:
        return list(map(tuple, database.read_now(lambda transaction: transaction.rows(statement, parameters or {}))))

    return run
