"""Who owns a record by a link is responsible for it, where its kind has no column for that."""

from __future__ import annotations

from typing import Any

import pytest

from normata.links.model import Link
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Finding, Label
from tests import stored
from tests.databases import on_both
from tests.records.living import make
from tests.records.test_due import in_days
from tests.served import Served, refused
from tests.world import ALPHA

VIEWER, ADMIN, EDITOR = "member-viewer", "member-admin", "member-editor"
LINKED = [pytest.param(kind, id=kind.path) for kind in Restorable.kinds if kind.responsible is None]


def owned(service: Served, *members: str, kind: type[Restorable] = Finding, **values: Any) -> str:
    """A record that an editor has made, and then linked with its owners."""
    editor = service.bearer("editor")
    made = make(service, kind, editor, **{kind.title_column(): "Something"} | values).json()
    for member in members:
        link = {"from": {"kind": "memberships", "id": member}, "to": {"kind": kind.path, "id": made["id"]}}
        body = {"organizationId": ALPHA, "relation": "OWNS", **link}
        assert service.client.post("/links/", json=body, headers=editor).status_code == 201
    return str(made["id"])


def due(service: Served, row_id: str, user: str = "viewer", **query: str) -> list[dict[str, Any]]:
    """What is due of a record."""
    return [item for item in service.listing("/due/", user).items(**query) if item["id"] == row_id]


def told(service: Served, row_id: str) -> list[tuple[str, str]]:
    """Who was told what of a record, in order."""
    rows = stored.rows(service.database, Notification)
    found = [row for row in rows if row["payload"]["entityId"] == row_id]
    return [(row["user_id"], row["type"]) for row in sorted(found, key=lambda row: (row["created_at"], row["user_id"]))]


@on_both
def test_all_owners_are_responsible_and_the_first_is_named(service: Served) -> None:
    row_id = owned(service, VIEWER, ADMIN, deadline=in_days(1))
    assert [item["responsible"] for item in due(service, row_id)] == [{"memberId": VIEWER, "name": "Viewer"}]
    for user, number in (("viewer", 1), ("admin", 1), ("owner", 0)):
        assert len(due(service, row_id, user, mine="true")) == number
    assert service.client.delete(f"/members/{VIEWER}/", headers=service.bearer("owner")).is_success
    assert [item["responsible"] for item in due(service, row_id, "owner")] == [{"memberId": ADMIN, "name": "Admin"}]


def test_nobody_is_responsible_by_another_relation_or_a_removed_link(service: Served) -> None:
    row_id, editor = owned(service, VIEWER, deadline=in_days(1)), service.bearer("editor")
    [link] = stored.rows(service.database, Link, to_id=row_id)
    assert service.client.delete(f"/links/{link['id']}/", headers=editor).is_success
    related = {"from": {"kind": "memberships", "id": ADMIN}, "to": {"kind": "auditItems", "id": row_id}}
    body = {"organizationId": ALPHA, "relation": "RELATES", **related}
    assert service.client.post("/links/", json=body, headers=editor).is_success
    assert [item["responsible"] for item in due(service, row_id)] == [None]
    assert due(service, row_id, "viewer", mine="true") == due(service, row_id, "admin", mine="true") == []


@on_both
@pytest.mark.parametrize("kind", LINKED)
def test_a_list_has_what_a_member_owns(kind: type[Restorable], service: Served) -> None:
    title = kind.title_column()
    first, second = (owned(service, VIEWER, kind=kind, **{title: name}) for name in ("First one", "Second one"))
    both = owned(service, VIEWER, ADMIN, kind=kind, **{title: "Third one"})
    other = owned(service, EDITOR, kind=kind)
    removed = owned(service, VIEWER, kind=kind)
    [link] = stored.rows(service.database, Link, to_id=removed)
    assert service.client.delete(f"/links/{link['id']}/", headers=service.bearer("editor")).is_success
    listing = service.listing(f"/{kind.path}/")
    assert listing.ids(ownerId=VIEWER) == [both, second, first]
    assert listing.ids(ownerId=VIEWER, sortColumn=title, sortDirection="desc") == [both, second, first]
    assert listing.ids(ownerId=VIEWER, search="second") == [second]
    assert listing.ids(ownerId=[ADMIN, "nobody"]) == [both]
    assert {first, second, both, other} <= set(listing.ids(ownerId=[VIEWER, EDITOR]))
    assert service.client.post(f"/{kind.path}/{both}/archive/", headers=service.bearer("editor")).is_success
    assert listing.ids(ownerId=VIEWER) == [second, first]
    assert listing.ids(ownerId=VIEWER, archived="include") == [both, second, first]
    assert [fault for fault, _ in listing.faults(ownerId=["x"] * 101)] == ["ownerId"]


@pytest.mark.parametrize("kind", LINKED)
def test_owners_are_told_what_others_do(kind: type[Restorable], service: Served) -> None:
    row_id, editor = owned(service, VIEWER, EDITOR, kind=kind), service.bearer("editor")
    for action in ("archive", "restore"):
        assert service.client.post(f"/{kind.path}/{row_id}/{action}/", headers=editor).is_success
    types = [f"record.{did}" for did in ("assigned", "archived", "restored")]
    assert told(service, row_id) == [("user-viewer", one) for one in types]


def test_a_member_with_a_column_is_responsible_and_nobody_else(service: Served) -> None:
    """A link to a record whose kind has such a column says something, and changes nothing."""
    task = next(kind for kind in Restorable.kinds if kind.path == "tasks")
    row_id = owned(service, VIEWER, kind=task, deadline=in_days(1), assigneeMemberId=ADMIN)
    assert due(service, row_id, "viewer", mine="true") == []
    assert told(service, row_id) == [("user-admin", "record.assigned")]


@on_both
def test_what_somebody_owns_is_handed_over(service: Served) -> None:
    """The link of the one who leaves is removed, and one of the other made, unless there is one."""
    service.sql("UPDATE task SET assignee_member_id = NULL")
    admin, path = service.bearer("admin"), f"/members/{VIEWER}/"
    first, both = owned(service, VIEWER), owned(service, VIEWER, ADMIN)
    label = owned(service, VIEWER, kind=Label)
    listed = service.client.get(f"{path}responsibilities/", params={"organizationId": ALPHA}, headers=admin).json()
    assert {(one["kind"], one["id"], one["field"]) for one in listed["items"]} == {
        ("auditItems", first, "OWNS"),
        ("auditItems", both, "OWNS"),
        ("labels", label, "OWNS"),
    }
    as_auditor = service.client.patch(path, json={"role": "auditor"}, headers=admin)
    refused(as_auditor, 409, "has_responsibilities")
    assert service.client.delete(path, headers=admin).json()["responsibilities"] == {"auditItems": 2, "labels": 1}
    body = {"toMemberId": ADMIN, "kinds": ["auditItems"]}
    handed = service.client.post(f"{path}handover/", json=body, headers=service.bearer("editor")).json()
    assert handed == {"records": {"auditItems": 2}, "more": False, "left": 0}
    for row_id in (first, both):
        links = stored.rows(service.database, Link, to_id=row_id)
        assert {link["from_id"]: link["removed_at"] is None for link in links} == {VIEWER: False, ADMIN: True}
    assert ("user-admin", "record.assigned") in told(service, first)
    [left] = [row for row in stored.rows(service.database, Link, to_id=label) if row["removed_at"] is None]
    assert left["from_id"] == VIEWER
