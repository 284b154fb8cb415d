"""An audit is planned, checked, and leads to findings that are verified; on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.audits import planning
from normata.audits.model import ChecklistRow
from normata.events.model import AuditEvent
from normata.identity.tokens import tokens
from normata.records.kinds import Finding
from normata.wiring import changes_of
from tests import stored
from tests.served import Served, refused
from tests.world import ALPHA

AUDIT = f"audits-namesake-{ALPHA}"
PAGE = f"/audits/{AUDIT}/checklist/"
EMPTY = {"nonconforming": 0, "observation": 0, "conforming": 0, "notApplicable": 0, "notChecked": 0}


def send(service: Served, method: str, path: str, body: Any = None, user: str = "editor", **headers: str) -> Response:
    """The answer to a user's change."""
    return service.client.request(method, path, json=body, headers=service.bearer(user) | headers)


def listed(service: Served, path: str = PAGE, **query: str) -> Any:
    """A checklist, as the auditor reads it."""
    params = {"organizationId": ALPHA} | query
    return service.client.get(path, params=params, headers=service.bearer("auditor")).json()


def bring(service: Served, kind: str, row_id: str) -> str:
    """Bring a record or a control into scope, and return the id of the link."""
    body = {"organizationId": ALPHA, "from": {"kind": kind, "id": row_id}, "to": {"kind": "audits", "id": AUDIT}}
    made: str = send(service, "POST", "/links/", body | {"relation": "IN_SCOPE"}).json()["id"]
    return made


def planned(service: Served) -> list[dict[str, Any]]:
    """The rows of a checklist of two controls and a policy."""
    for kind, row_id in (("policies", f"policies-live-{ALPHA}"), ("controls", "sun.A.2"), ("controls", "sun.A.1")):
        bring(service, kind, row_id)
    assert send(service, "POST", PAGE).json() == {"added": 3, "total": 3}
    rows: list[dict[str, Any]] = listed(service)["items"]
    return rows


def test_a_checklist_follows_from_the_scope(service: Served) -> None:
    """It only grows: what was checked stays, whatever leaves the scope."""
    bring(service, "assets", f"assets-live-{ALPHA}")  # no row follows from it
    first, second, third = planned(service)
    assert [row["about"]["id"] for row in (first, second, third)] == ["sun.A.1", "sun.A.2", f"policies-live-{ALPHA}"]
    assert [row["position"] for row in (first, second, third)] == [1, 2, 3]
    assert {row["status"] for row in (first, second, third)} == {"NOT_CHECKED"}
    assert first["group"]["framework"]
    assert third["group"] is None
    event = stored.rows(service.database, AuditEvent, action="plan")
    assert [(one["entity_type"], one["entity_id"]) for one in event] == [("Audit", AUDIT)]
    late = bring(service, "controls", "sun.A.3")
    assert send(service, "POST", f"{PAGE}?dryRun=true").json()["answer"] == {"added": 1, "total": 4}
    assert send(service, "POST", PAGE).json() == {"added": 1, "total": 4}
    assert send(service, "POST", PAGE).json() == {"added": 0, "total": 4}
    assert len(stored.rows(service.database, AuditEvent, action="plan")) == 2
    assert send(service, "DELETE", f"/links/{late}/").is_success
    assert listed(service)["counts"] == EMPTY | {"notChecked": 3}
    bring(service, "controls", "sun.A.3")  # it is back, as it was
    assert [row["isInScope"] for row in listed(service)["items"]] == [True] * 4
    assert send(service, "POST", PAGE).json() == {"added": 0, "total": 4}


