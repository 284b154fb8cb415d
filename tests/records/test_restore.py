"""The restore of every kind: what it answers, what it leaves as it was, and what it leaves behind."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import pytest
from httpx2 import Response

from normata.core.db.types import format_timestamp
from normata.identity.model import AccessToken
from normata.identity.tokens.tokens import digest
from normata.records.base import Restorable
from normata.records.kinds import Label, Policy, RiskReview
from tests import stored
from tests.records.restoring import Row, add_archived, archived, camel, restore
from tests.records.shapes import KINDS, SHAPES, full_record
from tests.served import Served, refused
from tests.world import ALPHA, EARLIER, record_id


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_without_optional_values_has_every_field(shared: Served, kind: type[Restorable]) -> None:
    """Every field of the interface is there and no other; null exactly where it may be."""
    response = restore(shared, kind, record_id(kind, "archived"), shared.bearer("editor"))
    assert response.status_code == 200, response.text
    if kind.answers_null:
        assert response.content == b"null"
        return
    shape, body = SHAPES[kind.path], response.json()
    assert body.keys() == shape.fields.keys()
    given = {"id", "organizationId", "slug", "shortId", "createdAt", "updatedAt", kind.title_column()}
    for name, value in body.items():
        if name not in given and shape.nullable(name):
            assert value is None, name
        else:
            assert_type(shape.fields[name], name, value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_with_every_value_comes_back_whole(shared: Served, kind: type[Restorable]) -> None:
    """All fields but ``archivedAt`` and ``updatedAt`` are as they were given, on the wire and in the table."""
    given, headers = full_record(kind, "full"), shared.bearer("editor")
    shared.load({kind.path: [given]})
    before = stored.row(shared.database, kind, "full")
    start = format_timestamp(datetime.now(UTC))
    response = restore(shared, kind, "full", headers)
    end = format_timestamp(datetime.now(UTC))
    assert response.status_code == 200, response.text

    after = stored.row(shared.database, kind, "full")
    changed: Row = {"archived_at": None}
    if "updated_at" in after:
        assert start <= after["updated_at"] <= end
        assert after["updated_at"] > before["updated_at"]
        changed["updated_at"] = after["updated_at"]
    assert after == before | changed

    if kind.answers_null:
        assert response.content == b"null"
        return
    expected = given | {"archivedAt": None}
    if "updated_at" in after:
        expected["updatedAt"] = after["updated_at"]
    assert exactly(response.text) == exactly(json.dumps(expected))
    for name, value in response.json().items():
        if name != "archivedAt":
            assert_type(SHAPES[kind.path].fields[name], name, value)


def test_only_a_risk_review_does_not_say_when_it_was_changed() -> None:
    assert {kind for kind in Restorable.kinds if "updated_at" not in kind.sql().c} == {RiskReview}


def exactly(document: str) -> Any:
    """The members of a JSON document, each so that 3 is not 3.0 and the order of what is in it counts."""
    first: Row = json.loads(document, parse_int=str, parse_float=str)
    return {name: json.dumps(value) for name, value in first.items()}


def assert_type(sort: str, name: str, value: object) -> None:
    """The value has the type that the shape says of the field."""
    match sort:
        case "time":
            assert isinstance(value, str), name
            assert datetime.fromisoformat(value).tzinfo is not None
            assert len(value) == len(EARLIER), name
            assert value.endswith("Z"), name
        case "integer":
            assert type(value) is int, name
        case "number":
            assert type(value) in (int, float), name
        case "boolean":
            assert type(value) is bool, name
        case "enum":
            assert isinstance(value, str), name
            assert value == value.upper() != "", name
        case "string":
            assert isinstance(value, str), name
        case _:
            assert sort in ("any", "files")


def without(rows: list[Row], row_id: str) -> list[Row]:
    return [row for row in rows if row["id"] != row_id]


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_leaves_everything_else_alone(shared: Served, kind: type[Restorable]) -> None:
    """Kinds may use the same id: only the one of the address is restored, and no other row of any table changes.

    A second time is a conflict that changes nothing at all.
    """
    row_id = f"twin of {kind.path}"
    shared.load({other.path: [archived(other, row_id)] for other in Restorable.kinds})
    headers = shared.bearer("editor")
    before = stored.everything(shared.database)
    assert restore(shared, kind, row_id, headers).status_code == 200
    after = stored.everything(shared.database)
    its_own = {str(kind.__tablename__), f"{kind.__tablename__}_history"} & after.keys()
    assert {name for name in after if after[name] != before[name]} == its_own | {"audit_event"}
    assert len(after["audit_event"]) == len(before["audit_event"]) + 1
    table = str(kind.__tablename__)
    assert without(after[table], row_id) == without(before[table], row_id)

    refused(restore(shared, kind, row_id, headers), 409, "not_archived")
    assert stored.everything(shared.database) == after


@pytest.mark.parametrize("kind", KINDS)
def test_of_eight_at_once_one_succeeds(shared: Served, kind: type[Restorable]) -> None:
    """Exactly one restores; the others are told that the record is not archived; one audit event is written."""
    row_id, headers, together = f"wanted {kind.path}", shared.bearer("editor"), Barrier(8)
    add_archived(shared, kind, row_id)

    def call(_: int) -> Response:
        together.wait(timeout=30)
        return restore(shared, kind, row_id, headers)

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(call, range(8)))
    losers = [response for response in responses if response.status_code != 200]
    assert len(losers) == 7
    for loser in losers:
        refused(loser, 409, "not_archived")
    assert stored.row(shared.database, kind, row_id)["archived_at"] is None
    assert len(stored.events(shared.database, entity_id=row_id)) == 1


# --- The audit event, and all or nothing


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_event_tells_who_restored_what(shared: Served, kind: type[Restorable]) -> None:
    row_id, token = f"noted {kind.path}", shared.token("editor")
    add_archived(shared, kind, row_id)
    headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "chain-of-services.7"}
    assert restore(shared, kind, row_id, headers).status_code == 200
    (event,) = stored.events(shared.database, entity_id=row_id)
    (used,) = stored.rows(shared.database, AccessToken, digest=digest(token))
    record = stored.row(shared.database, kind, row_id)
    assert event == {
        "id": event["id"],
        "organization_id": ALPHA,
        "at": record.get("updated_at", event["at"]),
        "action": "restore",
        "entity_type": SHAPES[kind.path].component,
        "entity_id": row_id,
        "user_id": "user-editor",
        "token_id": used["id"],
        "request_id": "chain-of-services.7",
        "body": event["body"],
        "control_id": None,
    }
    assert json.loads(event["body"])["after"]["archivedAt"] is None


@pytest.mark.parametrize("lost", ["notification", "audit_event"])
@pytest.mark.parametrize("kind", [Policy, RiskReview], ids=lambda kind: str(kind.path))
def test_a_failure_half_way_leaves_nothing(service: Served, kind: type[Restorable], lost: str) -> None:
    """Record, audit event and notification are one transaction: where one of them cannot be written, none is."""
    row_id, headers = record_id(kind, "archived"), service.bearer("editor")
    assert kind.responsible is not None
    service.load({kind.path: [{"id": row_id, camel(kind.responsible): "member-admin"}]})
    before = stored.everything(service.database)
    service.sql(f"ALTER TABLE {lost} RENAME TO gone")
    response = restore(service, kind, row_id, headers)
    assert response.status_code in (500, 503)
    assert lost not in response.text
    service.sql(f"ALTER TABLE gone RENAME TO {lost}")
    assert stored.everything(service.database) == before
    assert restore(service, kind, row_id, headers).status_code == 200
    after = stored.everything(service.database)
    assert len(after["audit_event"]) == len(before["audit_event"]) + 1
    assert len(after["notification"]) == len(before["notification"]) + 1


def test_a_fault_of_the_database_is_not_taken_for_a_taken_slug(service: Served) -> None:
    """Only a live namesake is a conflict; another broken constraint is a fault of the service."""
    headers, row_id = service.bearer("editor"), record_id(Label, "archived")
    service.sql(
        f"UPDATE label SET name = 'label live' WHERE id = '{row_id}'",
        "CREATE UNIQUE INDEX uq_extra ON label (organization_id, name) WHERE archived_at IS NULL",
    )
    refused(restore(service, Label, row_id, headers), 500, "internal")
    assert stored.row(service.database, Label, row_id)["archived_at"] is not None
