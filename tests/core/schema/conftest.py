"""What the tests of migrations share: databases with the schemas of older versions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

import pytest
from alembic import command

from normata.core.db.database import Database
from normata.core.schema.migrations import upgrading
from normata.tables import Table
from tests.databases import open_url
from tests.postgres import Server


def upgrade_to(database: Database, version: str) -> None:
    """Give a database the schema of a version, as the version itself would have."""
    database.alter_now(lambda connection: command.upgrade(upgrading.configuration(connection, Table.metadata), version))


class Older:
    """The databases of one kind with older schemas, to be copied: each is made once, from the one before.

    ``make`` makes a database of a name, as a copy of another where one is named, and returns its address.
    """

    def __init__(self, make: Callable[[str, str | None], str]) -> None:
        self._make = make
        self._names: dict[str, str] = {}

    def copy(self, version: str, name: str) -> str:
        """The address of a new database of this name with the schema of a version, and nothing in it."""
        if version not in self._names:
            before = max((known for known in self._names if known < version), default=None)
            template = f"normata_{version}_{uuid4().hex}"
            url = self._make(template, self._names[before] if before else None)
            with closing(open_url(url, create=True)) as database:
                upgrade_to(database, version)
            self._names[version] = template
        return self._make(name, self._names[version])

    @property
    def names(self) -> list[str]:
        """The names of those that are copied."""
        return list(self._names.values())


@pytest.fixture(scope="session")
def older_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Older:
    """Files with older schemas."""
    folder = tmp_path_factory.mktemp("older")

    def make(name: str, template: str | None) -> str:
        if template:
            shutil.copy(folder / template, folder / name)
        return f"sqlite:///{folder / name}"

    return Older(make)


@pytest.fixture(scope="session")
def older_postgresql(postgres: Server) -> Iterator[Older]:
    """Databases of PostgreSQL with older schemas."""
    older = Older(lambda name, template: postgres.create(name, template=template or "template0"))
    yield older
    for name in older.names:
        postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, version: str) -> Iterator[str]:
    """The address of a database with the schema of the test's ``version``, and nothing in it."""
    older: Older = request.getfixturevalue(f"older_{request.param}")
    name = f"normata_{uuid4().hex}"
    url = older.copy(version, name)
    with ExitStack() as stack:
        if request.param == "sqlite":
            stack.callback(Path(url.removeprefix("sqlite:///")).unlink)
        else:
            stack.callback(request.getfixturevalue("postgres").drop, name)
        yield url
