"""The list of what is due: from all kinds that declare such dates, what is not done yet, soonest first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from normata.core.db.types import format_timestamp
from normata.records.base import Restorable
from normata.records.due.operations import DuePage
from normata.records.due.queries import due_dates, is_overdue
from normata.records.kinds import Audit
from tests import mostly_sqlite
from tests.databases import on_both, on_both_shared
from tests.listing import Listing
from tests.records.restoring import camel
from tests.served import Served
from tests.world import ALPHA, ARCHIVED, BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

DATES = [pytest.param(date, id=f"{date.kind.path}-{date.column}") for date in due_dates()]
OVERDUE = {date.kind for date in due_dates() if not date.ends_by_passing}  # the world has one record of each that is
# What ends each date, as the interface says it.
ENDS: dict[tuple[str, str], tuple[dict[str, Any], ...]] = {
    ("tasks", "deadline"): ({"status": "DONE"}, {"status": "CANCELLED"}),
    ("auditItems", "deadline"): ({"status": "RESOLVED"}, {"status": "VERIFIED"}, {"status": "CLOSED"}),
    ("policies", "next_review_at"): ({"status": "RETIRED"},),
    ("entitlement-reviews", "deadline"): ({"finishedAt": ARCHIVED},),
    ("risk-reviews", "deadline"): ({"finishedAt": ARCHIVED},),
    ("incidents", "notification_deadline"): ({"status": "CLOSED"}, {"authorityNotifiedAt": ARCHIVED}),
    ("vendors", "contract_expiry"): ({"status": "TERMINATED"},),
    ("records", "due_date"): ({"status": "FINALIZED"}, {"status": "SUPERSEDED"}),
    ("records", "next_review_at"): ({"status": "SUPERSEDED"},),
    ("evidence", "valid_until"): (),
    ("risks", "next_review_at"): ({"status": "CLOSED"},),
    ("vendor-assessments", "deadline"): (
        {"status": "SUBMITTED"},
        {"status": "REVIEWED"},
        {"status": "SUPERSEDED"},
    ),
    ("vendor-assessments", "next_assessment_at"): ({"status": "SUPERSEDED"},),
    ("audits", "started"): ({"started": ARCHIVED},),
}


def in_days(days: float) -> str:
    """So many days from now."""
    return format_timestamp(datetime.now(UTC) + timedelta(days=days))


def add(service: Served, kind: type[Restorable], row_id: str, **values: Any) -> None:
    """Load a live record of alpha."""
    service.load({kind.path: [{"id": row_id, "organizationId": ALPHA, kind.title_column(): row_id} | values]})


@pytest.fixture
def due(service: Served) -> Listing:
    """The list, as alpha's viewer asks for it, in a world of the test's own."""
    return service.listing("/due/", "viewer")


@pytest.fixture
def shared_due(shared: Served) -> Listing:
    """The list, as alpha's viewer asks for it, in a world that tests add to."""
    return shared.listing("/due/", "viewer")


def test_the_dates_are_those_of_the_interface() -> None:
    assert {(date.kind.path, date.column) for date in due_dates()} == ENDS.keys()


@on_both_shared
def test_an_item_in_full(shared: Served, shared_due: Listing) -> None:
    response = shared_due.get()
    DuePage.model_validate_json(response.content, strict=True)
    found = {(item["kind"], item["id"], item["what"]): item for item in response.json()["items"]}
    assert found["tasks", "tasks-live-org-alpha", "deadline"] == {
        "kind": "tasks",
        "id": "tasks-live-org-alpha",
        "label": "task live",
        "what": "deadline",
        "controlId": None,
        "at": "2026-02-10T16:00:00.000Z",
        "overdue": True,
        "responsible": {"memberId": "member-editor", "name": "Editor"},
    }
    owner = found["auditItems", "auditItems-live-org-alpha", "deadline"]["responsible"]
    assert owner == {"memberId": "member-editor", "name": "Editor"}
    for kind, row_id, what in found:
        record = shared.client.get(
            f"/{kind}/{row_id}/", params={"organizationId": ALPHA}, headers=shared.bearer("viewer")
        ).json()
        assert record[what] == found[kind, row_id, what]["at"]


