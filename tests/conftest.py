"""What all tests share: the shipped application over a fresh copy of the test world, on both databases."""

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
from normata.identity.tokens import tokens
from normata.settings import Settings
from tests import memory, prepared, world
from tests.client import TestClient
from tests.databases import build, change
from tests.listing import Listing
from tests.pooled import Kept, opened, to_lend
from tests.postgres import Server, running_server

# By itself Hypothesis draws the same examples in every run of CI.
hypothesis.settings.register_profile("others each time", derandomize=False)
hypothesis.settings.load_profile("others each time")


def pytest_configure() -> None:
    """Work in memory where there is room, and let the commands that tests start be interrupted.

    A shell that starts the tests in the background has them ignore SIGINT, and what they start would, too.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        gc.disable()  # until all has been imported, of which nothing is garbage
    if (parent := memory.folder()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests wait for servers to start, and for limits of time to pass."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_finish() -> None:
    """Leave what has been imported alone: the collector would walk it again and again, for a third of the run."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(2_000_000, 20, 5)


def pytest_sessionfinish() -> None:
    """Look for garbage once. Pytest does so five times, for faults in destructors, and the interpreter once more."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def event_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of the key that signs checkpoints: not in the folder that the tests run in."""
    path = tmp_path_factory.mktemp("key") / "normata.event-key"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NORMATA_EVENT_KEY", str(path))
        yield path


@pytest.fixture(autouse=True)
def no_marks(event_key: Path) -> None:
    """All tests share the key, and each has a database of its own: what was signed of another is none of its past."""
    shutil.rmtree(f"{event_key}.marks", ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def prepared_process() -> Iterator[None]:
    """Ends the process that forks for the commands that tests start."""
    yield
    prepared.end()


@pytest.fixture(scope="session")
def catalogs() -> Path:
    """The folder of published catalogs and mappings. They are too large, and not ours, to be kept with the tests."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("NORMATA_TEST_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no published catalogs in {folder}: set NORMATA_TEST_DATA")
    return folder


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the test world in it, to be copied."""
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
    """The name of a database with the test world in it, to be copied."""
    name = f"normata_template_{uuid4().hex}"
    build(postgres.create(name), with_world=True)
    yield name
    postgres.drop(name)


@pytest.fixture(scope="session")
def empty_sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a current schema and nothing in it, to be copied."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    build(f"sqlite:///{path}", with_world=False)
    return path


@pytest.fixture(scope="session")
def empty_postgres_template(postgres: Server) -> Iterator[str]:
    """The name of a database with a current schema and nothing in it, to be copied."""
    name = f"normata_template_{uuid4().hex}"
    build(postgres.create(name), with_world=False)
    yield name
    postgres.drop(name)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of a fresh copy of the test world in SQLite."""
    path = tmp_path / "normata.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def kept_postgres(postgres: Server, postgres_template: str) -> Iterator[Kept]:
    """A copy of the test world in PostgreSQL, to be restored."""
    with closing(Kept(postgres, postgres_template)) as kept:
        yield kept


@pytest.fixture
def postgres_url(kept_postgres: Kept) -> str:
    """The address of the test world in PostgreSQL, in which nothing has changed."""
    kept_postgres.restore()
    return kept_postgres.url


@pytest.fixture
def own_postgres_url(postgres: Server, postgres_template: str) -> Iterator[str]:
    """The address of a fresh copy of the test world in PostgreSQL that nobody has been connected to."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name, template=postgres_template)
    postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh copy of the test world; the test runs once on each database."""
    url: str = request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param])
    return url


@pytest.fixture(scope="session")
def kept_shared_postgres(postgres: Server, postgres_template: str) -> Iterator[Kept]:
    """A copy of the test world in PostgreSQL for one module after the other."""
    with closing(Kept(postgres, postgres_template)) as kept:
        yield kept


@pytest.fixture(scope="module")
def shared_postgres_url(kept_shared_postgres: Kept) -> str:
    """The address of the test world in PostgreSQL, for the tests of a module."""
    kept_shared_postgres.restore()
    return kept_shared_postgres.url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a copy of the test world that a module's tests share, since none of them writes."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "normata.db"
        return f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), path)}"
    shared_postgres_url: str = request.getfixturevalue("shared_postgres_url")
    return shared_postgres_url


@pytest.fixture(scope="module")
def shared_database(shared_url: str) -> Iterator[Database]:
    """The test world that a module's tests share, past the application: whatever they try leaves it as it was."""
    with opened(shared_url) as database:
        yield database


@pytest.fixture(scope="session")
def kept_empty_postgres(postgres: Server, empty_postgres_template: str) -> Iterator[Kept]:
    """A database in PostgreSQL with a current schema, to be emptied."""
    with closing(Kept(postgres, empty_postgres_template)) as kept:
        yield kept


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with a current schema and nothing in it; the test runs once on each database."""
    if request.param == "sqlite":
        path = tmp_path / "empty.db"
        shutil.copy(request.getfixturevalue("empty_sqlite_template"), path)
        return f"sqlite:///{path}"
    kept: Kept = request.getfixturevalue("kept_empty_postgres")
    kept.restore()
    return kept.url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The test world, past the application."""
    with opened(database_url) as database:
        yield database


@pytest.fixture
def empty(empty_url: str) -> Iterator[Database]:
    """A database with a current schema and nothing in it."""
    with opened(empty_url) as database:
        yield database


@pytest.fixture
def settings(database_url: str) -> Settings:
    """The application's settings: the shipped ones, but for the database and a quiet log."""
    return Settings(database_url=database_url, log_level="error")


@pytest.fixture
def application(settings: Settings) -> Service:
    """The shipped application over the test world."""
    return create_app(settings)


@pytest.fixture
def client(request: pytest.FixtureRequest, settings: Settings) -> Iterator[TestClient]:
    """A client of the application; a fault of the service would be raised in the test."""
    if (kept := to_lend(settings)) is not None:
        with kept.served(settings) as (_, client):
            yield client
        return
    with TestClient(request.getfixturevalue("application")) as client:
        yield client


MakeToken = Callable[..., str]


@pytest.fixture
def make_token(database: Database) -> MakeToken:
    """Makes a token of one of the world's users: ``make_token("editor", scope="read")``."""

    def make(user: str, *, scope: str = "write", lifetime: timedelta | None = timedelta(hours=1)) -> str:
        return change(
            database, lambda unit: tokens.create(unit, email=world.USERS[user], scope=scope, lifetime=lifetime)
        )

    return make


@pytest.fixture
def bearer(make_token: MakeToken) -> Callable[..., dict[str, str]]:
    """Makes the Authorization header of one of the world's users."""

    def make(user: str, **kwargs: object) -> dict[str, str]:
        return {"Authorization": f"Bearer {make_token(user, **kwargs)}"}

    return make


@pytest.fixture
def listing(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Callable[..., Listing]:
    """Makes a list as a user asks for it: ``listing("/controls/", "viewer")``."""

    def make(path: str, user: str = "viewer") -> Listing:
        return Listing(client, path, bearer(user))

    return make


@pytest.fixture
def add(database: Database) -> Callable[[dict[str, list[dict[str, Any]]]], None]:
    """Loads more into the world: a bundle, in memory."""

    def load(document: dict[str, list[dict[str, Any]]]) -> None:
        world.load(database, document)

    return load
