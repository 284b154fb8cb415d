"""The audit programme: the state of each audit follows from its dates and the present; on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from normata.audits.programme import state_of
from tests.audits.test_checklists import AUDIT, listed, planned, send
from tests.served import Served
from tests.world import ALPHA

_DATES = (
    ("ended long ago", "2001-01-01", "2001-01-02"),
    ("ended", "2002-01-01", "2002-01-02T10:00:00Z"),
    ("without a date", None, None),
    ("planned", "2990-01-01", "2990-01-05"),
    ("planned first", "2980-01-01", None),
    ("running", "2003-01-01T08:00:00Z", None),
    ("running first", "2002-06-01", "2990-01-01"),
)


def programme(service: Served, **query: Any) -> Any:
    answer = service.client.get(
        "/audit-programme/", params={"organizationId": ALPHA, **query}, headers=service.bearer("viewer")
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_audits_that_run_come_first_then_planned_ones_then_ended_ones(service: Served) -> None:
    for name, started, ended in _DATES:
        body = {"organizationId": ALPHA, "name": name, "started": started, "ended": ended}
        assert send(service, "POST", "/audits/", body).status_code == 201, name
    ours = [name for name, _, _ in _DATES]
    expected = ["running first", "running", "planned first", "planned", "without a date", "ended", "ended long ago"]
    whole = programme(service, limit=100)["items"]
    assert [one["name"] for one in whole if one["name"] in ours] == expected
    for state in ("RUNNING", "PLANNED", "ENDED"):
        some = programme(service, limit=100, state=state)
        assert some["items"] == [one for one in whole if one["state"] == state]
        assert some["total"] == len(some["items"])
    path, by_pages = f"/audit-programme/?organizationId={ALPHA}&limit=5", []
    while path:
        page = service.client.get(path, headers=service.bearer("viewer"))
        by_pages += page.json()["items"]
        path = page.links.get("next", {}).get("url", "")
    assert by_pages == whole


def test_it_says_how_far_checklists_are_and_what_was_found(service: Served) -> None:
    rows = planned(service)
    for number, status in ((0, "CONFORMING"), (1, "NONCONFORMING")):
        assert send(service, "PATCH", f"/checklist-rows/{rows[number]['id']}/", {"status": status}).status_code == 200
    path = f"/checklist-rows/{rows[1]['id']}/findings/"
    made = [send(service, "POST", path, {"name": name}).json() for name in ("One", "Two", "Three")]
    assert send(service, "PATCH", f"/auditItems/{made[0]['id']}/", {"status": "RESOLVED"}).status_code == 200
    assert send(service, "POST", f"/auditItems/{made[0]['id']}/verify/").status_code == 200
    assert send(service, "POST", f"/auditItems/{made[1]['id']}/archive/").status_code in (200, 204)
    one = next(one for one in programme(service, limit=100)["items"] if one["id"] == AUDIT)
    assert (one["rows"], one["checked"], one["findings"], one["openFindings"]) == (3, 2, 2, 1)
    assert one["counts"] == listed(service)["counts"]


@pytest.mark.parametrize(
    ("started", "ended", "state"),
    [
        (None, None, "PLANNED"),
        ("2026-03-05T00:00:00.000Z", None, "RUNNING"),
        ("2026-03-05T12:00:00.000Z", None, "RUNNING"),
        ("2026-03-05T12:00:00.001Z", None, "PLANNED"),
        ("2026-03-04T00:00:00.000Z", "2026-03-05T00:00:00.000Z", "RUNNING"),
        ("2026-03-04T00:00:00.000Z", "2026-03-04T00:00:00.000Z", "ENDED"),
        (None, "2026-03-05T12:00:00.000Z", "ENDED"),
    ],
)
def test_an_audit_runs_until_its_end_has_passed(started: str | None, ended: str | None, state: str) -> None:
    """A plain date has passed when its day has."""
    assert state_of(started, ended, "2026-03-05T12:00:00.000Z") == state