def test_a_checked_row_outlives_its_scope_and_its_policy(service: Served) -> None:
    *_, row = planned(service)
    send(service, "PATCH", f"/checklist-rows/{row['id']}/", {"status": "CONFORMING"})
    links = listed(service, "/links/", kind="audits", id=AUDIT, relation="IN_SCOPE")["items"]
    [link] = [one["id"] for one in links if one["from"]["kind"] == "policies"]
    assert send(service, "DELETE", f"/links/{link}/").is_success
    policy = f"/policies/policies-live-{ALPHA}/"
    assert send(service, "PATCH", policy, {"title": "Another title"}).is_success
    assert send(service, "POST", f"{policy}archive/").is_success
    [after] = listed(service, status="CONFORMING")["items"]
    assert after["about"] == row["about"] | {"isLive": False}
    assert (after["isInScope"], after["about"]["label"]) == (False, "policy live")


@pytest.mark.parametrize(
    "body", [{"frameworkId": "fw-sun"}, {"baselineId": "base-sun"}], ids=lambda body: next(iter(body))
)
def test_a_framework_comes_into_scope_at_once(body: dict[str, str], service: Served) -> None:
    """Those of its requirements that apply, each once."""
    service.load(
        {
            "baselines": [{"id": "base-sun", "frameworkId": "fw-sun", "name": "Some"}],
            "baselineControls": [
                {"id": f"in-{one}", "baselineId": "base-sun", "controlId": f"sun.A.{one}"} for one in (1, 2, 4)
            ],
            "controlCoverages": [
                {
                    "id": "out",
                    "organizationId": ALPHA,
                    "controlId": "sun.A.4",
                    "isApplicable": False,
                    "justification": "No.",
                }
            ],
        }
    )
    path = f"/audits/{AUDIT}/scope/"
    bring(service, "controls", "sun.A.1")
    trial = send(service, "POST", f"{path}?dryRun=true", body).json()["answer"]
    made = send(service, "POST", path, body).json()
    assert made == trial
    assert made["added"] == made["total"] - 1
    assert send(service, "POST", path, body).json() == {"added": 0, "total": made["total"]}
    assert send(service, "POST", PAGE).json() == {"added": made["total"], "total": made["total"]}
    about = [row["about"]["id"] for row in listed(service)["items"]]
    assert "sun.A.4" not in about
    assert about[:2] == ["sun.A.1", "sun.A.2"]
    assert ("sun.A.3" in about) == ("frameworkId" in body)  # mandatory ones are in every baseline


