"""Members over HTTP: the list, roles, leaving, and what is left to hand over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.core.changes.references import references_of
from normata.core.schema.table import sql_table
from normata.frameworks.model import ControlCoverage
from normata.identity.model import Membership
from normata.identity.sessions import sessions
from normata.identity.sign_in_model import Session
from normata.notifications import reminders
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Finding, Task
from normata.records.responsibilities import handover as responsibilities
from normata.records.responsibilities.handover import counted_columns
from normata.tables import Table
from normata.wiring import changes_of
from tests import stored
from tests.databases import change, on_both
from tests.served import Headers, Served, refused, served
from tests.world import ALPHA, record_id

QUERY = {"organizationId": ALPHA}
TABLES: list[type[Table]] = [mapper.class_ for mapper in Table.registry.mappers]


def admin(service: Served, user: str = "admin") -> Headers:
    """The header of a token that may manage people."""
    return service.bearer(user, scope="admin")


def test_members_are_listed_by_name(service: Served) -> None:
    answer = service.client.get("/members/", params=QUERY, headers=service.bearer("viewer"))
    assert [(item["id"], item["name"], item["role"]) for item in answer.json()["items"]] == [
        *((f"member-{role}", role.title(), role) for role in ("admin", "auditor", "editor", "owner")),
        ("member-robot-org-alpha", "Robot org-alpha", "editor"),
        ("member-viewer", "Viewer", "viewer"),
    ]
    assert answer.json()["items"][0]["email"] == "admin@alpha.example"


def test_a_role_is_changed(service: Served) -> None:
    headers = admin(service)
    before = service.client.get("/members/member-viewer/", params=QUERY, headers=headers)
    patch = {"role": "editor"}
    stale = service.client.patch("/members/member-viewer/", json=patch, headers=headers | {"If-Match": '"nonsense"'})
    refused(stale, 412, "precondition_failed")
    answer = service.client.patch(
        "/members/member-viewer/", json=patch, headers=headers | {"If-Match": before.headers["etag"]}
    )
    assert (answer.status_code, answer.json()) == (200, before.json() | patch)
    (event,) = stored.events(service.database, entity_id="member-viewer")
    assert (event["action"], event["organization_id"]) == ("update", ALPHA)
    again = service.client.get("/members/member-viewer/", params=QUERY, headers=headers)
    assert (again.json(), again.headers["etag"]) == (answer.json(), answer.headers["etag"])


@pytest.mark.parametrize(
    ("user", "member", "role"),
    [
        ("admin", "member-owner", "viewer"),  # who has a larger role
        ("admin", "member-viewer", "owner"),  # gets a larger one
        ("admin", "member-admin", "owner"),  # gives it to themselves
        ("editor", "member-viewer", "viewer"),
        ("viewer", "member-viewer", "admin"),
    ],
)
def test_nobody_gives_or_takes_a_larger_role_than_their_own(service: Served, user: str, member: str, role: str) -> None:
    response = service.client.patch(f"/members/{member}/", json={"role": role}, headers=admin(service, user))
    refused(response, 403, "forbidden")


def test_nobody_removes_who_has_a_larger_role(service: Served) -> None:
    for user, member in (("admin", "member-owner"), ("editor", "member-viewer"), ("viewer", "member-editor")):
        refused(service.client.delete(f"/members/{member}/", headers=admin(service, user)), 403, "forbidden")
    assert all(row["removed_at"] is None for row in stored.rows(service.database, Membership))


@on_both
def test_the_last_owner_stays(service: Served) -> None:
    headers = admin(service, "owner")
    refused(service.client.delete("/members/member-owner/", headers=headers), 409, "last_owner")
    response = service.client.patch("/members/member-owner/", json={"role": "admin"}, headers=headers)
    refused(response, 409, "last_owner")
    assert service.client.patch("/members/member-admin/", json={"role": "owner"}, headers=headers).is_success
    assert service.client.delete("/members/member-owner/", headers=headers).is_success
    refused(service.client.get("/members/", params=QUERY, headers=headers), 404, "not_found")


@on_both
def test_everybody_may_leave(service: Served) -> None:
    headers = admin(service, "viewer")
    response = service.client.delete("/members/member-viewer/", headers=headers)
    assert response.status_code == 200, response.text
    refused(service.client.get("/members/", params=QUERY, headers=headers), 404, "not_found")


@on_both
def test_removing_ends_everything_at_once(service: Served) -> None:
    """The sessions of the user, and what is narrowed to the organization; other tokens see it no more."""
    service.load(
        {
            "organizations": [{"id": "org-more", "name": "More"}],
            "memberships": [{"id": "more", "organizationId": "org-more", "userId": "user-editor"}],
        }
    )
    own = service.bearer("editor")
    narrowed = service.bearer("editor", organization=ALPHA)
    elsewhere = service.bearer("editor", organization="org-more")
    changes_of(service.database).make_now(
        lambda unit: sessions.begin(unit, "user-editor", "link", address="192.0.2.7", user_agent="a browser")
    )
    answer = service.client.delete("/members/member-editor/", headers=service.bearer("admin"))
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["member"]["removedAt"] is not None
    assert told["responsibilities"]["tasks"] == 1
    refused(service.client.get("/members/", params=QUERY, headers=own), 404, "not_found")
    for headers in (own, elsewhere):
        assert service.client.get("/members/", params={"organizationId": "org-more"}, headers=headers).is_success
    refused(service.client.get("/me/", headers=narrowed), 401, "unauthenticated")
    ended = stored.rows(service.database, Session, user_id="user-editor")
    assert ended
    assert all(row["ended_at"] is not None for row in ended)
    assert stored.row(service.database, Session, "session-viewer")["ended_at"] is None
    again = service.client.delete("/members/member-editor/", headers=service.bearer("admin"))
    assert again.json() == told
    events = [(event["action"], event["entity_type"]) for event in stored.events(service.database)]
    assert set(events) == {("end", "Session"), ("remove", "Membership"), ("revoke", "AccessToken")}
    assert all(event["organization_id"] == ALPHA for event in stored.events(service.database))
    # Where somebody signed in from is nothing that an organization should know.
    assert not any("192.0.2.7" in event["body"] for event in stored.events(service.database))


@pytest.mark.parametrize("leaving", ["removed", "made a viewer", "gone by themselves"])
def test_nobody_comes_back_by_their_own_invitation(service: Served, leaving: str) -> None:
    """Whoever makes one knows its link."""
    wanted = {"organizationId": ALPHA, "email": "friend@example.org", "role": "admin"}
    made = service.client.post("/invitations/", json=wanted, headers=admin(service)).json()
    other = wanted | {"email": "other@example.org"}
    kept = service.client.post("/invitations/", json=other, headers=admin(service, "owner")).json()
    if leaving == "made a viewer":
        change = {"role": "viewer"}
        answer = service.client.patch("/members/member-admin/", json=change, headers=admin(service, "owner"))
    else:
        who = "owner" if leaving == "removed" else "admin"
        answer = service.client.delete("/members/member-admin/", headers=admin(service, who))
    assert answer.status_code == 200, answer.text
    for invitation, is_open in ((made, False), (kept, True)):
        path = f"/invitations/{invitation['id']}/?organizationId={ALPHA}"
        found = service.client.get(path, headers=admin(service, "owner")).json()
        assert (found["revokedAt"] is None) is is_open


def test_a_kept_page_is_of_no_use_to_who_was_removed(service: Served) -> None:
    """Not in this process, not in another one, and not by what the client has kept."""
    headers = service.bearer("editor")
    with served(service.url) as other:
        kept = [one.client.get("/frameworks/", params=QUERY, headers=headers) for one in (service, other) * 2]
        assert {answer.status_code for answer in kept} == {200}
        tag = {"If-None-Match": kept[0].headers["etag"]}
        assert service.client.get("/frameworks/", params=QUERY, headers=headers | tag).status_code == 304
        assert service.client.delete("/members/member-editor/", headers=service.bearer("admin")).is_success
        for one in (service, other):
            for more in ({}, tag):
                answer = one.client.get("/frameworks/", params=QUERY, headers=headers | more)
                refused(answer, 404, "not_found")


def test_who_was_removed_is_still_named(service: Served) -> None:
    """Records name them, so they can be looked up; but they are in no list that does not ask for them."""
    headers = service.bearer("admin")
    assert service.client.delete("/members/member-editor/", headers=headers).is_success
    member = service.client.get("/members/member-editor/", params=QUERY, headers=headers).json()
    assert (member["name"], member["removedAt"] is None) == ("Editor", False)
    for removed, listed in (("exclude", False), ("include", True), ("only", True)):
        answer = service.client.get("/members/", params={**QUERY, "removed": removed}, headers=headers).json()
        assert ("member-editor" in [item["id"] for item in answer["items"]]) == listed
    response = service.client.patch("/members/member-editor/", json={"role": "admin"}, headers=headers)
    refused(response, 409, "member_removed")


@on_both
def test_two_owners_cannot_go_at_once(service: Served) -> None:
    """Each would leave the other one; but one of them is the last."""
    service.sql("UPDATE membership SET role = 'owner' WHERE id = 'member-admin'")
    headers = [service.bearer(user) for user in ("owner", "admin")]
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(
            lambda one: service.client.delete(f"/members/member-{one[0]}/", headers=one[1]),
            zip(("owner", "admin"), headers, strict=True),
        )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


# --- What they answer for


def test_what_a_member_answers_for_is_listed(service: Served) -> None:
    headers = service.bearer("viewer")
    path = "/members/member-editor/responsibilities/"
    answer = service.client.get(path, params=QUERY, headers=headers).json()
    kinds = [kind for kind in Restorable.kinds if kind.responsible is not None]
    named = {(item["kind"], item["id"], item["field"]) for item in answer["items"]}
    owned = (Finding.path, record_id(Finding, "live"), "OWNS")
    assert named == {(kind.path, record_id(kind, "live"), to_camel(str(kind.responsible))) for kind in kinds} | {owned}
    assert answer["total"] == len(named)
    for member in ("member-foreigner", "member-nobody"):
        response = service.client.get(f"/members/{member}/responsibilities/", params=QUERY, headers=headers)
        refused(response, 404, "not_found")


def test_every_column_that_names_a_member_counts() -> None:
    """Of every table: one that is added tomorrow must not be forgotten."""
    naming = {
        (str(table.__tablename__), name)
        for table in TABLES
        for name, target in references_of(table)
        if target == Membership.__tablename__ and "set_by" not in sql_table(table).c[name].info
    }
    # Of a version one is named for good: it cannot be changed, and a draft whose approver has left stays one. Nor does
    # anybody else become who has written a comment, recorded an outcome, answered a question, decided, or made a link.
    for_good = {("soa_version", "approver_id"), ("comment", "author_id"), ("risk_review_outcome", "recorded_by_id")}
    for_good |= {("vendor_answer", "answered_by_id"), ("entitlement_review_item", "decided_by_id")}
    for_good.add(("vendor_link", "created_by_id"))
    # Nor is anybody else the person whom a provider maintains.
    for_good |= {(table, "membership_id") for table in ("provisioned_person", "provisioned_group_member")}
    assert naming - for_good == counted_columns()
    assert naming >= {("task", "assignee_member_id"), ("control_coverage", "owner_id")}


def test_it_is_handed_over_by_the_rules_of_a_patch(service: Served) -> None:
    """With an event for each record, and a message to who takes over. A finding gets another link."""
    headers = service.bearer("admin")
    assert service.client.delete("/members/member-editor/", headers=headers).is_success
    path, kinds = "/members/member-editor/handover/", [kind for kind in Restorable.kinds if kind.responsible]
    some = service.client.post(path, json={"toMemberId": "member-viewer", "kinds": ["tasks"]}, headers=headers)
    assert some.json() == {"records": {"tasks": 1}, "more": False, "left": 0}
    rest = service.client.post(path, json={"toMemberId": "member-viewer"}, headers=headers).json()
    paths = {kind.path for kind in kinds} | {Finding.path}
    assert rest["records"] == dict.fromkeys(paths - {"tasks"}, 1)
    left = service.client.get("/members/member-editor/responsibilities/", params=QUERY, headers=headers).json()
    assert left["total"] == 0
    for kind in kinds:
        row = stored.row(service.database, kind, record_id(kind, "live"))
        assert row[str(kind.responsible)] == "member-viewer"
    updates = [event for event in stored.events(service.database) if event["action"] == "update"]
    assert {event["entity_id"] for event in updates} == {record_id(kind, "live") for kind in kinds}
    notes = [row for row in stored.rows(service.database, Notification) if row["type"] == "record.assigned"]
    assert len(notes) == len(kinds) + 1
    links = [event for event in stored.events(service.database) if event["entity_type"] == "Link"]
    assert [(event["action"], event["user_id"]) for event in links] == [
        (did, "user-admin") for did in ("delete", "create")
    ]
    assert {note["user_id"] for note in notes} == {"user-viewer"}


@on_both
def test_assessments_are_handed_over_too(service: Served) -> None:
    """By their controls, with an event of the assessment and a message; the rest of the assessment stays."""
    headers, body = service.bearer("admin"), {"toMemberId": "member-viewer", "kinds": ["controls"]}
    say = {**QUERY, "coverageStatus": "PARTIAL", "note": "By badge.", "ownerId": "member-editor"}
    said = service.client.put("/controls/sun.A.1/coverage/", json=say, headers=headers).json()
    path, control = "/members/member-editor/", said["control"]
    listed = service.client.get(f"{path}responsibilities/", params=QUERY, headers=headers).json()
    assert [item for item in listed["items"] if item["kind"] == "controls"] == [
        {
            "kind": "controls",
            "id": "sun.A.1",
            "label": f"{control['identifier']} {control['name']}",
            "field": "ownerId",
        }
    ]
    assert service.client.delete(path, headers=headers).json()["responsibilities"]["controls"] == 1
    answer = service.client.post(f"{path}handover/", json=body, headers=headers)
    assert answer.json() == {"records": {"controls": 1}, "more": False, "left": 0}
    (row,) = stored.rows(service.database, ControlCoverage, organization_id=ALPHA, control_id="sun.A.1")
    assert (row["owner_id"], row["coverage_status"], row["note"]) == ("member-viewer", "PARTIAL", "By badge.")
    assert row["assessed_at"] == said["coverage"]["assessedAt"]
    assessed = [event["entity_id"] for event in stored.events(service.database) if event["action"] == "assess"]
    assert assessed == [row["id"]] * 2
    told = [one["user_id"] for one in stored.rows(service.database, Notification) if one["type"] == "record.assigned"]
    assert told == ["user-editor", "user-viewer"]
    assert service.client.post(f"{path}handover/", json=body, headers=headers).json()["records"] == {}


def test_assessments_of_what_was_left_are_not_counted(service: Served) -> None:
    """Nobody could see or change them."""
    headers = service.bearer("admin")
    say = {**QUERY, "coverageStatus": "PARTIAL", "ownerId": "member-editor"}
    assert service.client.put("/controls/sun.A.1/coverage/", json=say, headers=headers).is_success
    service.sql("DELETE FROM framework_adoption WHERE framework_id = 'fw-sun'")
    told = service.client.delete("/members/member-editor/", headers=headers).json()
    assert "controls" not in told["responsibilities"]
    body = {"toMemberId": "member-viewer", "kinds": ["controls"]}
    answer = service.client.post("/members/member-editor/handover/", json=body, headers=headers)
    assert answer.json() == {"records": {}, "more": False, "left": 0}


@on_both
def test_it_is_handed_over_in_parts(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responsibilities, "MAX_AT_ONCE", 2)
    headers = service.bearer("admin")
    answers: list[dict[str, Any]] = []
    while not answers or answers[-1]["more"]:
        response = service.client.post(
            "/members/member-editor/handover/", json={"toMemberId": "member-viewer"}, headers=headers
        )
        answers.append(response.json())
    total = sum(1 for kind in Restorable.kinds if kind.responsible or kind is Finding)
    assert [sum(answer["records"].values()) for answer in answers[:-1]] == [2] * (len(answers) - 1)
    assert sum(sum(answer["records"].values()) for answer in answers) == total


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"toMemberId": "member-foreigner"}, ["toMemberId"]),
        ({"toMemberId": "member-editor"}, ["toMemberId"]),
        ({"toMemberId": "nobody", "kinds": ["tasks", "files"]}, ["kinds", "toMemberId"]),
    ],
)
def test_a_handover_to_nobody_is_refused(service: Served, body: dict[str, Any], names: list[str]) -> None:
    response = service.client.post("/members/member-editor/handover/", json=body, headers=service.bearer("editor"))
    assert sorted(fault["name"] for fault in refused(response, 400, "validation")["errors"]) == names


# --- Who was removed is nobody to name, and nobody to tell


def test_no_record_names_who_was_removed_anew(service: Served) -> None:
    """But one that does already may be changed otherwise; and a bundle may hold what is history."""
    headers = service.bearer("admin")
    service.load({"tasks": [{"id": "old", "organizationId": ALPHA, "title": "Old"}]})
    assert service.client.delete("/members/member-editor/", headers=headers).is_success
    new = {"organizationId": ALPHA, "title": "New", "assigneeMemberId": "member-editor"}
    for response in (
        service.client.post("/tasks/", json=new, headers=headers),
        service.client.patch("/tasks/old/", json={"assigneeMemberId": "member-editor"}, headers=headers),
        service.client.post("/members/member-admin/handover/", json={"toMemberId": "member-editor"}, headers=headers),
    ):
        (fault,) = refused(response, 400, "validation")["errors"]
        assert fault["name"] in ("assigneeMemberId", "toMemberId")
    live = record_id(Task, "live")
    assert service.client.patch(f"/tasks/{live}/", json={"title": "Changed"}, headers=headers).is_success
    service.load({"tasks": [{"id": "new", **new}]})


def test_nothing_is_told_to_who_was_removed(service: Served) -> None:
    """Neither of what happens to their records, nor of their dates: until somebody has taken over."""
    headers = service.bearer("admin")
    service.load(
        {
            "tasks": [
                {
                    "id": "due",
                    "organizationId": ALPHA,
                    "title": "Due",
                    "assigneeMemberId": "member-editor",
                    "deadline": "2026-06-15T16:00:00.000Z",
                }
            ]
        }
    )
    assert service.client.delete("/members/member-editor/", headers=headers).is_success
    before = len(stored.rows(service.database, Notification))
    assert service.client.post("/tasks/due/archive/", headers=headers).is_success
    assert service.client.post("/tasks/due/restore/", headers=headers).is_success

    def remind() -> int:
        return change(service.database, lambda unit: reminders.remind(unit, ALPHA, "2026-06-15T12:00:00.000Z"))

    assert remind() == 0
    assert len(stored.rows(service.database, Notification)) == before
    body = {"toMemberId": "member-viewer", "kinds": ["tasks"]}
    assert service.client.post("/members/member-editor/handover/", json=body, headers=headers).is_success
    assert remind() == 1
