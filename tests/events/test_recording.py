"""What an event says: who, with what, from where, and what was before and after; never a secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.core.changes.difference import difference
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.schema.table import tables
from normata.events.content import old_body, sealed_text
from normata.events.model import AuditEvent
from normata.frameworks.model import Control, ControlMatch
from normata.identity.model import AccessToken, Organization
from normata.identity.tokens import tokens
from normata.records.kinds import Label, Policy
from normata.tables import Table
from tests import stored, world
from tests.client import ADDRESS
from tests.databases import change, open_url
from tests.served import Served, run_sql
from tests.world import ALPHA, record_id

OWN_TABLES = sorted(
    (table for table in tables() if table.published and table.array), key=lambda table: str(table.__tablename__)
)


@pytest.fixture
def database(sqlite_url: str) -> Any:
    """The test world."""
    opened = open_url(sqlite_url)
    yield opened
    opened.close()


def bodies(database: Database, **wanted: object) -> list[dict[str, Any]]:
    """What events say."""
    return [json.loads(event["body"]) for event in stored.rows(database, AuditEvent, **wanted)]


def test_a_request_says_who_with_what_and_from_where(service: Served) -> None:
    headers = service.bearer("editor") | {"X-Request-Id": "chain-9"}
    label = record_id(Label, "archived")
    answer = service.client.post(f"/labels/{label}/restore/", headers=headers)
    assert answer.status_code == 200
    [row] = stored.events(service.database)
    body = json.loads(row["body"])
    assert body.pop("salt")
    assert body == {
        "id": row["id"],
        "organizationId": ALPHA,
        "at": row["at"],
        "action": "restore",
        "kind": "labels",
        "recordId": label,
        "userId": "user-editor",
        "tokenId": row["token_id"],
        "command": None,
        "address": ADDRESS,
        "requestId": "chain-9",
        "before": None,
        "after": {"archivedAt": None, "updatedAt": answer.json()["updatedAt"]},
        "counts": None,
        "reason": None,
    }


def test_the_bytes_are_sorted_and_without_blanks(service: Served) -> None:
    service.client.post(f"/labels/{record_id(Label, 'archived')}/restore/", headers=service.bearer("editor"))
    [row] = stored.events(service.database)
    body = json.loads(row["body"])
    assert row["body"] == json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_a_load_says_of_each_record_what_it_has_become(database: Database) -> None:
    """A new one whole, a changed one no more than has changed."""
    policy = record_id(Policy, "live")
    document: dict[str, list[dict[str, Any]]] = {
        "policies": [
            {"id": "new", "organizationId": ALPHA, "title": "New"},
            {"id": policy, "currentVersion": "2", "content": {"a": 1}},
            {"id": record_id(Policy, "archived")},
        ]
    }
    world.load(database, document)
    found = {body["recordId"]: body for body in bodies(database, entity_type="Policy")}
    assert found.keys() == {"new", policy}
    assert found["new"]["before"] is None
    assert found["new"]["after"]["title"] == "New"
    assert found["new"]["after"].keys() >= {"id", "slug", "createdAt", "content", "archivedAt"}
    moment = found[policy]["at"]
    assert found[policy]["before"] == {"currentVersion": None, "content": None, "updatedAt": world.EARLIER}
    assert found[policy]["after"] == {"currentVersion": "2", "content": {"a": 1}, "updatedAt": moment}
    assert {(body["command"], body["userId"], body["action"]) for body in found.values()} == {("normata", None, "load")}


def test_one_and_true_differ_in_a_document(database: Database) -> None:
    policy = record_id(Policy, "live")
    for value in (1, True, 1.0):
        world.load(database, {"policies": [{"id": policy, "content": {"a": value}}]})
    event_columns = [body["after"]["content"] for body in bodies(database, entity_id=policy)]
    assert list(map(repr, event_columns)) == ["{'a': 1}", "{'a': True}", "{'a': 1.0}"]


def test_integers_of_any_size_are_told(database: Database) -> None:
    world.load(database, {"policies": [{"id": record_id(Policy, "live"), "content": {"a": 2**80}}]})
    [body] = bodies(database, entity_type="Policy")
    assert body["after"]["content"] == {"a": 2**80}


def test_a_load_of_a_catalog_is_one_event_with_counts(database: Database) -> None:
    controls = [{"id": f"x{number}", "frameworkId": "fw-own", "name": "X"} for number in range(7)]
    world.load(database, {"controls": [*controls, {"id": "sun.A.1", "name": "Y"}]})
    found = {body["organizationId"]: body for body in bodies(database, entity_type="Control")}
    assert {owner: (body["recordId"], body["counts"]) for owner, body in found.items()} == {
        ALPHA: (None, {"inserted": 7, "updated": 0}),
        None: (None, {"inserted": 0, "updated": 1}),
    }
    assert Control.bulky
    assert ControlMatch.bulky


def test_people_and_tokens_are_told_by_their_ids(database: Database) -> None:
    """Neither addresses nor names, nor digests."""
    world.load(database, {"users": [{"id": "u", "email": "secret@x.example", "name": "Secret"}]})
    token = change(database, lambda unit: tokens.create(unit, email="secret@x.example", scope="read", lifetime=None))
    [row] = stored.rows(database, AccessToken, user_id="u")
    change(database, lambda unit: tokens.revoke(unit, row["id"]))
    written = " ".join(event["body"] for event in stored.rows(database, AuditEvent))
    assert not [secret for secret in ("secret", "Secret", token, tokens.digest(token)) if secret in written]
    found = bodies(database, entity_type="AccessToken")
    assert [(body["action"], body["recordId"], body["organizationId"]) for body in found] == [
        ("create", row["id"], None),
        ("revoke", row["id"], None),
    ]
    assert bodies(database, entity_type="User")[0]["after"] == {"id": "u", "organizationId": None, "removedAt": None}


@pytest.mark.parametrize("table", OWN_TABLES, ids=lambda table: str(table.__tablename__))
def test_no_table_tells_what_the_service_may_not_read(table: type[Table]) -> None:
    row = {column.name: "value" for column in table.__table__.columns}
    before, after = difference(Change("x", table, None, "id", row))
    assert before is None
    assert after
    event_columns = table.event_columns if table.event_columns is not None else table.readable
    if event_columns is not None:
        assert table.readable is None or event_columns <= table.readable
        assert after.keys() == {to_camel(name) for name in event_columns}


def test_what_has_gone_is_told_as_it_was() -> None:
    row = {"id": "value", "name": "value", "slug": "value"}
    assert difference(Change("delete", Organization, "o", "o", before=row)) == (row, None)
    assert difference(Change("update", Organization, "o", "o", row, {**row, "name": "Old"})) == (
        {"name": "Old"},
        {"name": "value"},
    )


def test_bulk_changes_without_counts_leave_no_event(database: Database) -> None:
    def work(unit: UnitOfWork) -> None:
        unit.publish(Change("compute", Label, ALPHA))

    change(database, work)
    assert stored.rows(database, AuditEvent) == []


def test_an_old_event_is_sealed_by_its_columns(database: Database) -> None:
    """Those that every version knows. Never change what this expects."""
    columns = "id, organization_id, at, action, entity_type, entity_id, user_id, token_id, request_id"
    values = f"'e', '{ALPHA}', '{world.EARLIER}', 'restore', 'Label', 'l', 'u', 't', 'r'"
    run_sql(database, f"INSERT INTO audit_event ({columns}) VALUES ({values})")
    [row] = stored.rows(database, AuditEvent)
    event = type("Event", (), row)
    assert sealed_text(event) == old_body(event)
    assert old_body(event) == (
        f'{{"action":"restore","at":"{world.EARLIER}","entityId":"l","entityType":"Label","id":"e",'
        f'"organizationId":"{ALPHA}","requestId":"r","tokenId":"t","userId":"u"}}'
    )
