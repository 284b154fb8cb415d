"""After a large load the database knows how much there is, so that the next list is planned by that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from normata.core.db.database import Database
from normata.core.db.postgresql.transaction import PostgreSQLTransaction
from normata.core.db.sqlite.transaction import SQLiteTransaction
from tests import world
from tests.bundle.documents import Document
from tests.core.db.sessions import session
from tests.served import served
from tests.world import ALPHA

MANY = 100  # on PostgreSQL


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that loads have the database count."""
    tables: list[str] = []

    def noted(kind: type[SQLiteTransaction | PostgreSQLTransaction]) -> Callable[..., list[Any]]:
        fetch = kind.fetch

        def noting(transaction: Any, sql: str, *values: Any) -> list[Any]:
            if sql.startswith("ANALYZE"):
                tables.append(sql.rsplit(maxsplit=1)[-1].strip('"'))
            return fetch(transaction, sql, *values)

        return noting

    for kind in (SQLiteTransaction, PostgreSQLTransaction):
        monkeypatch.setattr(kind, "fetch", noted(kind))
    return tables


@pytest.fixture
def many(database: Database) -> int:
    """From how many rows on a table is counted."""
    return 1_000 if database.embedded else MANY


def labels(count: int, **values: str) -> Document:
    return {"labels": [{"id": f"{number}", "organizationId": ALPHA, "name": "x", **values} for number in range(count)]}


def catalog(controls: int) -> Document:
    """A framework that alpha has adopted: each control is matched, and one in three has a statement."""
    ids = [f"large.{number}" for number in range(controls)]
    return {
        "frameworks": [{"id": "fw-large", "identifier": "LARGE", "name": "Large"}],
        "controls": [{"id": one, "frameworkId": "fw-large", "identifier": one, "name": one} for one in ids],
        "controlMatches": [
            {"id": f"into {target}", "sourceControlId": source, "targetControlId": target, "matchLevel": "FULL"}
            for source, target in zip([*ids[1:], ids[0]], ids, strict=True)
        ],
        "frameworkAdoptions": [{"id": "adopt-large", "organizationId": ALPHA, "frameworkId": "fw-large"}],
        "controlCoverages": [
            {"id": f"say {one}", "organizationId": ALPHA, "controlId": one, "coverageStatus": "PARTIAL"}
            for one in ids[::3]
        ],
    }


def test_a_table_is_counted_where_many_rows_are_written(database: Database, counted: list[str], many: int) -> None:
    world.load(database, labels(many - 1))
    assert counted == []
    world.load(database, labels(many))  # one is new
    assert counted == []
    world.load(database, labels(many, color="red"))
    assert counted == ["label"]
    world.load(database, labels(many, color="red"))
    assert counted == ["label"]


def test_computed_coverage_counts_as_well(database: Database, counted: list[str], many: int) -> None:
    """A few adoptions may bring any number of rows of it."""
    document = catalog(many)
    adoptions = {"frameworkAdoptions": document.pop("frameworkAdoptions")}
    world.load(database, document)
    assert counted == ["control", "control_match"]
    counted.clear()
    world.load(database, adoptions)
    # A history is called larger than it is on SQLite, which takes that over then.
    then = ["sqlite_schema"] if database.embedded else []
    assert counted == ["effective_coverage", "effective_coverage_history", *then]


def test_a_large_catalog_is_listed_by_a_plan_that_knows_its_size(postgres_url: str) -> None:
    """Without, PostgreSQL reads all statements again for each control, until its own count a minute later."""
    controls = 3 * MANY
    with served(postgres_url) as service, session(postgres_url) as admin:
        service.load(catalog(controls))
        counts = dict(
            admin.rows("SELECT relname::text, reltuples::integer FROM pg_class WHERE relkind = 'r' AND reltuples > 0")
        )
        for table, count in (
            ("control", controls),
            ("control_match", controls),
            ("control_coverage", controls // 3),
            ("effective_coverage", controls),
        ):
            assert count <= counts[table] <= count + 200, table
        (plan,) = json.loads(
            admin.value(f"EXPLAIN (FORMAT json) SELECT FROM effective_coverage WHERE organization_id = '{ALPHA}'")
        )
        assert plan["Plan"]["Plan Rows"] == pytest.approx(controls, rel=0.2)
        page = service.listing("/controls/").page(sortColumn="coverageStatus", sortDirection="desc", limit=5)
        assert page["total"] >= controls
        assert page["items"][0]["coverage"]["coverageStatus"] in ("PARTIAL", "FULL")
