"""Whom a restore notifies: the responsible member of the record, unless it is the caller."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Policy
from tests import stored
from tests.databases import on_both_shared
from tests.records.restoring import Row, add_archived, camel, restore
from tests.records.shapes import KINDS, SHAPES
from tests.served import Headers, Served
from tests.world import ALPHA, BETA

# Path → the field that names the responsible member, and the category of notifications about the kind.
IN_THE_INTERFACE = {
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
RESPONSIBLE = {kind.path: (camel(kind.responsible), kind.topic) for kind in Restorable.kinds if kind.responsible}
WITH_RESPONSIBLE = [pytest.param(kind, id=kind.path) for kind in Restorable.kinds if kind.responsible]


def test_the_responsible_members_are_those_of_the_interface() -> None:
    assert IN_THE_INTERFACE.items() <= RESPONSIBLE.items()


def add_for(service: Served, kind: type[Restorable], member: str | None, what: str) -> str:
    """Load an archived record for which a member is responsible, and return its id."""
    row_id = f"{kind.path} {what}"
    add_archived(service, kind, row_id, **{RESPONSIBLE[kind.path][0]: member})
    return row_id


def inbox(service: Served, headers: Headers, organization: str = ALPHA) -> list[Row]:
    """What a user reads."""
    response = service.client.get("/notifications/", params={"organizationId": organization}, headers=headers)
    assert response.status_code == 200, response.text
    items: list[Row] = response.json()["items"]
    return items


@pytest.mark.parametrize("kind", WITH_RESPONSIBLE)
@on_both_shared
def test_the_responsible_member_is_told_once(shared: Served, kind: type[Restorable]) -> None:
    """The notification is theirs alone, unread, newest, and says what it is about."""
    row_id = add_for(shared, kind, "member-viewer", "told")
    before = stored.rows(shared.database, Notification)
    viewer, editor = shared.bearer("viewer"), shared.bearer("editor")
    seen = {item["id"] for item in inbox(shared, viewer)}
    assert restore(shared, kind, row_id, editor).status_code == 200

    newest, *older = inbox(shared, viewer)
    assert {item["id"] for item in older} == seen
    record = stored.row(shared.database, kind, row_id)
    assert newest["createdAt"] == record.get("updated_at", newest["createdAt"])
    payload: dict[str, Any] = newest.pop("payload")
    assert newest == {
        "id": newest["id"],
        "type": "record.restored",
        "category": RESPONSIBLE[kind.path][1],
        "readAt": None,
        "createdAt": newest["createdAt"],
    }
    assert payload["titleKey"]
    assert payload["bodyKey"]
    assert payload["titleKey"] != payload["bodyKey"]
    assert payload == {
        "titleKey": payload["titleKey"],
        "bodyKey": payload["bodyKey"],
        "params": {"label": row_id, "restoredBy": "Editor"},
        "url": f"/{kind.path}/{quote(row_id, safe='')}/",
        "entityType": SHAPES[kind.path].component,
        "entityId": row_id,
        "entityLabel": row_id,
        "entityMeta": record.get("slug"),
    }
    query = {"organizationId": ALPHA, "unreadOnly": "true"}
    unread = shared.client.get("/notifications/", params=query, headers=viewer).json()["items"]
    assert newest["id"] in {item["id"] for item in unread}
    (new,) = [row for row in stored.rows(shared.database, Notification) if row not in before]
    assert (new["user_id"], new["organization_id"]) == ("user-viewer", ALPHA)
    assert newest["id"] not in {item["id"] for item in inbox(shared, editor)}


@pytest.mark.parametrize("kind", WITH_RESPONSIBLE)
def test_nobody_is_told_of_what_they_did_themselves(shared: Served, kind: type[Restorable]) -> None:
    row_id = add_for(shared, kind, "member-editor", "done")
    before = stored.rows(shared.database, Notification)
    assert restore(shared, kind, row_id, shared.bearer("editor")).status_code == 200
    assert stored.rows(shared.database, Notification) == before


@pytest.mark.parametrize("kind", KINDS)
def test_where_nobody_is_responsible_nobody_is_told(shared: Served, kind: type[Restorable]) -> None:
    """Neither where the field is null, nor of kinds that have none."""
    row_id = f"{kind.path} alone"
    add_archived(shared, kind, row_id)
    before = stored.rows(shared.database, Notification)
    assert restore(shared, kind, row_id, shared.bearer("editor")).status_code == 200
    assert stored.rows(shared.database, Notification) == before


@pytest.mark.parametrize("kind", WITH_RESPONSIBLE)
def test_a_refused_restore_tells_nobody(shared: Served, kind: type[Restorable]) -> None:
    row_id = add_for(shared, kind, "member-viewer", "refused")
    before = stored.rows(shared.database, Notification)
    for headers, status in (
        (shared.bearer("viewer"), 403),
        (shared.bearer("foreigner"), 404),
        (shared.bearer("editor", scope="read"), 403),
    ):
        assert restore(shared, kind, row_id, headers).status_code == status
    assert stored.rows(shared.database, Notification) == before
    editor = shared.bearer("editor")
    assert [restore(shared, kind, row_id, editor).status_code for _ in range(2)] == [200, 409]
    assert len(stored.rows(shared.database, Notification)) == len(before) + 1


def test_the_notification_is_of_the_records_organization(service: Served) -> None:
    """A user of two organizations reads it in the one that the record belongs to."""
    member = {"id": "also-beta", "organizationId": BETA, "userId": "user-viewer", "role": "editor"}
    service.load({"memberships": [member]})
    row_id = add_for(service, Policy, "member-viewer", "here")
    viewer = service.bearer("viewer")
    here, there = inbox(service, viewer), inbox(service, viewer, BETA)
    assert restore(service, Policy, row_id, service.bearer("owner")).status_code == 200
    assert len(inbox(service, viewer)) == len(here) + 1
    assert inbox(service, viewer, BETA) == there


def test_the_link_leads_to_the_record_whatever_its_id(shared: Served) -> None:
    """An id with a slash, a question mark or a space is percent-encoded in ``url``, and itself in ``entityId``."""
    row_id = "a/b ü?#%"
    add_archived(shared, Policy, row_id, title="T" * 500, slug="s" * 200, approverId="member-viewer")
    assert restore(shared, Policy, row_id, shared.bearer("editor")).status_code == 200
    payload = inbox(shared, shared.bearer("viewer"))[0]["payload"]
    assert payload["entityId"] == row_id
    assert payload["entityLabel"] == "T" * 500
    assert payload["url"] == f"/policies/{quote(row_id, safe='')}/"
