"""The fixtures of all tests: the shipped application over a fresh copy of the test world, on both databases."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import hypothesis
import pytest

from normata.app import Service, create_app
from normata.core.db.database import Database
from normata.core.http import outgoing
from normata.identity.tokens import tokens
from normata.settings import Settings
from tests import memory, prepared, world
from tests.client import TestClient
from tests.databases import build, change, settings_for
from tests.files.rows import fill, store_at
from tests.listing import Listing
from tests.pooled import Kept, opened, to_lend
from tests.postgres import Server, running_server, server_with_trigrams

# By default Hypothesis draws the same examples in every CI run.
hypothesis.settings.register_profile("others each time", derandomize=False)
hypothesis.settings.load_profile("others each time")


def pytest_configure() -> None:
    """Use a folder in memory if there is room, and let tests interrupt the commands that they start.

    A shell makes background processes ignore SIGINT, and these pass that on to the commands.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        gc.disable()  # until everything is imported, since imported objects are no garbage
    if (parent := memory.folder()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, because tests often wait for servers and timeouts."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection, which would otherwise take a third of the run."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(2_000_000, 20, 5)


def pytest_sessionfinish() -> None:
    """Collect garbage once. Pytest would do so five times, to find errors in finalizers, and Python once more."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def event_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The key file that signs checkpoints, outside of the folder in which the tests run."""
    path = tmp_path_factory.mktemp("key") / "normata.event-key"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NORMATA_EVENT_KEY", str(path))
        yield path


@pytest.fixture(scope="session", autouse=True)
def file_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of files of all tests, with those of the world."""
    folder = tmp_path_factory.mktemp("files") / "store"
    fill(store_at(f"file://{folder}"), world.ALPHA, world.BETA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NORMATA_FILES_URL", f"file://{folder}")
        yield folder


@pytest.fixture(scope="session", autouse=True)
def no_names() -> Iterator[None]:
    """Resolve no name of a receiver: webhooks of tests are on this machine, or nowhere."""

    def look_up(host: str, _port: int) -> list[str]:
        raise OSError(host)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outgoing, "look_up", look_up)
        yield


@pytest.fixture(autouse=True)
def no_marks(event_key: Path) -> None:
    """Remove the marks of signed checkpoints: tests share the key, but each has a database of its own."""
    shutil.rmtree(f"{event_key}.marks", ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def prepared_process() -> Iterator[None]:
    """End the process that forks the commands of tests."""
    yield
    prepared.end()


@pytest.fixture(scope="session")
def catalogs() -> Path:
    """The folder of published catalogs and mappings, which are too large for the repository, and not ours."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("NORMATA_TEST_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no published catalogs in {folder}: set NORMATA_TEST_DATA")
    return folder


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the test world, to copy."""
    path = tmp_path_factory.mktemp("template") / "world.db"
    build(f"sqlite:///{path}", with_world=True)
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> Iterator[str]:
    """The name of a database with the test world, to copy."""
    name = f"normata_template_{uuid4().hex}"
    build(postgres.create(name), with_world=True)
    yield name
    postgres.drop(name)


@pytest.fixture(scope="session")
def empty_sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the current schema and no rows, to copy."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    build(f"sqlite:///{path}", with_world=False)
    return path


@pytest.fixture(scope="session")
def empty_postgres_template(postgres: Server) -> Iterator[str]:
    """The name of a database with the current schema and no rows, to copy."""
    name = f"normata_template_{uuid4().hex}"
    build(postgres.create(name), with_world=False)
    yield name
    postgres.drop(name)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a fresh copy of the test world in SQLite."""
    path = tmp_path / "normata.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def kept_postgres(postgres: Server, postgres_template: str) -> Iterator[Kept]:
    """A copy of the test world in PostgreSQL, which is restored after each test."""
    with closing(Kept(postgres, postgres_template)) as kept:
        yield kept


@pytest.fixture
def postgres_url(kept_postgres: Kept) -> str:
    """The URL of the unchanged test world in PostgreSQL."""
    kept_postgres.restore()
    return kept_postgres.url


@pytest.fixture
def own_postgres_url(postgres: Server, postgres_template: str) -> Iterator[str]:
    """The URL of a fresh copy of the test world in PostgreSQL, to which nobody has connected before."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name, template=postgres_template)
    postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh copy of the test world. The test runs once on each database."""
    url: str = request.getfixturevalue(_URLS[request.param])
    return url


_URLS = {"sqlite": "sqlite_url", "postgresql": "postgres_url", "pg_trgm": "trigrams_url"}


@pytest.fixture(scope="session")
def trigrams_template() -> Iterator[tuple[Server, str]]:
    """A PostgreSQL server that has `pg_trgm`, and the name of a database with the test world there, to copy."""
    with server_with_trigrams() as server:
        name = f"normata_template_{uuid4().hex}"
        build(server.create(name), with_world=True)
        yield server, name
        server.drop(name)


@pytest.fixture
def trigrams_url(trigrams_template: tuple[Server, str]) -> Iterator[str]:
    """The URL of a fresh copy of the test world on a PostgreSQL server that has `pg_trgm`."""
    server, template = trigrams_template
    name = f"normata_{uuid4().hex}"
    yield server.create(name, template=template)
    server.drop(name)


@pytest.fixture(scope="session")
def kept_shared_postgres(postgres: Server, postgres_template: str) -> Iterator[Kept]:
    """A copy of the test world in PostgreSQL that one module after the other uses."""
    with closing(Kept(postgres, postgres_template)) as kept:
        yield kept


@pytest.fixture(scope="module")
def shared_postgres_url(kept_shared_postgres: Kept) -> str:
    """The URL of the test world in PostgreSQL for the tests of a module."""
    kept_shared_postgres.restore()
    return kept_shared_postgres.url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a copy of the test world that the tests of a module share. They must not write."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "normata.db"
        return f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), path)}"
    shared_postgres_url: str = request.getfixturevalue("shared_postgres_url")
    return shared_postgres_url


