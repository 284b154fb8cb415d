"""What the tests of loading share: small rows, and how a load ends."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from normata.bundle import loading
from normata.core.changes.source import FaultyInput, Row
from normata.core.db.database import Database
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import as_wire
from tests import world
from tests.databases import change
from tests.world import ALPHA

Document = dict[str, list[dict[str, Any]]]


def found(database: Database, table: type[Table], row_id: str) -> dict[str, Any]:
    """A stored row as the wire has it."""
    columns = sql_table(table).c
    [row] = database.read_now(lambda transaction: transaction.rows(select(*columns).where(columns.id == row_id)))
    return as_wire(table, row)


def faults(database: Database, *documents: Document) -> list[str]:
    """The faults of bundles, as one line each, once it is sure that they left nothing behind."""
    before = world.contents(database)
    rows = [
        Row(array, f"{number}.json", f"/{array}/{index}", values)
        for number, document in enumerate(documents)
        for array, items in document.items()
        for index, values in enumerate(items)
    ]
    with pytest.raises(FaultyInput) as caught:
        change(database, lambda unit: loading.load(unit, rows))
    assert world.contents(database) == before
    return [str(fault).removeprefix("0.json: ") for fault in caught.value.faults]


def label(label_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": label_id, "organizationId": ALPHA, "name": "Label"} | values


def task(task_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": task_id, "organizationId": ALPHA, "title": "Task"} | values


def asset(asset_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": asset_id, "organizationId": ALPHA, "name": "Asset"} | values


def policy(policy_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": policy_id, "organizationId": ALPHA, "title": "Policy"} | values


def notification(**values: Any) -> dict[str, Any]:
    return {"id": "new", "organizationId": ALPHA, "userId": "user-editor"} | values
