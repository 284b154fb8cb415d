"""Whom a restore notifies: the member who answers for the record, unless it is the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from normata.database import Database
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Policy
from tests import stored
from tests.records.shapes import KINDS, SHAPES
from tests.world import ALPHA, BETA, record_id

Bearer = Callable[..., dict[str, str]]
Row = dict[str, Any]

# Path → the field that names who answers for the record, and the category of notifications about it.
ANSWERABLE = {
    "tasks": ("assigneeMemberId", "TASKS"),
    "assets": ("ownerId", "ASSETS"),
    "policies": ("approverId", "POLICIES"),
    "record-categories": ("ownerId", "RECORDS"),
    "entitlement-reviews": ("coordinatorId", "REVIEWS"),
    "risk-reviews": ("coordinatorId", "RISKS"),
    "incidents": ("ownerId", "INCIDENTS"),
    "vendors": ("ownerId", "VENDORS"),
    "records": ("assigneeMemberId", "RECORDS"),
}
ANSWERED = [param for param in KINDS if param.values[0].path in ANSWERABLE]  # type: ignore[union-attr]


def answer_for(database: Database, kind: type[Restorable], member: str | None, row_id: str | None = None) -> str:
    """Have a member answer for the archived record of a kind, and return its id."""
    row_id = row_id or record_id(kind, "archived")
    field, _ = ANSWERABLE[kind.path]
    stored.load(database, {kind.path: [{"id": row_id, field: member}]})
    return row_id


def restore(client: TestClient, kind: type[Restorable], row_id: str, headers: dict[str, str]) -> None:
    response = client.post(f"/{kind.path}/{quote(row_id, safe='')}/restore/", headers=headers)
    assert response.status_code == 200, response.text


def inbox(client: TestClient, headers: dict[str, str], organization: str = ALPHA) -> list[Row]:
    response = client.get("/notifications/", params={"organizationId": organization}, headers=headers)
    assert response.status_code == 200, response.text
    items: list[Row] = response.json()["items"]
    return items


@pytest.mark.parametrize("kind", ANSWERED)
def test_who_answers_for_a_record_is_told_once(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """The notification is theirs alone, unread, newest, and says what it is about."""
    row_id = answer_for(database, kind, "member-viewer")
    before = stored.rows(database, Notification)
    viewer, editor = bearer("viewer"), bearer("editor")
    seen = {item["id"] for item in inbox(client, viewer)}
    restore(client, kind, row_id, editor)

    newest, *older = inbox(client, viewer)
    assert {item["id"] for item in older} == seen
    record = stored.row(database, kind, row_id)
    label = f"{kind.words()} archived"
    assert newest.keys() == {"id", "type", "category", "payload", "readAt", "createdAt"}
    assert newest["type"] == "record.restored"
    assert newest["category"] == ANSWERABLE[kind.path][1]
    assert newest["readAt"] is None
    if "updated_at" in record:
        assert newest["createdAt"] == record["updated_at"]
    payload = newest["payload"]
    assert payload["titleKey"]
    assert payload["bodyKey"]
    assert payload["titleKey"] != payload["bodyKey"]
    assert payload == {
        "titleKey": payload["titleKey"],
        "bodyKey": payload["bodyKey"],
        "params": {"label": label, "restoredBy": "Editor"},
        "url": f"/{kind.path}/{row_id}/",
        "entityType": SHAPES[kind.path].component,
        "entityId": row_id,
        "entityLabel": label,
        "entityMeta": record.get("slug"),
    }
    unread = client.get(f"/notifications/?organizationId={ALPHA}&unreadOnly=true", headers=viewer).json()["items"]
    assert newest in unread
    (new,) = [row for row in stored.rows(database, Notification) if row not in before]
    assert (new["user_id"], new["organization_id"]) == ("user-viewer", ALPHA)
    assert newest["id"] not in {item["id"] for item in inbox(client, editor)}


@pytest.mark.parametrize("kind", ANSWERED)
def test_nobody_is_told_of_what_they_did_themselves(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    row_id = answer_for(database, kind, "member-editor")
    before = stored.rows(database, Notification)
    restore(client, kind, row_id, bearer("editor"))
    assert stored.rows(database, Notification) == before


@pytest.mark.parametrize("kind", KINDS)
def test_where_nobody_answers_nobody_is_told(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """Neither where the field is null, nor of kinds that have none."""
    before = stored.rows(database, Notification)
    restore(client, kind, record_id(kind, "archived"), bearer("editor"))
    assert stored.rows(database, Notification) == before


@pytest.mark.parametrize("kind", ANSWERED)
def test_a_refused_restore_tells_nobody(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    row_id = answer_for(database, kind, "member-viewer")
    before = stored.rows(database, Notification)
    path = f"/{kind.path}/{row_id}/restore/"
    assert client.post(path, headers=bearer("viewer")).status_code == 403
    assert client.post(path, headers=bearer("foreigner")).status_code == 404
    assert client.post(path, headers=bearer("editor", scope="read")).status_code == 403
    assert stored.rows(database, Notification) == before
    restore(client, kind, row_id, bearer("editor"))
    assert client.post(path, headers=bearer("editor")).status_code == 409
    assert len(stored.rows(database, Notification)) == len(before) + 1


def test_the_notification_is_of_the_records_organization(
    client: TestClient, bearer: Bearer, database: Database
) -> None:
    """A user of two organizations reads it in the one that the record belongs to."""
    stored.load(
        database,
        {"memberships": [{"id": "also-beta", "organizationId": BETA, "userId": "user-viewer", "role": "editor"}]},
    )
    row_id = answer_for(database, Policy, "member-viewer")
    viewer = bearer("viewer")
    here, there = inbox(client, viewer), inbox(client, viewer, BETA)
    restore(client, Policy, row_id, bearer("owner"))
    assert len(inbox(client, viewer)) == len(here) + 1
    assert inbox(client, viewer, BETA) == there


def test_the_link_leads_to_the_record_whatever_its_id(client: TestClient, bearer: Bearer, database: Database) -> None:
    """An id with a slash, a question mark or a space is percent-encoded in ``url``, and itself in ``entityId``."""
    row_id = "a/b ü?#%"
    stored.load(
        database,
        {
            "policies": [
                {
                    "id": row_id,
                    "organizationId": ALPHA,
                    "title": "T" * 500,
                    "slug": "s" * 200,
                    "approverId": "member-viewer",
                    "archivedAt": "2026-01-01",
                }
            ]
        },
    )
    restore(client, Policy, row_id, bearer("editor"))
    payload = inbox(client, bearer("viewer"))[0]["payload"]
    assert payload["entityId"] == row_id
    assert payload["entityLabel"] == "T" * 500
    assert payload["url"] == f"/policies/{quote(row_id, safe='')}/"
