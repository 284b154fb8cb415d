"""On SQLite the changes that wait go into one transaction, and each request is answered for itself."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest

from normata.core.changes.unit_of_work import Actor
from normata.core.db.transaction import TenantScope
from normata.errors import NotArchived, NotFound, SlugTaken
from normata.notifications.model import Notification
from normata.records.kinds import Task
from normata.records.restore import restore, restore_writes
from normata.wiring import changes_of
from tests import stored, world
from tests.databases import open_url
from tests.traced import traced
from tests.world import ALPHA, ARCHIVED, record_id

SCOPE = TenantScope((ALPHA,), (ALPHA,))


def test_restores_that_wait_together_are_each_answered_for_themselves(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten records, each asked for three times, one whose slug is taken, and one that is nowhere."""
    ids = [f"task-{number}" for number in range(10)]
    tasks = [
        {"id": name, "organizationId": ALPHA, "title": name, "archivedAt": ARCHIVED, "assigneeMemberId": "member-owner"}
        for name in ids
    ]
    taken = record_id(Task, "taken")
    wanted = [*ids, *ids, taken, *ids, "nowhere"]
    sent = traced(monkeypatch)

    async def together() -> list[Any]:
        actor = Actor("user-editor", "Editor", "token", "request")
        asked = (
            changes.make(
                lambda unit, name=name: restore(unit, Task, name),  # type: ignore[misc]
                actor=actor,
                scope=SCOPE,
                writes=restore_writes(Task),
            )
            for name in wanted
        )
        return await asyncio.gather(*asked, return_exceptions=True)

    with closing(open_url(sqlite_url)) as database:
        world.load(database, {"tasks": tasks})
        before = len(stored.rows(database, Notification))
        changes = changes_of(database)
        sent.clear()
        outcomes = asyncio.run(together())
        assert sent.count("COMMIT") == 1
        assert [outcome.id for outcome in outcomes[:10]] == ids
        assert [type(outcome) for outcome in outcomes[10:20]] == [NotArchived] * 10
        assert isinstance(outcomes[20], SlugTaken)
        assert [type(outcome) for outcome in outcomes[21:31]] == [NotArchived] * 10
        assert isinstance(outcomes[31], NotFound)
        assert sorted(row["entity_id"] for row in stored.events(database)) == ids
        assert len(stored.rows(database, Notification)) == before + len(ids)
        assert stored.row(database, Task, taken)["archived_at"] is not None
