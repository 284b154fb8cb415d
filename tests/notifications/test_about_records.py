"""Who is told that a record was assigned to them, or archived: the member who answers for it, unless they did it."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import Response

from normata.core.changes.unit_of_work import Actor, Change, UnitOfWork
from normata.notifications.model import Notification
from normata.notifications.subscriber import RULES, NotifyMembers
from normata.records.base import Restorable
from normata.records.kinds import Task
from tests import stored
from tests.databases import change, on_both
from tests.notifications.test_subscriber import RESPONSIBLE, WITH_RESPONSIBLE, inbox
from tests.records.restoring import Row
from tests.served import Headers, Served
from tests.world import ALPHA

every = pytest.mark.parametrize("kind", WITH_RESPONSIBLE)
VIEWER, ADMIN, OWNER = "member-viewer", "member-admin", "member-owner"


def made(service: Served, kind: type[Restorable], headers: Headers, **values: Any) -> Row:
    """A record that a request has made."""
    body = {"organizationId": ALPHA, kind.title_column(): "Something", **values}
    return answer(service.client.post(f"/{kind.path}/", json=body, headers=headers))


def patched(service: Served, kind: type[Restorable], row_id: str, headers: Headers, **values: Any) -> Row:
    """A record that a request has changed."""
    return answer(service.client.patch(f"/{kind.path}/{row_id}/", json=values, headers=headers))


def answer(response: Response) -> Row:
    """The body of a success."""
    assert response.is_success, response.text
    return dict(response.json())


def told(service: Served, user: str, row_id: str) -> list[Row]:
    """What a user is told of a record, oldest first."""
    items = inbox(service, service.bearer(user, scope="read"))
    return [item for item in reversed(items) if item["payload"]["entityId"] == row_id]


@every
def test_whoever_is_to_answer_is_told_once(kind: type[Restorable], shared: Served) -> None:
    """On creation and on a change, and the new one alone; a change of something else is not their news."""
    admin, responsible = shared.bearer("admin"), RESPONSIBLE[kind.path][0]
    record = made(shared, kind, admin, **{responsible: VIEWER})
    (first,) = told(shared, "viewer", record["id"])
    assert (first["type"], first["category"], first["readAt"]) == ("record.assigned", RESPONSIBLE[kind.path][1], None)
    assert first["payload"]["params"] == {"label": "Something", "assignedBy": "Admin"}
    patched(shared, kind, record["id"], admin, **{kind.title_column(): "Other"})
    assert len(told(shared, "viewer", record["id"])) == 1
    patched(shared, kind, record["id"], admin, **{responsible: OWNER})
    patched(shared, kind, record["id"], admin, **{responsible: None})
    assert [item["payload"]["params"]["label"] for item in told(shared, "owner", record["id"])] == ["Other"]
    assert len(told(shared, "viewer", record["id"])) == 1
    patched(shared, kind, record["id"], admin, **{responsible: ADMIN})
    assert told(shared, "admin", record["id"]) == []


@every
def test_an_archive_is_told_and_each_link_leads_to_the_record(kind: type[Restorable], shared: Served) -> None:
    """Assigned, archived, restored: each for whoever got it, with a token that only reads."""
    admin, responsible = shared.bearer("admin"), RESPONSIBLE[kind.path][0]
    record = made(shared, kind, admin, **{responsible: VIEWER})
    for action in ("archive", "restore"):
        shared.client.post(f"/{kind.path}/{record['id']}/{action}/", headers=admin).raise_for_status()
    found = told(shared, "viewer", record["id"])
    assert [item["type"] for item in found] == ["record.assigned", "record.archived", "record.restored"]
    assert found[1]["payload"]["params"] == {"label": "Something", "archivedBy": "Admin"}
    viewer = shared.bearer("viewer", scope="read")
    for item in found:
        there = shared.client.get(item["payload"]["url"], params={"organizationId": ALPHA}, headers=viewer)
        assert (there.status_code, there.json()["id"]) == (200, record["id"])


@every
def test_nobody_is_told_of_what_they_archived_themselves(kind: type[Restorable], shared: Served) -> None:
    admin = shared.bearer("admin")
    record = made(shared, kind, admin, **{RESPONSIBLE[kind.path][0]: ADMIN})
    shared.client.post(f"/{kind.path}/{record['id']}/archive/", headers=admin).raise_for_status()
    assert told(shared, "admin", record["id"]) == []


def test_a_load_assigns_without_a_word(service: Served) -> None:
    """Thousands of records of another system are nobody's news."""
    before = stored.rows(service.database, Notification)
    service.load({"tasks": [{"id": "loaded", "organizationId": ALPHA, "title": "T", "assigneeMemberId": VIEWER}]})
    assert stored.rows(service.database, Notification) == before
    row = stored.row(service.database, Task, "loaded")

    def work(unit: UnitOfWork) -> None:
        NotifyMembers(RULES)(unit, [Change("create", Task, ALPHA, "loaded", row)], Actor(command="load"), unit.moment)

    change(service.database, work)
    assert stored.rows(service.database, Notification) == before


@on_both
def test_what_a_unit_of_work_changes_twice_is_told_once(service: Served) -> None:
    service.load({"tasks": [{"id": "twice", "organizationId": ALPHA, "title": "T", "assigneeMemberId": VIEWER}]})
    row = stored.row(service.database, Task, "twice")
    nobody = row | {"assignee_member_id": None}
    somebody = Actor("user-editor", "Editor", "token", "request")

    def work(unit: UnitOfWork) -> None:
        twice = [Change("update", Task, ALPHA, "twice", row, nobody) for _ in range(2)]
        archived = [Change("archive", Task, ALPHA, "twice", row, row)]
        NotifyMembers(RULES)(unit, [*twice, *archived, *twice], somebody, unit.moment)

    change(service.database, work)
    types = sorted(item["type"] for item in told(service, "viewer", "twice"))
    assert types == ["record.archived", "record.assigned"]


@on_both
def test_of_many_that_are_archived_at_once_each_is_told(service: Served) -> None:
    """And restored by one undo; a trial tells whom it would tell, and tells nobody."""
    editor = service.bearer("editor")
    made_now = [made(service, Task, editor, assigneeMemberId=VIEWER)["id"] for _ in range(3)]
    body = {"organizationId": ALPHA, "records": [{"kind": "tasks", "id": row_id} for row_id in made_now]}
    before = stored.rows(service.database, Notification)
    trial = answer(service.client.post("/archive/", params={"dryRun": "true"}, json=body, headers=editor))
    assert [(one["userId"], one["type"]) for one in trial["notifications"]] == [("user-viewer", "record.archived")] * 3
    assert stored.rows(service.database, Notification) == before
    for path in ("/archive/", "/archive/restore/"):
        answer(service.client.post(path, json=body, headers=editor))
    for row_id in made_now:
        types = [item["type"] for item in told(service, "viewer", row_id)]
        assert types == ["record.assigned", "record.archived", "record.restored"]
