"""What `normata serve` does before the server runs: the schema, and the line that says where it serves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from normata import __version__
from normata.core.db.database import Database
from normata.core.http import server
from normata.settings import Settings
from tests.cli.commands import Done, Run, failed
from tests.databases import tamper
from tests.server import reserved_port

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port to serve on. The server does nothing but announce itself."""

    def run(_settings: Settings, announce: Callable[[Any], None], prepare: Callable[[], Any] = lambda: None) -> None:
        announce(prepare())

    monkeypatch.setattr(server, "run", run)
    before = structlog.get_config()
    with reserved_port() as port:
        yield port
    structlog.configure(**before)


def test_where_programs_read_the_log_the_announcement_is_an_event(normata: Run, port: int) -> None:
    done = normata("serve", "--port", port, "--workers", 2)
    assert (done.code, done.out) == (0, "")
    event: dict[str, Any] = json.loads(done.err)
    assert (event["event"], event["url"], event["version"], event["workers"]) == (
        "serving",
        f"http://127.0.0.1:{port}",
        __version__,
        2,
    )


def test_on_a_terminal_it_is_a_sentence(normata: Run, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    sentence = f"Normata {__version__} serves http://127.0.0.1:{port}, documentation at /docs; stop with Ctrl-C\n"
    assert normata("serve", "--port", port) == Done(0, "", sentence)


@ON_POSTGRESQL
def test_the_schema_of_the_next_version_can_be_served(
    normata: Run, port: int, database: Database, database_url: str
) -> None:
    """A process of the old version may start again while the new one is rolled out."""
    tamper(database, "UPDATE alembic_version SET version_num = '99991231_01'")
    assert normata("serve", "--port", port, "--database", database_url).code == 0


@ON_POSTGRESQL
def test_an_old_schema_of_a_server_is_left_to_migrate(
    normata: Run, port: int, database: Database, database_url: str
) -> None:
    tamper(database, "UPDATE alembic_version SET version_num = '20261120_01'")
    told = failed(normata("serve", "--port", port, "--database", database_url))
    assert told == "the schema of the database is not current; run `normata migrate`"
