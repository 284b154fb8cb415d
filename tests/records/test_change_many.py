"""The same fields of many records in one change: all or none, tried first, and undone by one id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Response

from normata.records.base import Restorable
from normata.records.fields import fields_of
from normata.records.kinds import Asset, EntitlementReview, Task
from tests import mostly_sqlite, stored
from tests.databases import on_both
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


def bearer(service: Served, user: str) -> dict[str, str]:
    """The header with a token of a user; always the same, since to make one is a change, too."""
    if user not in service._readers:
        service._readers[user] = service.bearer(user)
    return service._readers[user]


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


def send(
    service: Served, path: str = "/changes/", *, user: str = "editor", params: Any = None, **body: Any
) -> Response:
    """The answer to a request about alpha."""
    names = {"organizationId": ALPHA}
    return service.client.post(path, json=names | body, params=params, headers=bearer(service, user))


def tasks(service: Served, *titles: str) -> list[dict[str, str]]:
    """New tasks, as a request names them."""
    made = []
    for title in titles:
        answer = service.client.post(
            "/tasks/", json={"organizationId": ALPHA, "title": title}, headers=bearer(service, "editor")
        )
        made.append({"kind": "tasks", "id": answer.json()["id"]})
    return made


def now(service: Served, record: dict[str, str]) -> dict[str, Any]:
    """A record as the interface has it."""
    path, query = f"/{record['kind']}/{record['id']}/", {"organizationId": ALPHA}
    found: dict[str, Any] = service.client.get(path, params=query, headers=bearer(service, "viewer")).json()
    return found


@on_both
def test_one_change_of_many_is_tried_made_and_undone(service: Served) -> None:
    for user in ("owner", "viewer", "foreigner"):
        bearer(service, user)
    one, two, three = records = tasks(service, "One", "Two", "Three")
    asset = {"kind": "assets", "id": record_id(Asset, "live")}
    assert send(service, records=[two], values={"status": "BLOCKED"}).status_code == 200
    values = {"status": "BLOCKED", "assigneeMemberId": "member-owner", "deadline": "2027-01-02", "description": "All."}

    before = stored.everything(service.database)
    tried = send(service, records=records, values=values, params={"dryRun": "true"}).json()["answer"]
    assert stored.everything(service.database) == before
    assert (tried["changed"], tried["unchanged"]) == (3, 0)
    assert tried["records"][1] == {
        **two,
        "label": "Two",
        "before": {"assigneeMemberId": None, "deadline": None, "description": None},
        "after": {
            "assigneeMemberId": "member-owner",
            "deadline": "2027-01-02T00:00:00.000Z",
            "description": "All.",
        },
    }

    made = send(service, records=records, values=values).json()
    assert made["records"] == tried["records"]
    assert all(now(service, record)["status"] == "BLOCKED" for record in records)
    events = [event for event in stored.events(service.database) if event["request_id"] in made["changeId"]]
    assert [(event["action"], event["entity_type"]) for event in events] == [("update", "Task")] * 3
    again = send(service, records=records, values=values).json()
    assert (again["changeId"], again["changed"], again["unchanged"]) == (None, 0, 3)

    # What was changed again since stays: a field of the second, and the third, which is archived.
    headers = bearer(service, "owner")
    service.client.patch(f"/tasks/{two['id']}/", json={"description": "Mine."}, headers=headers)
    service.client.post(f"/tasks/{three['id']}/archive/", headers=headers)
    undone = send(service, "/changes/undo/", changeId=made["changeId"]).json()
    assert [record["id"] for record in undone["records"]] == [one["id"], two["id"]]
    found = [now(service, record) for record in records]
    assert [(task["status"], task["deadline"], task["description"]) for task in found] == [
        ("TODO", None, None),
        ("BLOCKED", None, "Mine."),
        ("BLOCKED", "2027-01-02T00:00:00.000Z", "All."),
    ]
    # The undo is undone by its own id, and nobody else's organization undoes anything.
    refused(send(service, "/changes/undo/", changeId=made["changeId"]), 409, "nothing_to_undo")
    redone = send(service, "/changes/undo/", changeId=undone["changeId"]).json()
    assert (redone["changed"], now(service, one)["description"]) == (2, "All.")
    theirs = {"organizationId": BETA, "changeId": redone["changeId"]}
    answer = service.client.post("/changes/undo/", json=theirs, headers=bearer(service, "foreigner"))
    refused(answer, 404, "not_found")

    # Kinds together, where both have the field; a reason by record or by field, and nothing is changed.
    before = stored.everything(service.database)
    faults: dict[str, dict[str, Any]] = {
        "values/status": {"records": [one, asset], "values": {"status": "not a token"}},
        "values/frequency": {"records": [one, asset], "values": {"frequency": "daily"}},
        "values/createdAt": {"records": [one], "values": {"createdAt": "2020-01-01"}},
        "values/slug": {"records": [one, two], "values": {"slug": "same"}},
        "records/1/assigneeMemberId": {"records": [one, two], "values": {"assigneeMemberId": "member-foreigner"}},
        "records/0/title": {"records": [one], "values": {"title": " "}},
        "records/1": {"records": [one, one], "values": {"status": "DONE"}},
    }
    for name, body in faults.items():
        answer = send(service, **body)
        assert answer.status_code == 400, (name, answer.text)
        assert name in [fault["name"] for fault in answer.json()["errors"]], answer.text
    gone = {"kind": "tasks", "id": record_id(Task, "live", BETA)}
    errors = refused(send(service, records=[one, three, gone], values={"status": "DONE"}), 409, "records_refused")
    assert [(fault["name"], fault["code"]) for fault in errors["errors"]] == [
        ("records/1", "archived"),
        ("records/2", "not_found"),
    ]
    refused(send(service, records=[one], values={"status": "DONE"}, user="viewer"), 403, "forbidden")
    assert stored.everything(service.database) == before


def test_every_field_of_every_kind_that_one_may_write_is_changed_and_undone(service: Served) -> None:
    """Whatever sort it is of, on SQLite; the rules are those of a change of one record."""
    values: dict[str, Any] = {"flag": True, "moment": "2027-01-02", "count": 4, "number": 3, "token": "OTHER"}
    values["files"] = [f"file-of-{ALPHA}"]
    for kind in Restorable.kinds:
        record = {"kind": kind.path, "id": record_id(kind, "live")}
        fields = [field for field in fields_of(kind) if field.is_writable and field.sort != "reference"]
        if kind is EntitlementReview:  # this one has items, so a step finishes it
            fields = [field for field in fields if field.name != "finishedAt"]
        before = now(service, record)
        sent = {field.name: values.get(field.sort, f"new-{field.name}") for field in fields}
        sent |= {"website": "https://new.example/"} if "website" in sent else {}
        sent |= {"url": "https://new.example/"} if "url" in sent else {}
        sent |= {"contactEmail": "new@new.example"} if "contactEmail" in sent else {}
        made = send(service, records=[record], values=sent).json()
        assert made.get("changed") == 1, made
        changed = {name for name, value in now(service, record).items() if value != before[name]}
        assert changed - {"updatedAt"} == set(made["records"][0]["after"])
        assert set(sent) - changed <= {field.name for field in fields if before[field.name] == sent[field.name]}
        assert send(service, "/changes/undo/", changeId=made["changeId"]).status_code == 200
        assert {**now(service, record), "updatedAt": None} == {**before, "updatedAt": None}
