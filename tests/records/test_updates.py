"""What a change of one record sends to SQLite, which writes each index of a column that is set."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from typing import Any

import pytest

from normata.core.changes.unit_of_work import Actor
from normata.core.db.transaction import TenantScope
from normata.records.kinds import Task
from normata.records.writing import change, change_writes
from normata.wiring import changes_of
from tests.databases import open_url
from tests.traced import traced
from tests.world import ALPHA, record_id


@pytest.mark.parametrize(
    ("body", "columns"),
    [
        ({"status": "DONE", "priority": "MEDIUM"}, {"status"}),
        ({"title": "Renamed"}, {"title", "title_key", "search_text"}),
        ({"description": "Longer"}, {"description", "search_text"}),
    ],
)
def test_only_columns_that_differ_are_set(
    body: dict[str, Any], columns: set[str], sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = traced(monkeypatch)
    with closing(open_url(sqlite_url)) as database:
        changing = changes_of(database).make(
            lambda unit: change(unit, Task, record_id(Task, "live"), body),
            actor=Actor("user-editor", "Editor", "token", "request"),
            scope=TenantScope((ALPHA,), (ALPHA,)),
            writes=change_writes(Task),
        )
        row = asyncio.run(changing)
    [update] = {one for one in sent if one.startswith("UPDATE task SET")}  # SQLite traces it for each trigger again
    assignments = update.partition(" WHERE ")[0]
    assert set(re.findall(r'(?:SET |, )"?(\w+)"?=', assignments)) == columns | {"updated_at"}
    assert row.priority == "MEDIUM"  # the whole row comes back
