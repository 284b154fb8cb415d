"""A record is finalized by a step, and says the same until it gets another status."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.records.kinds import Record
from tests import stored
from tests.records.living import change, make
from tests.served import Served, refused
from tests.world import ALPHA

FIELDS = {"finalizedAt": "2026-01-01T00:00:00.000Z", "finalizedBy": "X"}
CONTENT = {"text": "Restored in two hours."}


def record(service: Served, **values: Any) -> dict[str, Any]:
    """A record that an editor has made."""
    answer = make(service, Record, service.bearer("editor"), title="Test of the restore", content=CONTENT, **values)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def finalize(service: Served, row_id: str, user: str = "editor", query: str = "", **headers: str) -> Response:
    """The answer to a finalization."""
    return service.client.post(f"/records/{row_id}/finalize/{query}", headers=service.bearer(user) | headers)


def test_it_says_who_and_when(service: Served) -> None:
    made = record(service)
    assert finalize(service, made["id"], query="?dryRun=true").json()["answer"]["status"] == "FINALIZED"
    assert stored.row(service.database, Record, made["id"])["finalized_at"] is None
    done = finalize(service, made["id"], **{"Idempotency-Key": "once"}).json()
    moment = done["finalizedAt"]
    after = {"status": "FINALIZED", "finalizedBy": "Editor", "finalizedAt": moment, "updatedAt": moment}
    assert done == made | after | {"currentVersion": 1}
    assert finalize(service, made["id"], **{"Idempotency-Key": "once"}).json() == done
    problem = refused(finalize(service, made["id"]), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("FINALIZED", ["DRAFT", "IN_REVIEW"])
    last = stored.events(service.database, entity_id=made["id"])[-1]
    assert (last["action"], last["user_id"]) == ("finalize", "user-editor")


def test_of_two_at_once_one_finalizes(service: Served) -> None:
    path = f"/records/{record(service)['id']}/finalize/"
    bearers = [service.bearer(user) for user in ("editor", "admin")]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda bearer: service.client.post(path, headers=bearer), bearers))
    assert sorted(answer.status_code for answer in answers) == [200, 409]


def test_what_nobody_finalizes(service: Served) -> None:
    row_id = record(service)["id"]
    refused(finalize(service, row_id, "viewer"), 403, "forbidden")
    refused(finalize(service, row_id, "foreigner"), 404, "not_found")
    refused(finalize(service, "nothing"), 404, "not_found")
    refused(finalize(service, row_id, **{"If-Match": '"another"'}), 412, "precondition_failed")
    assert service.client.post(f"/records/{row_id}/finalize/").status_code == 401
    refused(finalize(service, record(service, status="SUPERSEDED")["id"]), 409, "wrong_state")
    assert service.client.post(f"/records/{row_id}/archive/", headers=service.bearer("editor")).is_success
    refused(finalize(service, row_id), 409, "archived")


def test_what_it_says_stays_until_it_gets_another_status(service: Served) -> None:
    editor, row_id = service.bearer("editor"), record(service, currentVersion=3)["id"]
    final = finalize(service, row_id).json()
    for values in ({"title": "Other"}, {"content": {"text": "Never."}}, {"title": "Other", "status": "SUPERSEDED"}):
        problem = refused(change(service, Record, row_id, editor, **values), 409, "wrong_state")
        assert (problem["state"], problem["allowed"]) == ("FINALIZED", ["DRAFT", "IN_REVIEW"])
    many = {"organizationId": ALPHA, "records": [{"kind": "records", "id": row_id}], "values": {"title": "Other"}}
    refused(service.client.post("/changes/", json=many, headers=editor), 409, "wrong_state")
    for values in ({"dueDate": "2026-12-01T00:00:00.000Z"}, {"status": "SUPERSEDED"}, {"status": "FINALIZED"}):
        after = change(service, Record, row_id, editor, **values).json()
        assert {name: after[name] for name in FIELDS} == {name: final[name] for name in FIELDS}
    opened = change(service, Record, row_id, editor, status="DRAFT", title="Other").json()
    assert [opened[name] for name in ("title", "finalizedAt", "finalizedBy", "currentVersion")] == [
        "Other",
        None,
        None,
        4,
    ]
    assert finalize(service, row_id).json()["currentVersion"] == 4


@pytest.mark.parametrize("name", FIELDS)
def test_nobody_writes_it_by_hand(name: str, service: Served) -> None:
    owner, made = service.bearer("owner"), record(service)
    fresh = make(service, Record, owner, title="Test", **{name: FIELDS[name]})
    by_hand = change(service, Record, made["id"], owner, **{name: FIELDS[name]})
    final = change(service, Record, made["id"], owner, status="FINALIZED")
    for answer, field in ((fresh, name), (by_hand, name), (final, "status")):
        [fault] = refused(answer, 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == (field, "read_only")
    done = finalize(service, made["id"]).json()
    assert change(service, Record, made["id"], owner, **{name: done[name]}).json() == done
    service.load({"records": [made | FIELDS | {"id": "loaded", "slug": "loaded", "shortId": 900}]})
    assert stored.row(service.database, Record, "loaded")["finalized_by"] == "X"