def test_what_cannot_be_planned(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/audits/{AUDIT}/scope/"
    for body, name in (
        ({"frameworkId": "fw-foreign"}, "frameworkId"),
        ({"baselineId": "nothing"}, "baselineId"),
        ({}, ""),
        ({"frameworkId": "fw-sun", "baselineId": "base"}, ""),
    ):
        answer = refused(send(service, "POST", path, body), 400, "validation")
        assert [one["name"] for one in answer["errors"]] == [name]
    monkeypatch.setattr(planning, "MAX_ROWS", 2)
    refused(send(service, "POST", path, {"frameworkId": "fw-sun"}), 400, "validation")
    for row_id in ("sun.A.1", "sun.A.2", "sun.A.3"):
        bring(service, "controls", row_id)
    refused(send(service, "POST", PAGE), 400, "validation")
    archived = f"/audits/audits-archived-{ALPHA}"
    refused(send(service, "POST", f"{archived}/checklist/"), 409, "archived")
    refused(send(service, "POST", f"{archived}/scope/", {"frameworkId": "fw-sun"}), 409, "archived")


def test_who_has_checked_a_row_and_when_follow(service: Served) -> None:
    row, other, _ = planned(service)
    path, note = f"/checklist-rows/{row['id']}/", {"note": "Five doors tried."}
    trial = send(service, "PATCH", f"{path}?dryRun=true", {"status": "CONFORMING"}).json()["answer"]
    assert (trial["status"], listed(service, path)["status"]) == ("CONFORMING", "NOT_CHECKED")
    checked = send(service, "PATCH", path, {"status": "CONFORMING"} | note).json()
    assert (checked["checkedById"], checked["checkedByName"]) == ("member-editor", "Editor")
    assert checked["checkedAt"] is not None
    assert send(service, "PATCH", path, {"status": "CONFORMING"}, "owner").json() == checked  # as it is already
    noted = send(service, "PATCH", path, {"note": None}, "owner").json()
    assert (noted["checkedById"], noted["checkedAt"]) == ("member-editor", checked["checkedAt"])
    again = send(service, "PATCH", path, {"status": "NOT_CHECKED"}, "owner").json()
    assert (again["checkedById"], again["checkedAt"]) == (None, None)
    both = {"rows": [{"id": one["id"], "status": "NOT_APPLICABLE"} for one in (row, other)]}
    changed = send(service, "PATCH", PAGE, both, "owner").json()["rows"]
    assert {one["checkedById"] for one in changed} == {"member-owner"}
    assert listed(service)["counts"] == EMPTY | {"notApplicable": 2, "notChecked": 1}
    events = stored.rows(service.database, AuditEvent, entity_type=ChecklistRow.__name__, entity_id=row["id"])
    assert sorted(one["action"] for one in events) == ["check", "check", "check", "update"]


def test_what_cannot_be_checked(service: Served) -> None:
    row, other, _ = planned(service)
    path, body = f"/checklist-rows/{row['id']}/", {"status": "CONFORMING"}
    for user, status, code in (
        ("viewer", 403, "forbidden"),
        ("auditor", 403, "forbidden"),
        ("foreigner", 404, "not_found"),
    ):
        refused(send(service, "PATCH", path, body, user), status, code)
        refused(send(service, "PATCH", PAGE, {"rows": [{"id": row["id"], **body}]}, user), status, code)
        refused(send(service, "POST", f"{path}findings/", {"name": "Doors"}, user), status, code)
    assert service.client.patch(path, json=body).status_code == 401
    refused(send(service, "PATCH", "/checklist-rows/nothing/", body), 404, "not_found")
    for faulty in ({"status": "DONE"}, {"status": None}, {"checkedById": "member-owner"}):
        refused(send(service, "PATCH", path, faulty), 400, "validation")
    foreign = {"rows": [{"id": f"row-{ALPHA}", **body}, {"id": other["id"], **body}, {"id": other["id"], **body}]}
    answer = refused(send(service, "PATCH", PAGE, foreign), 400, "validation")
    assert [one["name"] for one in answer["errors"]] == ["rows/0/id", "rows/2/id"]
    assert listed(service)["counts"]["notChecked"] == 3
    assert send(service, "POST", f"/audits/{AUDIT}/archive/").is_success
    refused(send(service, "PATCH", path, body), 409, "archived")
    refused(send(service, "PATCH", PAGE, {"rows": [{"id": row["id"], **body}]}), 409, "archived")
    refused(send(service, "POST", f"{path}findings/", {"name": "Doors"}), 409, "archived")
    assert len(listed(service)["items"]) == 3


def test_of_two_who_know_the_same_state_one_checks(service: Served) -> None:
    row, *_ = planned(service)
    path = f"/checklist-rows/{row['id']}/"
    tag = service.client.get(path, params={"organizationId": ALPHA}, headers=service.bearer("viewer")).headers["etag"]

    headers = service.bearer("editor") | {"If-Match": tag}

    def check(status: str) -> int:
        return service.client.patch(path, json={"status": status}, headers=headers).status_code

    with ThreadPoolExecutor() as pool:
        answers = sorted(pool.map(check, ("CONFORMING", "NONCONFORMING")))
    assert answers == [200, 412]


def test_a_finding_of_a_row_is_made_resolved_and_verified(service: Served) -> None:
    """With its audit, its control, its owner and the row, in one step that a key repeats once."""
    row, _, of_policy = planned(service)
    path = f"/checklist-rows/{row['id']}/"
    body = {"name": "Doors stay open", "type": "MINOR_NONCONFORMITY", "findings": "Two.", "ownerId": "member-viewer"}
    trial = send(service, "POST", f"{path}findings/?dryRun=true", body)
    assert trial.status_code == 200
    before = len(stored.rows(service.database, Finding))
    answers = [send(service, "POST", f"{path}findings/", body, **{"Idempotency-Key": "once"}) for _ in range(2)]
    assert [one.status_code for one in answers] == [201, 201]
    made = answers[0].json()
    assert answers[0].headers["location"].endswith(f"/auditItems/{made['id']}/")
    assert len(stored.rows(service.database, Finding)) == before + 1
    assert (made["auditId"], made["controlId"], made["source"]) == (AUDIT, "sun.A.1", "AUDIT")
    after = listed(service, path)
    assert (after["status"], [one["id"] for one in after["findings"]]) == ("NONCONFORMING", [made["id"]])
    links = listed(service, "/links/", kind="auditItems", id=made["id"])["items"]
    assert [(one["relation"], one["from"]["id"]) for one in links] == [("OWNS", "member-viewer")]
    refused(send(service, "PATCH", path, {"status": "NOT_CHECKED"}), 400, "validation")
    # About a policy, the two are related. The result that somebody has set stays.
    send(service, "PATCH", f"/checklist-rows/{of_policy['id']}/", {"status": "CONFORMING"})
    other = send(service, "POST", f"/checklist-rows/{of_policy['id']}/findings/", {"name": "Too long"}).json()
    assert (other["controlId"], other["type"]) == (None, "OBSERVATION")
    related = listed(service, "/links/", kind="auditItems", id=other["id"])["items"]
    assert [one["relation"] for one in related] == ["RELATES"]
    assert listed(service)["items"][2]["status"] == "CONFORMING"
    # Until it is verified.
    assert send(service, "PATCH", f"/auditItems/{made['id']}/", {"status": "RESOLVED"}).is_success
    assert send(service, "POST", f"/auditItems/{made['id']}/verify/", {"note": "Tried."}, "owner").is_success
    [found] = listed(service, path)["findings"]
    assert (found["status"], found["isLive"]) == ("VERIFIED", True)
    assert found["verifiedAt"]
    assert send(service, "POST", f"/auditItems/{made['id']}/archive/").is_success
    assert [one["isLive"] for one in listed(service, path)["findings"]] == [False]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "name"),
        ({"name": "Doors", "ownerId": "member-foreigner"}, "ownerId"),
        ({"name": "Doors", "ownerId": "member-auditor"}, "ownerId"),
        ({"name": "Doors", "status": "CLOSED"}, "status"),
        ({"name": "Doors", "auditId": "other"}, "auditId"),
    ],
)
def test_a_faulty_finding_leaves_the_row(body: dict[str, str], name: str, service: Served) -> None:
    row, *_ = planned(service)
    before = len(stored.rows(service.database, Finding))
    answer = refused(send(service, "POST", f"/checklist-rows/{row['id']}/findings/", body), 400, "validation")
    assert [one["name"] for one in answer["errors"]] == [name]
    assert len(stored.rows(service.database, Finding)) == before
    assert listed(service)["items"][0] == row


def test_a_service_account_checks_nothing(service: Served) -> None:
    row, *_ = planned(service)
    service.sql(f"UPDATE membership SET role = 'editor' WHERE id = 'member-robot-{ALPHA}'")
    token = changes_of(service.database).make_now(
        lambda unit: tokens.create(unit, email=f"robot-{ALPHA}", scope="write", lifetime=None)
    )
    headers, path = {"Authorization": f"Bearer {token}"}, f"/checklist-rows/{row['id']}/"
    refused(service.client.patch(path, json={"status": "CONFORMING"}, headers=headers), 403, "forbidden")
    refused(service.client.post(f"{path}findings/", json={"name": "Doors"}, headers=headers), 403, "forbidden")
    assert service.client.patch(path, json={"note": "From the scanner."}, headers=headers).is_success