@pytest.fixture(scope="module")
def shared_database(shared_url: str) -> Iterator[Database]:
    """The test world that the tests of a module share, without the application. They roll back all changes."""
    with opened(shared_url) as database:
        yield database


@pytest.fixture(scope="session")
def kept_empty_postgres(postgres: Server, empty_postgres_template: str) -> Iterator[Kept]:
    """A database in PostgreSQL with the current schema, which is emptied after each test."""
    with closing(Kept(postgres, empty_postgres_template)) as kept:
        yield kept


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database with the current schema and no rows. The test runs once on each database."""
    if request.param == "sqlite":
        path = tmp_path / "empty.db"
        shutil.copy(request.getfixturevalue("empty_sqlite_template"), path)
        return f"sqlite:///{path}"
    kept: Kept = request.getfixturevalue("kept_empty_postgres")
    kept.restore()
    return kept.url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The test world, without the application."""
    with opened(database_url) as database:
        yield database


@pytest.fixture
def empty(empty_url: str) -> Iterator[Database]:
    """A database with the current schema and no rows."""
    with opened(empty_url) as database:
        yield database


@pytest.fixture
def settings(database_url: str) -> Settings:
    """The shipped settings, with the test's database and a quiet log."""
    return settings_for(database_url, log_level="error")


@pytest.fixture
def application(settings: Settings) -> Service:
    """The shipped application over the test world."""
    return create_app(settings)


@pytest.fixture
def client(request: pytest.FixtureRequest, settings: Settings) -> Iterator[TestClient]:
    """A client of the application. An internal error of the service is raised in the test."""
    if (kept := to_lend(settings)) is not None:
        with kept.served(settings) as (_, client):
            yield client
        return
    with TestClient(request.getfixturevalue("application")) as client:
        yield client


MakeToken = Callable[..., str]


@pytest.fixture
def make_token(database: Database) -> MakeToken:
    """Creates a token for a user of the world: ``make_token("editor", scope="read")``."""

    def make(user: str, *, scope: str = "write", lifetime: timedelta | None = timedelta(hours=1)) -> str:
        return change(
            database, lambda unit: tokens.create(unit, email=world.USERS[user], scope=scope, lifetime=lifetime)
        )

    return make


@pytest.fixture
def bearer(make_token: MakeToken) -> Callable[..., dict[str, str]]:
    """Creates the Authorization header for a user of the world."""

    def make(user: str, **kwargs: object) -> dict[str, str]:
        return {"Authorization": f"Bearer {make_token(user, **kwargs)}"}

    return make


@pytest.fixture
def listing(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Callable[..., Listing]:
    """Creates a list as a user requests it: ``listing("/controls/", "viewer")``."""

    def make(path: str, user: str = "viewer") -> Listing:
        return Listing(client, path, bearer(user))

    return make


@pytest.fixture
def add(database: Database) -> Callable[[dict[str, list[dict[str, Any]]]], None]:
    """Loads a further bundle into the world."""

    def load(document: dict[str, list[dict[str, Any]]]) -> None:
        world.load(database, document)

    return load
