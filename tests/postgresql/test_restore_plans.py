"""How PostgreSQL finds out whether a slug is free: by the index of live slugs, whatever its statistics say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from normata.core.db.postgresql.transaction import PostgreSQLTransaction
from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.records.base import Restorable
from normata.records.restore import _restore
from tests import world
from tests.core.db.sessions import Service, session
from tests.databases import open_url
from tests.postgresql.row_level import IN_ALPHA
from tests.world import ALPHA

MANY = 200

WITH_SLUG = [pytest.param(kind, id=kind.path) for kind in Restorable.kinds if "slug" in kind.sql().c]


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_a_restore_reads_no_other_records(kind: type[Restorable], service: Service, postgres_url: str) -> None:
    """The server counted when all were archived. It would take a scan of all live ones for as quick as a look."""
    archived = {"organizationId": ALPHA, "archivedAt": world.ARCHIVED}
    rows = [{"id": f"x{number}", kind.title_column(): f"x {number}"} | archived for number in range(MANY)]
    with closing(open_url(postgres_url)) as database:
        world.load(database, {kind.array: rows})
    with session(postgres_url) as admin:
        name = kind.__tablename__
        admin.run(f"UPDATE {name} SET archived_at = now() WHERE archived_at IS NULL", f"VACUUM ANALYZE {name}")
        admin.run(f"UPDATE {name} SET archived_at = NULL WHERE id LIKE 'x%' AND id <> 'x0'")
    plan = service.write(lambda transaction: explained(transaction, kind, "x0"), IN_ALPHA)
    (done,) = (node for node in nodes(plan) if node["Node Type"] == "ModifyTable")
    assert done["Actual Rows"] == 1
    assert sum(read(node) for node in nodes(plan)) == 1  # the record itself


def explained(transaction: Transaction, kind: type[Restorable], record_id: str) -> dict[str, Any]:
    """How the server has restored a record."""
    assert isinstance(transaction, PostgreSQLTransaction)
    parameters = {"record": record_id, "organization": None, "moment": now()}
    statement = _restore(kind, names_organization=False)
    sql, values = transaction._statements.prepare(statement, parameters).bind(parameters)
    ((plan,),) = transaction.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *values)
    found: dict[str, Any] = plan[0]["Plan"]
    return found


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A plan's steps."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def read(node: Mapping[str, Any]) -> float:
    """The rows that a step has read from a table."""
    if "Relation Name" not in node or node["Node Type"] == "ModifyTable":
        return 0
    passed = sum(value for name, value in node.items() if name.startswith("Rows Removed"))
    return float((node["Actual Rows"] + passed) * node["Actual Loops"])
