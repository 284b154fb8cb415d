"""The lists of events: of an organization, for its admins, and of one record, for all its members."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from normata.events.checking import event_faults
from normata.events.sealing import seal_all_now
from normata.records.base import Restorable
from normata.records.kinds import Label, Policy
from tests import mostly_sqlite, world
from tests.databases import on_both
from tests.served import Served, refused
from tests.world import ALPHA, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

FILLS: dict[str, str] = import_module("normata.core.schema.migrations.versions.20261124_83_events_of_controls").FILL

KINDS = pytest.mark.parametrize("kind", Restorable.kinds, ids=lambda kind: kind.path)


def page(service: Served, path: str, user: str = "admin", **params: Any) -> dict[str, Any]:
    """A page of a list of events."""
    answer = service.client.get(path, params={"organizationId": ALPHA} | params, headers=service.bearer(user))
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def records(service: Served, **params: Any) -> list[str | None]:
    """The records of the events of alpha, newest first."""
    return [item["recordId"] for item in page(service, "/events/", **params)["items"]]


@pytest.fixture
def busy(service: Served) -> Served:
    """Some things have happened: a load, and three restores by two users."""
    service.load({"labels": [{"id": "loaded", "organizationId": ALPHA, "name": "Loaded"}]})
    for kind, user in ((Label, "editor"), (Policy, "editor"), (Restorable.kinds[0], "owner")):
        path = f"/{kind.path}/{record_id(kind, 'archived')}/restore/"
        assert service.client.post(path, headers=service.bearer(user)).status_code == 200
    path = f"/labels/{record_id(Label, 'archived', BETA)}/restore/"
    assert service.client.post(path, headers=service.bearer("foreigner")).status_code == 200
    return service


@on_both
def test_events_are_listed_newest_first(busy: Served) -> None:
    ids = [record_id(kind, "archived") for kind in (Restorable.kinds[0], Policy, Label)]
    found = page(busy, "/events/")
    assert [item["recordId"] for item in found["items"]] == [*ids, "loaded"]
    assert found["total"] == 4
    assert {item["organizationId"] for item in found["items"]} == {ALPHA}
    assert page(busy, "/events/", limit=5, page=2)["items"] == []
    loaded = found["items"][-1]
    assert (loaded["action"], loaded["command"], loaded["userId"]) == ("load", "normata", None)
    assert (loaded["before"], loaded["after"]["name"]) == (None, "Loaded")
    restored = found["items"][0]
    assert (restored["kind"], restored["userId"]) == (Restorable.kinds[0].path, "user-owner")


@on_both
def test_numbers_in_documents_are_as_exact_as_they_were(service: Served) -> None:
    """Integers of more than 64 bits too; and such an event is sound."""
    headers = service.bearer("admin")
    content = {"n": 36893488147419103233, "long": 10**309 + 1}
    path = f"/policies/{record_id(Policy, 'live')}/"
    assert service.client.patch(path, json={"content": content}, headers=headers).status_code == 200
    for found in (page(service, "/events/"), page(service, f"{path}events/")):
        assert found["items"][0]["after"]["content"] == content
    seal_all_now(service.database)
    assert service.database.read_now(lambda transaction: list(event_faults(transaction))) == []


def test_why_something_was_archived_is_in_its_history(service: Served) -> None:
    """The archive has the last reason only."""
    headers = service.bearer("editor")
    path = f"/labels/{record_id(Label, 'live')}/"
    for reason in ("first", "second"):
        archived = service.client.post(f"{path}archive/", json={"reason": reason}, headers=headers)
        assert archived.status_code == 200
        assert service.client.post(f"{path}restore/", headers=headers).status_code == 200
    told = [(item["action"], item["reason"]) for item in page(service, f"{path}events/")["items"]]
    assert told == [("restore", None), ("archive", "second"), ("restore", None), ("archive", "first")]


@on_both
def test_filters(busy: Served) -> None:
    label, policy, task = (record_id(kind, "archived") for kind in (Label, Policy, Restorable.kinds[0]))
    assert records(busy, kind="labels") == [label, "loaded"]
    assert records(busy, kind="labels", action="restore") == [label]
    assert records(busy, recordId=policy) == [policy]
    assert records(busy, userId="user-editor") == [policy, label]
    assert records(busy, action="load") == ["loaded"]
    times = [item["at"] for item in page(busy, "/events/")["items"]]
    assert records(busy, **{"from": times[0]}) == [task]
    assert records(busy, to=times[0]) == [policy, label, "loaded"]
    assert records(busy, **{"from": times[2], "to": times[0]}) == [policy, label]
    for nothing in ({"kind": "colours"}, {"recordId": "x"}, {"userId": "x"}, {"action": "x"}, {"to": "1999-01-01"}):
        assert records(busy, **nothing) == []


@pytest.mark.parametrize(
    ("name", "value"), [("from", "yesterday"), ("to", "2026-13-01"), ("kind", ""), ("recordId", "")]
)
def test_wrong_filters_are_told(service: Served, name: str, value: str) -> None:
    answer = service.client.get(
        "/events/", params={"organizationId": ALPHA, name: value}, headers=service.bearer("admin")
    )
    [fault] = refused(answer, 400, "validation")["errors"]
    assert fault["name"] == name


def test_only_auditors_and_admins_see_all_events(service: Served) -> None:
    """Others see the history of one row, where every member can read such rows."""
    for user in ("viewer", "editor"):
        answer = service.client.get("/events/", params={"organizationId": ALPHA}, headers=service.bearer(user))
        assert "auditor" in refused(answer, 403, "forbidden")["detail"]
        for kind, status in (("policies", 200), ("controlCoverages", 200), ("memberships", 200), ("invitations", 403)):
            one = {"organizationId": ALPHA, "kind": kind, "recordId": "x"}
            answers = [
                service.client.get("/events/", params=query, headers=service.bearer(user))
                for query in (one, {**one, "recordId": ""}, {"organizationId": ALPHA, "kind": kind})
            ]
            assert [answer.status_code for answer in answers] == [status, 400, 403]
    for user in ("foreigner", "nobody"):
        answer = service.client.get("/events/", params={"organizationId": ALPHA}, headers=service.bearer(user))
        refused(answer, 404, "not_found")


@KINDS
def test_every_record_has_its_history(kind: type[Restorable], service: Served) -> None:
    """Archived and live; of this record alone."""
    found = record_id(kind, "archived")
    path = f"/{kind.path}/{found}/events/"
    assert page(service, path, "viewer")["total"] == 0
    for record in (found, record_id(kind, "archived", BETA)):
        user = "editor" if record == found else "foreigner"
        restored = service.client.post(f"/{kind.path}/{record}/restore/", headers=service.bearer(user))
        assert restored.status_code == 200
    service.load({kind.path: [{"id": found, "archivedAt": world.ARCHIVED}]})
    items = page(service, path, "viewer")["items"]
    assert [(item["action"], item["kind"], item["recordId"]) for item in items] == [
        ("load", kind.path, found),
        ("restore", kind.path, found),
    ]
    assert items[0]["before"]["archivedAt"] is None
    assert items[0]["after"]["archivedAt"] == world.ARCHIVED


@on_both
def test_a_control_has_its_history_across_all_its_assessments(service: Served) -> None:
    """Cleared and made again, also while the framework is not adopted, and whatever its events knew of the control."""
    path, headers = "/controls/sun.A.4/coverage/", service.bearer("admin")
    query = {"organizationId": ALPHA}

    def send(method: str, to: str, body: dict[str, Any] | None = None) -> None:
        named: dict[str, Any] = {"json": query | body} if body is not None else {"params": query}
        assert service.client.request(method, to, headers=headers, **named).is_success

    def history() -> list[tuple[str, Any, Any]]:
        items = page(service, "/controls/sun.A.4/events/", "viewer")["items"]
        notes = [[(one[side] or {}).get("note") for side in ("before", "after")] for one in items]
        return [(item["action"], *note) for item, note in zip(items, notes, strict=True)]

    send("PUT", path, {"coverageStatus": "NONE", "note": "Größe: by hand."})
    send("PATCH", "/controls/coverage/", {"assessments": [{"controlId": "sun.A.4", "note": "By a program."}]})
    send("DELETE", path)
    send("PUT", path, {"coverageStatus": "FULL", "note": "Again."})
    send("PUT", "/controls/sun.A.3/coverage/", {"coverageStatus": "FULL"})
    send("DELETE", path)
    expected = [
        ("clear", "Again.", None),
        ("assess", None, "Again."),
        ("clear", "By a program.", None),
        ("assess", "Größe: by hand.", "By a program."),
        ("assess", None, "Größe: by hand."),
    ]
    assert history() == expected
    assert page(service, "/controls/sun.A.4/events/", "viewer", limit=5)["total"] == 5
    dialect = "sqlite" if service.database.embedded else "postgresql"
    service.sql("UPDATE audit_event SET control_id = NULL", FILLS[dialect])  # as an older version has left them
    assert history() == expected
    send("DELETE", "/frameworks/fw-sun/adoption/")
    assert history() == expected
    other: dict[str, Any] = {"params": {"organizationId": BETA}, "headers": service.bearer("foreigner")}
    refused(service.client.get("/controls/own.A.1/events/", **other), 404, "not_found")
    assert service.client.get("/controls/sun.A.4/events/", **other).json()["total"] == 0
    path = f"/controls/own.A.1/?organizationId={ALPHA}"
    assert service.client.patch(path, json={"name": "Renamed"}, headers=headers).is_success
    [renamed] = page(service, "/controls/own.A.1/events/", "viewer")["items"]
    assert (renamed["kind"], renamed["after"]["name"]) == ("controls", "Renamed")


def test_a_record_that_is_not_there_has_no_history(service: Served) -> None:
    viewer = service.bearer("viewer")
    for path, organization in (
        ("/labels/unknown/events/", ALPHA),
        (f"/labels/{record_id(Label, 'live', BETA)}/events/", ALPHA),
        (f"/labels/{record_id(Policy, 'live')}/events/", ALPHA),
        (f"/labels/{record_id(Label, 'live', BETA)}/events/", BETA),
    ):
        refused(service.client.get(path, params={"organizationId": organization}, headers=viewer), 404, "not_found")


def test_the_checkpoint_is_text_or_json(busy: Served) -> None:
    viewer = busy.bearer("viewer")
    where = {"organizationId": "alpha"}
    as_json = busy.client.get("/events/checkpoint/", params=where, headers=viewer).json()
    text = busy.client.get("/events/checkpoint/", params=where | {"format": "text"}, headers=viewer)
    by_header = busy.client.get("/events/checkpoint/", params=where, headers=viewer | {"Accept": "text/plain"})
    assert text.headers["content-type"] == by_header.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.text.startswith(f"normata/{ALPHA}\n")
    assert as_json["origin"] == f"normata/{ALPHA}"
    assert as_json["note"].startswith(f"normata/{ALPHA}\n{as_json['size']}\n")


@on_both
def test_what_an_older_version_called_an_action_is_found_by_its_name_of_today(service: Served) -> None:
    """The event keeps the name that was sealed."""
    path, body = "/controls/moon.A.5/coverage/", {"organizationId": ALPHA, "coverageStatus": "FULL"}
    assert service.client.put(path, json=body, headers=service.bearer("editor")).status_code == 200
    service.sql("UPDATE audit_event SET action = 'state' WHERE action = 'assess'")
    assert service.client.put(path, json=body | {"coverageStatus": "NONE"}, headers=service.bearer("editor")).is_success
    found = [item["action"] for item in page(service, "/events/", action="assess")["items"]]
    assert found == ["assess", "state"]
    assert [item["action"] for item in page(service, "/events/", action="state")["items"]] == ["state"]
