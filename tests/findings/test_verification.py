"""A finding is verified by one who has looked, and by somebody else where the organization requires it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.identity.model import Organization
from normata.identity.tokens import tokens
from normata.records.kinds import Finding
from normata.wiring import changes_of
from tests import stored
from tests.records.living import change, make
from tests.served import Served, refused
from tests.world import ALPHA

NOTE = {"note": "Ten doors tried."}
FIELDS = {"verifiedAt": "2026-01-01T00:00:00.000Z", "verifiedById": "x", "verifiedByName": "X", "verificationNote": "Y"}


def finding(service: Served, status: str = "RESOLVED", user: str = "editor", **values: Any) -> dict[str, Any]:
    """A finding with this status, as a user has made it."""
    answer = make(service, Finding, service.bearer(user), name="Doors", status=status, **values)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def verify(service: Served, row_id: str, user: str = "editor", query: str = "", **headers: str) -> Response:
    """The answer to a verification."""
    bearer = service.bearer(user) | headers
    return service.client.post(f"/auditItems/{row_id}/verify/{query}", json=NOTE, headers=bearer)


def require(service: Served, *, others: bool) -> None:
    """Have the organization require that somebody else verifies, or not."""
    answer = service.client.patch(
        f"/organizations/{ALPHA}/", json={"verifiesFindings": others}, headers=service.bearer("admin")
    )
    assert answer.json()["verifiesFindings"] is others
    assert stored.row(service.database, Organization, ALPHA)["verifies_findings"] is others


@pytest.mark.parametrize(("status", "after"), [("RESOLVED", "VERIFIED"), ("CLOSED", "CLOSED")])
def test_it_says_who_and_when(status: str, after: str, service: Served) -> None:
    made = finding(service, status)
    trial = verify(service, made["id"], query="?dryRun=true")
    assert trial.json()["answer"]["verifiedById"] == "member-editor"
    assert stored.row(service.database, Finding, made["id"])["verified_at"] is None
    done = verify(service, made["id"], **{"Idempotency-Key": "once"})
    moment = done.json()["verifiedAt"]
    verified = {"verifiedById": "member-editor", "verifiedByName": "Editor", "verificationNote": NOTE["note"]}
    assert done.json() == made | verified | {"status": after, "verifiedAt": moment, "updatedAt": moment}
    assert verify(service, made["id"], **{"Idempotency-Key": "once"}).json() == done.json()
    problem = refused(verify(service, made["id"]), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("VERIFIED", ["RESOLVED", "CLOSED"])
    last = stored.events(service.database, entity_id=made["id"])[-1]
    assert (last["action"], last["user_id"]) == ("verify", "user-editor")
    found = service.listing("/auditItems/", "viewer").ids(search="doors tried")
    assert found == [made["id"]]


def test_of_two_at_once_one_verifies(service: Served) -> None:
    row_id = finding(service)["id"]
    bearers = [service.bearer(user) for user in ("editor", "admin")]
    with ThreadPoolExecutor(2) as pool:
        path = f"/auditItems/{row_id}/verify/"
        answers = list(pool.map(lambda bearer: service.client.post(path, headers=bearer), bearers))
    assert sorted(answer.status_code for answer in answers) == [200, 409]


def test_what_nobody_verifies(service: Served) -> None:
    row_id = finding(service)["id"]
    refused(verify(service, row_id, "viewer"), 403, "forbidden")
    refused(verify(service, row_id, "foreigner"), 404, "not_found")
    refused(verify(service, "nothing"), 404, "not_found")
    refused(verify(service, row_id, **{"If-Match": '"another"'}), 412, "precondition_failed")
    assert service.client.post(f"/auditItems/{row_id}/verify/").status_code == 401
    problem = refused(verify(service, finding(service, "OPEN")["id"]), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("OPEN", ["RESOLVED", "CLOSED"])
    assert service.client.post(f"/auditItems/{row_id}/archive/", headers=service.bearer("editor")).is_success
    refused(verify(service, row_id), 409, "archived")


def test_it_ends_where_the_finding_is_reopened(service: Served) -> None:
    """Another field leaves it, and so does closing."""
    editor, row_id = service.bearer("editor"), finding(service)["id"]
    verified = verify(service, row_id).json()
    for values in ({"name": "Gates"}, {"status": "CLOSED"}, {"status": "VERIFIED"}):
        after = change(service, Finding, row_id, editor, **values).json()
        assert {name: after[name] for name in FIELDS} == {name: verified[name] for name in FIELDS}
    body = {"organizationId": ALPHA, "records": [{"kind": "auditItems", "id": row_id}], "values": {"status": "OPEN"}}
    reopened = service.client.post("/changes/", json=body, headers=editor).json()
    row = stored.row(service.database, Finding, row_id)
    assert [row[name] for name in ("verified_at", "verified_by_id", "verified_by_name", "verification_note")] == [
        None
    ] * 4
    assert service.listing("/auditItems/", "viewer").ids(search="doors tried") == []
    undo = {"organizationId": ALPHA, "changeId": reopened["changeId"]}
    answer = service.client.post("/changes/undo/", json=undo, headers=editor)
    assert refused(answer, 400, "validation")["errors"][0]["code"] == "read_only"


@pytest.mark.parametrize("name", FIELDS)
def test_nobody_writes_it_by_hand(name: str, service: Served) -> None:
    owner, made = service.bearer("owner"), finding(service)
    fresh = make(service, Finding, owner, name="Doors", **{name: FIELDS[name]})
    body = {"organizationId": ALPHA, "records": [{"kind": "auditItems", "id": made["id"]}]}
    many = service.client.post("/changes/", json=body | {"values": {name: FIELDS[name]}}, headers=owner)
    for answer in (fresh, change(service, Finding, made["id"], owner, **{name: FIELDS[name]}), many):
        [fault] = refused(answer, 400, "validation")["errors"]
        assert (fault["name"].rpartition("/")[2], fault["code"]) == (name, "read_only")
    verified = verify(service, made["id"]).json()
    assert change(service, Finding, made["id"], owner, **{name: verified[name]}).json() == verified
    service.load({"auditItems": [made | FIELDS | {"id": "loaded", "slug": "loaded"}]})
    assert stored.row(service.database, Finding, "loaded")["verified_by_name"] == "X"


def test_nobody_makes_it_verified_by_hand(service: Served) -> None:
    editor = service.bearer("editor")
    fresh = make(service, Finding, editor, name="Doors", status="VERIFIED")
    for answer in (fresh, change(service, Finding, finding(service)["id"], editor, status="VERIFIED")):
        [fault] = refused(answer, 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == ("status", "read_only")


def test_somebody_else_verifies_where_the_organization_requires_it(service: Served) -> None:
    """Not an owner, and not who has resolved it; and nothing is closed before."""
    require(service, others=True)
    editor, row_id = service.bearer("editor"), finding(service, "OPEN")["id"]
    link = {"from": {"kind": "memberships", "id": "member-admin"}, "to": {"kind": "auditItems", "id": row_id}}
    body = {"organizationId": ALPHA, "relation": "OWNS", **link}
    owning = service.client.post("/links/", json=body, headers=editor).json()["id"]
    change(service, Finding, row_id, editor, status="RESOLVED")
    change(service, Finding, row_id, service.bearer("owner"), name="Gates")
    problem = refused(change(service, Finding, row_id, editor, status="CLOSED"), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("RESOLVED", ["VERIFIED"])
    refused(make(service, Finding, editor, name="Doors", status="CLOSED"), 409, "wrong_state")
    many = {"organizationId": ALPHA, "records": [{"kind": "auditItems", "id": row_id}], "values": {"status": "CLOSED"}}
    refused(service.client.post("/changes/", json=many, headers=editor), 409, "wrong_state")
    assert "who has resolved" in refused(verify(service, row_id), 403, "forbidden")["detail"]
    assert "has owned" in refused(verify(service, row_id, "admin"), 403, "forbidden")["detail"]
    assert service.client.delete(f"/links/{owning}/", headers=service.bearer("admin")).is_success
    assert "has owned" in refused(verify(service, row_id, "admin"), 403, "forbidden")["detail"], "given away since"
    assert verify(service, row_id, "owner").json()["status"] == "VERIFIED"
    assert change(service, Finding, row_id, editor, status="CLOSED").json()["status"] == "CLOSED"
    require(service, others=False)
    assert verify(service, finding(service, "CLOSED")["id"]).status_code == 200


def test_who_has_resolved_it_stays_who_did_until_it_is_open_again(service: Served) -> None:
    """Also if somebody else has closed it since, or a service account has reopened and resolved it."""
    closed, washed, again = (finding(service) for _ in range(3))
    assert change(service, Finding, closed["id"], service.bearer("admin"), status="CLOSED").status_code == 200
    service.sql(f"UPDATE membership SET role = 'editor' WHERE id = 'member-robot-{ALPHA}'")
    token = changes_of(service.database).make_now(
        lambda unit: tokens.create(unit, email=f"robot-{ALPHA}", scope="write", lifetime=None)
    )
    robot, owner = {"Authorization": f"Bearer {token}"}, service.bearer("owner")
    for row_id, bearer in ((washed["id"], robot), (again["id"], owner)):
        for status in ("OPEN", "RESOLVED"):
            assert change(service, Finding, row_id, bearer, status=status).status_code == 200
    require(service, others=True)
    for row_id in (closed["id"], washed["id"]):
        assert "resolved" in refused(verify(service, row_id), 403, "forbidden")["detail"]
    assert verify(service, closed["id"], "owner").status_code == 200
    assert verify(service, again["id"]).status_code == 200, "the owner has resolved it since"
