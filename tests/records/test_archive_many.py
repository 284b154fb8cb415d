"""Many records at once, of whatever kinds: all or none, or each for itself."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.events.model import AuditEvent
from normata.records.archiving import ArchiveEntry
from normata.records.base import Restorable
from normata.records.kinds import Asset, Label, Task
from tests import mostly_sqlite, stored
from tests.databases import on_both
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

EVERY = [{"kind": kind.path, "id": record_id(kind, "live")} for kind in Restorable.kinds]
UNKNOWN = {"kind": "tasks", "id": "nowhere"}


def named(kind: type[Restorable], state: str, organization: str = ALPHA) -> dict[str, str]:
    """A record of the world, as a request names it."""
    return {"kind": kind.path, "id": record_id(kind, state, organization)}


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


def send(
    service: Served, path: str, records: list[dict[str, str]] | None, *, user: str = "editor", **more: Any
) -> Response:
    """The answer to a request for these records."""
    body = {"organizationId": ALPHA} | ({} if records is None else {"records": records}) | more
    return service.client.post(path, json=body, headers=service.bearer(user))


def done(response: Response) -> dict[str, Any]:
    """The answer, which must be a success."""
    assert response.status_code == 200, response.text[:500]
    answer: dict[str, Any] = response.json()
    assert answer["done"] + answer["refused"] == len(answer["records"])
    return answer


def codes(answer: dict[str, Any]) -> list[str | None]:
    """What has become of each record: the code of its refusal, null where it was done."""
    return [one["refusal"] and one["refusal"]["code"] for one in answer["records"]]


def entries(service: Served) -> list[dict[str, Any]]:
    """What is known of who has archived what."""
    return stored.everything(service.database)[str(ArchiveEntry.__tablename__)]


@on_both
def test_what_was_archived_together_is_restored_as_one(service: Served) -> None:
    """Of every kind: one archive id, one event for each record, and afterwards all is as it was."""
    before = {kind: stored.row(service.database, kind, record_id(kind, "live")) for kind in Restorable.kinds}
    answer = done(send(service, "/archive/", EVERY, reason="Closed."))
    assert [(one["kind"], one["id"]) for one in answer["records"]] == [(one["kind"], one["id"]) for one in EVERY]
    assert {(one["archive_id"], one["reason"], one["user_id"]) for one in entries(service)} == {
        (answer["archiveId"], "Closed.", "user-editor")
    }
    events = stored.rows(service.database, AuditEvent, user_id="user-editor")
    assert sorted(event["entity_id"] for event in events) == sorted(one["id"] for one in EVERY)
    for kind in Restorable.kinds:
        assert stored.row(service.database, kind, record_id(kind, "live"))["archived_at"] is not None
    undone = done(send(service, "/archive/restore/", None, archiveId=answer["archiveId"]))
    assert (undone["done"], undone["archiveId"]) == (len(EVERY), None)
    for kind, row in before.items():
        after = stored.row(service.database, kind, str(row["id"]))
        assert after | {"updated_at": ""} == row | {"updated_at": ""}
    assert len(stored.rows(service.database, AuditEvent, user_id="user-editor")) == 2 * len(EVERY)
    refused(send(service, "/archive/restore/", None, archiveId=answer["archiveId"]), 409, "not_archived")


@pytest.mark.parametrize("path", ["/archive/", "/archive/restore/"])
@on_both
def test_one_that_is_refused_refuses_all_and_each_is_told(path: str, service: Served) -> None:
    archives = path == "/archive/"
    good, bad = ("live", "archived") if archives else ("archived", "live")
    records = [
        named(Task, good), named(Task, bad), UNKNOWN, named(Asset, good),
        *([] if archives else [named(Label, "taken")]), named(Label, good, BETA),
    ]  # fmt: skip
    before = stored.everything(service.database)
    response = send(service, path, records)
    after = stored.everything(service.database)
    assert after | {"access_token": []} == before | {"access_token": []}
    faults = [(fault["name"], fault["code"]) for fault in refused(response, 409, "records_refused")["errors"]]
    expected = [
        "archived" if archives else "not_archived",
        "not_found",
        *([] if archives else ["slug_taken"]),
        "not_found",
    ]
    places = [1, 2, *([4, 5] if not archives else [4])]
    assert faults == [(f"records/{place}", code) for place, code in zip(places, expected, strict=True)]


@on_both
def test_each_for_itself(service: Served) -> None:
    records = [named(Task, "live"), named(Task, "archived"), UNKNOWN, named(Asset, "live"), named(Label, "live", BETA)]
    answer = done(send(service, "/archive/", records, mode="each"))
    assert codes(answer) == [None, "archived", "not_found", None, "not_found"]
    assert (answer["done"], answer["refused"]) == (2, 3)
    assert {one["record_id"] for one in entries(service)} == {records[0]["id"], records[3]["id"]}
    records = [named(Label, "taken"), named(Label, "archived"), named(Label, "live")]
    answer = done(send(service, "/archive/restore/", records, mode="each"))
    assert codes(answer) == ["slug_taken", None, "not_archived"]
    assert answer["records"][0]["refusal"]["conflictingId"] == record_id(Label, "namesake")


def test_where_all_are_refused_each_for_itself_nothing_is_archived(service: Served) -> None:
    answer = done(send(service, "/archive/", [UNKNOWN], mode="each"))
    assert (answer["archiveId"], answer["done"], answer["refused"]) == (None, 0, 1)
    assert entries(service) == []
    refused_ones = [named(Label, "taken"), named(Label, "live")]
    answer = done(send(service, "/archive/restore/", refused_ones, mode="each"))
    assert codes(answer) == ["slug_taken", "not_archived"]


def test_of_two_with_one_slug_the_first_gets_it(service: Served) -> None:
    service.load({"labels": [{"id": record_id(Label, "namesake"), "archivedAt": "2026-05-01"}]})
    both = [named(Label, "namesake"), named(Label, "taken")]
    problem = refused(send(service, "/archive/restore/", both), 409, "records_refused")
    assert [(fault["name"], fault["code"]) for fault in problem["errors"]] == [("records/1", "slug_taken")]
    assert record_id(Label, "namesake") in problem["errors"][0]["message"]
    assert codes(done(send(service, "/archive/restore/", both[::-1], mode="each"))) == [None, "slug_taken"]


def test_undo_leaves_alone_what_somebody_has_changed_since(service: Served) -> None:
    records = [named(kind, "live") for kind in (Task, Asset, Label)]
    answer = done(send(service, "/archive/", records))
    done(send(service, "/archive/restore/", [records[0], records[1]]))
    done(send(service, "/archive/", [records[1]]))
    undone = done(send(service, "/archive/restore/", None, archiveId=answer["archiveId"]))
    assert [one["id"] for one in undone["records"]] == [records[2]["id"]]
    assert stored.row(service.database, Asset, records[1]["id"])["archived_at"] is not None


def test_an_archive_id_is_its_organizations_own(service: Served) -> None:
    answer = done(send(service, "/archive/", [named(Task, "live")]))
    foreign = {"organizationId": BETA, "archiveId": answer["archiveId"]}
    response = service.client.post("/archive/restore/", json=foreign, headers=service.bearer("foreigner"))
    refused(response, 404, "not_found")
    refused(send(service, "/archive/restore/", None, archiveId="nowhere"), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"records": []}, "records"),
        ({"records": [named(Task, "live")] * 2}, "records/1"),
        ({"records": [{"kind": "controls", "id": "x"}]}, "records/0/kind"),
        ({"records": [{"kind": "tasks", "id": str(number)} for number in range(501)]}, "records"),
        ({"records": [named(Task, "live")], "mode": "some"}, "mode"),
    ],
    ids=["none", "twice", "another kind", "too many", "another mode"],
)
@pytest.mark.parametrize("path", ["/archive/", "/archive/restore/"])
def test_what_is_wrong_with_a_body(path: str, body: dict[str, Any], name: str, service: Served) -> None:
    response = service.client.post(path, json={"organizationId": ALPHA} | body, headers=service.bearer("editor"))
    (fault,) = refused(response, 400, "validation")["errors"]
    assert fault["name"] == name


def test_a_restore_names_records_or_an_action(service: Served) -> None:
    for response in (
        send(service, "/archive/restore/", None),
        send(service, "/archive/restore/", [named(Task, "archived")], archiveId="x"),
    ):
        (fault,) = refused(response, 400, "validation")["errors"]
        assert fault["name"] == "records"


@on_both
def test_as_many_as_there_may_be(service: Served) -> None:
    records = [{"id": f"many-{number}", "organizationId": ALPHA, "name": f"Many {number}"} for number in range(500)]
    service.load({"labels": records})
    names = [{"kind": "labels", "id": row["id"]} for row in records]
    answer = done(send(service, "/archive/", names))
    assert answer["done"] == 500
    assert done(send(service, "/archive/restore/", None, archiveId=answer["archiveId"]))["done"] == 500


@on_both
def test_of_two_at_once_one_archives_each_record(service: Served) -> None:
    """They name the same records in opposite orders, and do not wait for each other in a circle."""
    headers = service.bearer("editor")

    def ask(path: str, records: list[dict[str, str]]) -> Response:
        body = {"organizationId": ALPHA, "records": records, "mode": "each"}
        return service.client.post(path, json=body, headers=headers)

    with ThreadPoolExecutor(4) as threads:
        for path in ("/archive/", "/archive/restore/") * 3:
            asking = [threads.submit(ask, path, records) for records in (EVERY, EVERY[::-1]) * 2]
            answers = [done(one.result()) for one in asking]
            assert sum(answer["done"] for answer in answers) == len(EVERY)