@pytest.mark.parametrize("date", DATES)
def test_what_ends_a_date(date: Any, shared: Served, shared_due: Listing) -> None:
    """Its end and the archive; every other status leaves it."""
    name, at = camel(date.column), in_days(3)
    known = date.kind.sql().c.get("status")
    statuses = known.info["known"] if known is not None else ()
    ends = ENDS[date.kind.path, date.column]
    cases = [*ends, {"archivedAt": ARCHIVED}, {name: None}]
    others = [{"status": one} for one in (*statuses, "SOMETHING_NEW") if statuses and {"status": one} not in ends]
    for number, values in enumerate([*cases, *others]):
        add(shared, date.kind, f"{name} {number}", **({name: at} | values))
    found = {(item["id"], item["what"]) for item in shared_due.items() if item["kind"] == date.kind.path}
    assert {(f"{name} {number}", name) for number, _ in enumerate(cases)}.isdisjoint(found)
    assert {(f"{name} {number}", name) for number, _ in enumerate(others, len(cases))} <= found


@on_both
def test_an_audit_is_due_until_it_has_started(service: Served, due: Listing) -> None:
    """Today without a time is still due; one that is loaded with a date that has passed is not overdue."""
    today, an_hour = datetime.now(UTC).date().isoformat(), timedelta(hours=1)
    dates = {
        "today": today,
        "soon": format_timestamp(datetime.now(UTC) + an_hour),
        "over": format_timestamp(datetime.now(UTC) - an_hour),
        "yesterday": (datetime.now(UTC) - timedelta(days=1)).date().isoformat(),
    }
    for name, started in dates.items():
        add(service, Audit, name, started=started, ended=None)
    found = {item["id"]: item["overdue"] for item in due.items() if item["kind"] == "audits"}
    assert found == {"today": False, "soon": False}
    assert "audits-live-org-alpha" not in due.ids()


@pytest.mark.parametrize(("within", "found"), [(None, 2), ("0d", 0), ("1d", 0), ("3d", 1), ("30d", 2), ("9999d", 3)])
def test_how_far_ahead(within: str | None, found: int, service: Served, due: Listing) -> None:
    """What is overdue is always there."""
    before = due.page(within="0d")["total"]
    assert before == len(OVERDUE)
    kind = due_dates()[0].kind
    for days in (2, 20, 200):
        add(service, kind, f"in {days}", deadline=in_days(days))
    page = due.page(within=within)
    assert page["total"] == before + found
    assert [item["id"] for item in page["items"]][before:] == ["in 2", "in 20", "in 200"][:found]
    assert [item["overdue"] for item in page["items"]] == [True] * before + [False] * found


@pytest.mark.parametrize("within", ["", "30", "d", "-1d", "1.5d", "30D", "30 d", "10000d", "P30D", "30d\n", "\u0663d"])
def test_what_is_no_number_of_days(within: str, shared_due: Listing) -> None:
    assert shared_due.faults(within=within) == [("within", "malformed")]


@on_both
def test_soonest_first_and_in_pages(service: Served, due: Listing) -> None:
    kinds = [date.kind for date in due_dates() if date.column == "deadline"]
    for number in range(20):
        add(service, kinds[number % 4], f"n{number:02}", deadline=in_days([5, 1, -2, 1.5, 1][number % 5]))
    items = due.walk()
    assert len(items) == 20 + len(OVERDUE)
    assert [(item["at"], item["id"]) for item in items] == sorted((item["at"], item["id"]) for item in items)


@on_both
def test_mine(service: Served) -> None:
    """What the caller answers for, in the organization that is asked for."""
    task = due_dates()[0].kind
    service.load({"memberships": [{"id": "also", "organizationId": BETA, "userId": "user-viewer", "role": "viewer"}]})
    add(service, task, "own", deadline=in_days(1), assigneeMemberId="member-viewer")
    viewer, editor = service.listing("/due/", "viewer"), service.listing("/due/", "editor")
    assert viewer.ids(mine="true") == ["own"]
    assert "own" not in editor.ids(mine="true")
    assert len(editor.ids(mine="true")) == len(OVERDUE)
    assert viewer.ids(mine="true", organizationId=BETA) == []
    assert viewer.ids(mine="false") == viewer.ids()


@pytest.mark.parametrize(
    ("at", "moment", "overdue"),
    [
        ("2026-11-20T16:00:00.000Z", "2026-11-20T15:59:59.999Z", False),
        ("2026-11-20T16:00:00.000Z", "2026-11-20T16:00:00.000Z", True),
        ("2026-11-20T00:00:00.000Z", "2026-11-20T23:59:59.999Z", False),
        ("2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z", True),
        ("2026-11-20T00:00:00.000Z", "2026-11-19T00:00:00.000Z", False),
    ],
)
def test_a_date_without_a_time_lasts_its_day(at: str, moment: str, overdue: bool) -> None:
    assert is_overdue(at, moment) is overdue
