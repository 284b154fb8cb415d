"""Assessments without a status, who answers for them, and by when they are reviewed."""

from __future__ import annotations

import pytest

from normata.core.db.database import Database
from normata.coverage.lapses import lapse
from normata.frameworks.model import ControlCoverage
from normata.notifications.model import Notification
from tests import mostly_sqlite, stored
from tests.coverage.assessing import SILENCE, Json, Stating, done, faults
from tests.databases import change, on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

REVIEW = "2031-02-03T00:00:00.000Z"


def notified(database: Database) -> list[tuple[str, str, str]]:
    """Who was notified of what, of which control."""
    rows = stored.rows(database, Notification)
    about = [row for row in rows if (row["payload"]["titleKey"] or "").startswith("notifications.assessment.")]
    return [(row["user_id"], row["type"], row["payload"]["entityId"]) for row in about]


@on_both
@pytest.mark.parametrize(
    "said",
    [
        {"justification": "Law."},
        {"reasons": ["LEGAL"]},
        {"ownerId": "member-viewer"},
        {"note": "By hand."},
        {"reviewBy": REVIEW},
        {"coverageGap": "All of it."},
        {"isApplicable": True},
        {"isApplicable": False, "justification": "No premises."},
    ],
    ids="+".join,
)
def test_nothing_else_makes_an_assessment_none(said: Json, alpha: Stating, database: Database) -> None:
    for answer in (alpha.put("sun.A.5", **said), alpha.patch({"controlId": "sun.A.7", **said})):
        done(answer)
    for control in ("sun.A.5", "sun.A.7"):
        assert alpha.said(control) == SILENCE | said
        assert [row["coverage_status"] for row in stored.rows(database, ControlCoverage, control_id=control)] == [None]
    listed = alpha.client.get(
        "/controls/", params={"organizationId": ALPHA, "search": "sun control 5"}, headers=alpha.headers
    )
    [item] = [one for one in done(listed)["items"] if one["id"] == "sun.A.5"]
    assert item["coverage"] == {"coverageStatus": "NONE", "coverageGap": said.get("coverageGap")}


def test_one_field_leaves_the_others_and_null_removes(alpha: Stating) -> None:
    whole = SILENCE | {"coverageStatus": "NONE", "ownerId": "member-viewer", "note": "By hand.", "reviewBy": REVIEW}
    done(alpha.put("sun.A.5", **whole))
    for name, value in (("note", "By robot."), ("ownerId", None), ("reviewBy", None), ("coverageStatus", None)):
        done(alpha.patch({"controlId": "sun.A.5", name: value}))
        whole |= {name: value}
        assert alpha.said("sun.A.5") == whole


@pytest.mark.parametrize("owner", ["nobody", "member-foreigner", "user-viewer"])
def test_an_owner_is_a_member(owner: str, alpha: Stating, database: Database) -> None:
    before = stored.everything(database)
    assert faults(alpha.put("sun.A.5", ownerId=owner)) == [("ownerId", "names no member of the organization")]
    refused = alpha.patch({"controlId": "sun.A.7"}, {"controlId": "sun.A.5", "ownerId": owner})
    assert faults(refused) == [("assessments/1/ownerId", "names no member of the organization")]
    assert stored.everything(database) == before


@on_both
def test_the_owner_is_notified_once(alpha: Stating, database: Database) -> None:
    done(alpha.put("sun.A.5", ownerId="member-viewer"))
    assert notified(database) == [("user-viewer", "record.assigned", "sun.A.5")]
    done(alpha.patch({"controlId": "sun.A.5", "note": "By hand."}))
    done(alpha.patch({"controlId": "sun.A.5", "ownerId": "member-admin"}))  # who did it is not notified
    done(alpha.patch({"controlId": "sun.A.5", "ownerId": "member-editor"}))
    assert notified(database)[1:] == [("user-editor", "record.assigned", "sun.A.5")]


@on_both
def test_a_review_is_due(alpha: Stating) -> None:
    done(alpha.put("sun.A.5", ownerId="member-viewer", reviewBy="2020-01-02"))
    due = alpha.client.get("/due/", params={"organizationId": ALPHA}, headers=alpha.headers)
    [item] = [one for one in done(due)["items"] if one["kind"] == "controlCoverages"]
    assert item | {"id": ""} == {
        "kind": "controlCoverages",
        "id": "",
        "label": "sun control 5",
        "controlId": "sun.A.5",
        "what": "reviewBy",
        "at": "2020-01-02T00:00:00.000Z",
        "overdue": True,
        "responsible": {"memberId": "member-viewer", "name": item["responsible"]["name"]},
    }
    done(alpha.patch({"controlId": "sun.A.5", "reviewBy": None}))
    due = alpha.client.get("/due/", params={"organizationId": ALPHA}, headers=alpha.headers)
    assert "controlCoverages" not in {one["kind"] for one in done(due)["items"]}


def test_what_is_read_of_a_lapsed_assessment_can_be_sent_back(alpha: Stating, database: Database) -> None:
    """Its status is null, and null leaves what has lapsed; only to remove the assessment removes that."""
    missed = {"coverageStatus": "FULL", "assessedAt": "2026-01-01", "reviewBy": "2026-06-15"}
    row = {"id": "say-sun.A.2", "organizationId": ALPHA, "controlId": "sun.A.2"} | missed
    stored.load(database, {"controlCoverages": [row], "organizations": [{"id": ALPHA, "staleAssessments": "LAPSE"}]})
    assert change(database, lambda unit: lapse(unit, ALPHA, unit.moment)) == 1
    done(alpha.put("sun.A.2", coverageStatus=None, note="N", reviewBy="2026-06-15"))
    done(alpha.patch({"controlId": "sun.A.2", "coverageStatus": None, "coverageGap": "G"}))
    shown = done(alpha.control("sun.A.2"))["coverage"]
    assert (shown["coverageStatus"], shown["lapsedStatus"], shown["note"]) == (None, "FULL", "N")
    confirmed = alpha._send("POST", "/controls/sun.A.2/coverage/confirm/", {"reviewBy": "2031-01-01"})
    assert done(confirmed)["coverage"]["coverageStatus"] == "FULL"
