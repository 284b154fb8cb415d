"""The report of an audit, in all its formats; on both databases."""

from __future__ import annotations

from io import BytesIO

import pytest
from openpyxl import load_workbook

from normata.reports import pdf
from tests.audits.test_checklists import AUDIT, bring, listed, planned, send
from tests.served import Served, refused
from tests.world import ALPHA

REPORT = f"/audits/{AUDIT}/report/"


def reported(service: Served) -> None:
    """An audit with a verified and an archived finding, and rows that nobody has checked."""
    row, other, _ = planned(service)
    bring(service, "assets", f"assets-live-{ALPHA}")
    made = [
        send(service, "POST", f"/checklist-rows/{one['id']}/findings/", {"name": name, "type": sort}).json()["id"]
        for one, name, sort in (
            (row, "Small", "OBSERVATION"),
            (row, "=Grave", "MAJOR_NONCONFORMITY"),
            (other, "Withdrawn", "MINOR_NONCONFORMITY"),
        )
    ]
    send(service, "PATCH", f"/auditItems/{made[1]}/", {"status": "RESOLVED", "correction": "Closed."})
    assert send(service, "POST", f"/auditItems/{made[1]}/verify/", {"note": "Tried."}, "owner").is_success
    assert send(service, "POST", f"/auditItems/{made[2]}/archive/").is_success


def test_it_says_what_was_checked_found_and_verified(service: Served) -> None:
    reported(service)
    report = listed(service, REPORT)
    assert [one["name"] for one in report["findings"]] == ["=Grave", "Withdrawn", "Small"]
    grave, withdrawn, _ = report["findings"]
    assert (grave["verifiedByName"], grave["verificationNote"], grave["correction"]) == ("Owner", "Tried.", "Closed.")
    assert grave["control"].startswith("A.1 ")
    assert (grave["isLive"], withdrawn["isLive"]) == (True, False)
    assert report["findingCounts"] == [
        {"type": "MAJOR_NONCONFORMITY", "findings": 1, "verified": 1},
        {"type": "OBSERVATION", "findings": 1, "verified": 0},
    ]
    assert [row["about"]["id"] for row in report["rows"]] == ["sun.A.1", "sun.A.2"]
    assert [row["about"]["kind"] for row in report["notChecked"]] == ["policies"]
    assert [one["kind"] for one in report["frame"]] == ["assets"]
    assert report["criteria"][-1] == "Policies"


@pytest.mark.parametrize("name", ["xlsx", "pdf"])
def test_a_file_depends_on_its_data_alone(name: str, service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reported(service)
    query = {"organizationId": ALPHA, "format": name}
    first, second = (service.client.get(REPORT, params=query, headers=service.bearer("auditor")) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.content == second.content
    if name == "xlsx":
        book = load_workbook(BytesIO(first.content))
        assert book.sheetnames == ["Findings", "Checked", "Not checked", "Also in scope"]
        words = [str(cell.value) for row in book["Findings"].iter_rows() for cell in row]
        assert {"=Grave", "Withdrawn\narchived"} <= {*words}
        return
    assert first.content.startswith(b"%PDF")
    monkeypatch.setattr(pdf, "MAX_ROWS", 2)
    refused(service.client.get(REPORT, params=query, headers=service.bearer("auditor")), 400, "validation")
