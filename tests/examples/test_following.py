"""The example that copies events to a warehouse: complete, once, proven, and without what was erased."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from normata.erasure.erasing import erase
from normata.erasure.person import ErasureRequest
from normata.events.keys import Signer
from normata.events.sealing import last_checkpoint, seal_all_now
from normata.settings import Settings
from tests import world
from tests.databases import change, on_both
from tests.examples.integrating import Done, Integrations
from tests.files.rows import contents

PROGRAM = "events_to_warehouse.py"


def rows(file: Path, statement: str) -> list[tuple[object, ...]]:
    """What is in the warehouse, or what a change of it answers."""
    with closing(sqlite3.connect(file)) as warehouse, warehouse:
        return warehouse.execute(statement).fetchall()


def follow(integrations: Integrations, token: str) -> Done:
    """Copy all events that there are."""
    seal_all_now(integrations.database)
    return integrations.run(PROGRAM, integrations.folder / "events.sqlite", token=token)


def size(integrations: Integrations) -> int:
    """The number of events in the log."""
    return integrations.database.read_now(lambda transaction: last_checkpoint(transaction, world.ALPHA)).size


def rename(integrations: Integrations, *names: str) -> None:
    """Make events: other names of a task."""
    for name in names:
        integrations.change("PATCH", "/tasks/tasks-live-org-alpha/", {"title": name})


@on_both
def test_each_event_is_copied_once_and_proven(integrations: Integrations) -> None:
    token = integrations.token("auditor", "read")
    rename(integrations, "Ask viewer@alpha.example", "Ask nobody", "Ask the auditor")
    first = follow(integrations, token)
    assert (first.status, first.refused) == (0, [])
    assert first.said == f"{(count := size(integrations))} new events, {count} in all, {count} of them proven\n"
    assert count > 3

    again = follow(integrations, token)
    assert again.said == f"0 new events, {count} in all, {count} of them proven\n"
    rename(integrations, "Ask the owner")
    assert follow(integrations, token).said == f"1 new events, {count + 1} in all, {count + 1} of them proven\n"
    numbers = rows(integrations.folder / "events.sqlite", "SELECT number FROM event ORDER BY number")
    assert [number for (number,) in numbers] == list(range(count + 1))


def test_what_is_erased_is_erased_in_the_copy(integrations: Integrations) -> None:
    token = integrations.token("auditor", "read")
    rename(integrations, "Ask viewer@alpha.example", "Ask nobody")
    follow(integrations, token)
    file = integrations.folder / "events.sqlite"
    named = "SELECT id FROM event WHERE body LIKE '%viewer@alpha.example%'"
    assert rows(file, named)
    request = ErasureRequest(world.USERS["viewer"])
    signer = Signer(Settings().event_key_file)
    change(integrations.database, lambda unit: erase(unit, request, signer, contents()))
    done = follow(integrations, token)
    assert (done.status, rows(file, named)) == (0, [])
    assert done.said.endswith(f"{size(integrations)} of them proven\n")


@pytest.mark.parametrize(
    ("tampering", "why"),
    [
        ("UPDATE event SET leaf_hash = '00' WHERE number = 1", "is not the log of the checkpoint"),
        ("DELETE FROM event WHERE number = 1", "is not the log of the checkpoint"),
        ("DELETE FROM event WHERE number = (SELECT max(number) FROM event)", None),
    ],
)
def test_a_copy_that_was_changed_is_not_proven(integrations: Integrations, tampering: str, why: str | None) -> None:
    token = integrations.token("auditor", "read")
    rename(integrations, "Ask somebody", "Ask nobody")
    follow(integrations, token)
    rows(integrations.folder / "events.sqlite", tampering)
    done = follow(integrations, token)
    assert done.status == (0 if why is None else 1)
    assert why is None or why in done.refused[0]


def test_who_may_not_read_events_is_refused(unchanged: Integrations) -> None:
    done = unchanged.run(PROGRAM, unchanged.folder / "events.sqlite", token=unchanged.token("editor", "read"))
    assert (done.status, len(done.refused)) == (1, 1)
    assert "403 forbidden" in done.refused[0]


def test_a_file_that_is_no_database_is_refused(unchanged: Integrations) -> None:
    done = unchanged.run(PROGRAM, unchanged.table("people.csv", [{"email": "a@b.example"}]), token=unchanged.token())
    assert (done.status, done.said) == (1, "")
    assert done.refused == [f"{unchanged.folder / 'people.csv'}: file is not a database"]
