"""The figures of the database as a whole: unsealed events, sizes, and the last backup."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from normata.core.db.database import Database
from normata.core.http.metrics import FIGURES
from normata.core.schema.table import new_id
from tests.client import TestClient
from tests.databases import on_both, on_sqlite, path_of, tamper

DOCS = Path(__file__).parents[3] / "docs" / "operations.md"


def figures(client: TestClient) -> dict[str, float]:
    """Those of :data:`FIGURES` that the service shows."""
    lines = (line.split(" ") for line in client.get("/metrics").text.splitlines() if not line.startswith("#"))
    return {line[0]: float(line[1]) for line in lines if line[0] in FIGURES}


@on_both
def test_unsealed_events_and_their_age(client: TestClient, database: Database) -> None:
    assert figures(client)["normata_unsealed_events"] == 0
    assert figures(client)["normata_unsealed_event_age_seconds"] == 0
    tamper(database, f"INSERT INTO unsealed_event (event_id, owner) VALUES ('{new_id()}', 'org-alpha')")
    found = figures(client)
    assert found["normata_unsealed_events"] == 1
    assert 0 <= found["normata_unsealed_event_age_seconds"] < 60
    tamper(database, "UPDATE unsealed_event SET event_id = '01900000-0000-7000-8000-000000000000'")
    assert figures(client)["normata_unsealed_event_age_seconds"] > 86_400


@on_both
def test_jobs_that_are_due_claimed_and_failed(client: TestClient, database: Database) -> None:
    names = ("normata_due_jobs", "normata_due_job_age_seconds", "normata_failed_jobs")

    def jobs() -> list[float]:
        found = figures(client)
        return [found[name] for name in names]

    assert jobs() == [0, 0, 0]
    row = "INSERT INTO job (owner, type, key, attempts, due_at, failure) VALUES ('org-alpha', 'of a later version',"
    tamper(database, f"{row} 'due', 0, '2026-01-01T00:00:00.000Z', NULL)")
    tamper(database, f"{row} 'failed', 1, '2999-01-01T00:00:00.000Z', 'ValueError')")
    due, age, failed = jobs()
    assert (due, failed) == (1, 1)
    assert age > 86_400


@on_sqlite
def test_sizes_and_the_last_backup(client: TestClient, database: Database) -> None:
    path = path_of(database)
    with closing(sqlite3.connect(path)) as holder:  # the log is there as long as somebody has the database open
        holder.execute("SELECT count(*) FROM organization").fetchone()
        found = figures(client)
        assert found["normata_database_log_bytes"] == Path(f"{path}-wal").stat().st_size
        assert found["normata_database_size_bytes"] == path.stat().st_size
    assert found["normata_database_free_bytes"] > 0
    assert "normata_last_backup_timestamp_seconds" not in found
    marker = Path(f"{path}.last-backup")
    marker.touch()
    assert figures(client)["normata_last_backup_timestamp_seconds"] == pytest.approx(marker.stat().st_mtime)


@on_sqlite
def test_a_log_that_is_not_there_is_empty(database: Database) -> None:
    database.close()
    assert not Path(f"{path_of(database)}-wal").exists()
    assert database.figures()["normata_database_log_bytes"] == 0


@pytest.mark.parametrize("name", FIGURES)
def test_each_is_in_the_docs(name: str) -> None:
    assert re.search(rf"^\|.*`{name}`", DOCS.read_text("utf-8"), re.MULTILINE)
