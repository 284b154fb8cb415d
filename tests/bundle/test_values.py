"""What the values of a bundle may be: each bad one is a fault with its place, each good one is kept as it is."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.records.kinds import Asset, Label, Policy, Task
from tests import mostly_sqlite, world
from tests.bundle.documents import Document, asset, faults, found, label, notification, policy, task
from tests.databases import on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.mark.parametrize(
    ("document", "place", "reason"),
    [
        ({"labels": [label(colour="red")]}, "/labels/0/colour", "is not a known field"),
        ({"labels": [label(search_text="x")]}, "/labels/0/search_text", "is not a known field"),
        ({"labels": [label(organization_id=ALPHA)]}, "/labels/0/organization_id", "is not a known field"),
        ({"controls": [{"id": "sun.A.1", "position": 1}]}, "/controls/0/position", "is not a known field"),
        (
            {"controls": [{"id": "sun.A.1", "organizationId": ALPHA}]},
            "/controls/0/organizationId",
            "is not a known field",
        ),
        (
            {"risk-reviews": [{"id": "r", "updatedAt": "2026-01-01"}]},
            "/risk-reviews/0/updatedAt",
            "is not a known field",
        ),
        ({"labels": [{"organizationId": ALPHA, "name": "x"}]}, "/labels/0/id", "is required"),
        ({"labels": [label("")]}, "/labels/0/id", "must have at least 1 character"),
        ({"labels": [label("x" * 256)]}, "/labels/0/id", "must have at most 255 characters"),
        ({"labels": [label("a\nb")]}, "/labels/0/id", "must "),
        ({"labels": [label(name=None)]}, "/labels/0/name", "must be a string"),
        ({"labels": [label(name=3)]}, "/labels/0/name", "must be a string"),
        ({"labels": [label(name="")]}, "/labels/0/name", "must have at least 1 character"),
        ({"labels": [label(name="x" * 501)]}, "/labels/0/name", "must have at most 500 characters"),
        ({"labels": [label(name="a\x00")]}, "/labels/0/name", "must "),
        ({"labels": [label(slug="a b")]}, "/labels/0/slug", "must "),
        ({"labels": [label(slug=None)]}, "/labels/0/slug", "must be a string"),
        ({"labels": [label(color=["red"])]}, "/labels/0/color", "must be a string"),
        ({"labels": [{"id": "new", "organizationId": ALPHA}]}, "/labels/0/name", "is required"),
        ({"labels": [{"id": "new", "name": "x"}]}, "/labels/0/organizationId", "is required"),
        ({"controls": [{"id": "new", "name": "x"}]}, "/controls/0/frameworkId", "is required"),
        ({"users": [{"id": "new"}]}, "/users/0/email", "is required"),
        ({"users": [{"id": "new", "email": "nobody"}]}, "/users/0/email", "must "),
        (
            {"memberships": [{"id": "member-viewer", "role": "king"}]},
            "/memberships/0/role",
            "must be one of viewer, auditor, editor",
        ),
        (
            {"memberships": [{"id": "member-owner", "expiresAt": "2126-03-01"}]},
            "/memberships/0/expiresAt",
            "must be null for an owner",
        ),
        ({"tasks": [task(shortId="3")]}, "/tasks/0/shortId", "must be an integer"),
        ({"tasks": [task(shortId=3.5)]}, "/tasks/0/shortId", "must be an integer"),
        ({"tasks": [task(shortId=True)]}, "/tasks/0/shortId", "must be an integer"),
        ({"tasks": [task(shortId=0)]}, "/tasks/0/shortId", "must be at least 1"),
        ({"tasks": [task(shortId=2**31)]}, "/tasks/0/shortId", "must be at most 2147483647"),
        ({"tasks": [task(order=10**400)]}, "/tasks/0/order", "must be "),
        ({"tasks": [task(deadline="tomorrow")]}, "/tasks/0/deadline", "must be a date, such as"),
        ({"tasks": [task(deadline="2026-02-30")]}, "/tasks/0/deadline", "does not exist"),
        ({"tasks": [task(deadline="2026-02-03T04:05:06")]}, "/tasks/0/deadline", "with an offset"),
        ({"tasks": [task(deadline=1767322800)]}, "/tasks/0/deadline", "must be a string"),
        ({"tasks": [task(status="todo")]}, "/tasks/0/status", "must "),
        ({"tasks": [task(status="")]}, "/tasks/0/status", "must "),
        ({"tasks": [task(status="X" * 65)]}, "/tasks/0/status", "must have at most 64 characters"),
        ({"tasks": [task(status="IN PROGRESS")]}, "/tasks/0/status", "must "),
        ({"tasks": [task(status=None)]}, "/tasks/0/status", "must be a string"),
        ({"assets": [asset(confidentialityRating="3")]}, "/assets/0/confidentialityRating", "number"),
        ({"assets": [asset(confidentialityRating=True)]}, "/assets/0/confidentialityRating", "number"),
        ({"assets": [asset(confidentialityRating=2**53)]}, "/assets/0/confidentialityRating", "must be at most"),
        ({"assets": [asset(confidentialityRating=-1e300)]}, "/assets/0/confidentialityRating", "must be at least"),
        (
            {"record-categories": [{"id": "r", "allowPortalSubmission": 1}]},
            "/record-categories/0/allowPortal",
            "true or",
        ),
        (
            {"controlCoverages": [{"id": "s", "coverageStatus": "MOSTLY"}]},
            "/controlCoverages/0/coverageStatus",
            "NONE, P",
        ),
        ({"controlMatches": [{"id": "m", "matchLevel": "NONE"}]}, "/controlMatches/0/matchLevel", "PARTIAL, FULL"),
        ({"controls": [{"id": "sun.A.1", "type": "DOMAIN"}]}, "/controls/0/type", "must be one of CATEGORY, CONTROL"),
        ({"notifications": [notification(payload="x")]}, "/notifications/0/payload", "must be a JSON object"),
        ({"notifications": [notification(payload={"titleKey": 3})]}, "/notifications/0/payload/titleKey", "a string"),
        (
            {"notifications": [notification(payload={"title": "x"})]},
            "/notifications/0/payload/title",
            "is not a known field",
        ),
        ({"notifications": [notification(payload={"params": [1]})]}, "/notifications/0/payload/params", "object"),
        ({"notifications": [notification(category="policies")]}, "/notifications/0/category", "must "),
    ],
)
def test_a_bad_value_is_one_fault_with_its_place(
    shared_database: Database, document: Document, place: str, reason: str
) -> None:
    [fault] = faults(shared_database, document)
    assert fault.startswith(place)
    assert reason in fault


def test_a_fault_deep_in_a_row_further_down(database: Database) -> None:
    good = [notification(id=f"n{number}") for number in range(3)]
    assert faults(database, {"notifications": [*good, notification(id="n3", payload={"url": {}})]}) == [
        "/notifications/3/payload/url: must be a string"
    ]


def test_enums_are_open_to_any_token(database: Database) -> None:
    world.load(database, {"tasks": [task(status="WAITING_4_GODOT", priority="P0", type="X" * 64)]})
    stored = found(database, Task, "new")
    assert (stored["status"], stored["priority"], stored["type"]) == ("WAITING_4_GODOT", "P0", "X" * 64)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-11-20T09:14:03.120Z", "2026-11-20T09:14:03.120Z"),
        ("2026-11-20t09:14:03z", "2026-11-20T09:14:03.000Z"),
        ("2026-11-20 09:14:03+05:30", "2026-11-20T03:44:03.000Z"),
        ("2026-01-01T00:30:00.999999+01:00", "2025-12-31T23:30:00.999Z"),
        ("2026-11-20", "2026-11-20T00:00:00.000Z"),
        ("2024-02-29T23:59:59-00:00", "2024-02-29T23:59:59.000Z"),
    ],
)
@on_both
def test_timestamps_are_brought_to_utc_with_milliseconds(database: Database, given: str, kept: str) -> None:
    world.load(database, {"tasks": [task(deadline=given)]})
    assert found(database, Task, "new")["deadline"] == kept
    assert world.load(database, {"tasks": [task(deadline=given)]})["tasks"].unchanged == 1


@pytest.mark.parametrize(
    ("given", "kept"), [(3, "3"), (2.5, "2.5"), (-0.0, "0"), (1e3, "1000"), (0.1, "0.1"), (2**53 - 1, str(2**53 - 1))]
)
@on_both
def test_numbers_stay_as_they_were_given(database: Database, given: float, kept: str) -> None:
    world.load(database, {"assets": [asset(integrityRating=given)]})
    assert repr(found(database, Asset, "new")["integrityRating"]) == kept
    assert world.load(database, {"assets": [asset(integrityRating=given)]})["assets"].unchanged == 1


@pytest.mark.parametrize("content", [0, "", False, [], {}, [None, {"a": [1.5, "\U0001f6b2 \u2028"]}], "text"])
@on_both
def test_content_may_be_any_json(database: Database, content: Any) -> None:
    world.load(database, {"policies": [policy(content=content)]})
    assert repr(found(database, Policy, "new")["content"]) == repr(content)


@on_both
def test_identifiers_are_kept_as_they_are(database: Database) -> None:
    odd = "urn:x/ä ~1'\"%_🚲"
    world.load(database, {"labels": [label(odd)]})
    assert found(database, Label, odd)["id"] == odd
