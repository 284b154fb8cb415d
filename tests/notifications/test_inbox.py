"""The list of notifications: its items, whose they are, their order, and which of them are unread."""

from __future__ import annotations

import pytest

from normata.notifications.operations import NotificationPage
from tests import world
from tests.databases import on_both
from tests.listing import TIMESTAMP, Listing
from tests.served import Served

PATH = "/notifications/"

# As the interface has them.
FIELDS = {"id", "type", "category", "payload", "readAt", "createdAt"}
PAYLOAD_STRINGS = {"titleKey", "bodyKey", "url", "entityType", "entityId", "entityLabel", "entityMeta"}


@pytest.fixture
def inbox(shared: Served) -> Listing:
    """The list, as alpha's editor asks for it, in a world that no test changes."""
    return shared.listing(PATH, "editor")


@pytest.fixture
def changing(service: Served) -> Listing:
    """The list, as alpha's editor asks for it, in a world of the test's own."""
    return service.listing(PATH, "editor")


def test_items_have_every_field(inbox: Listing) -> None:
    response = inbox.get()
    NotificationPage.model_validate_json(response.content, strict=True)
    items = response.json()["items"]
    assert {item["readAt"] is None for item in items} == {True, False}
    for item in items:
        assert item.keys() == FIELDS
        assert all(type(item[name]) is str for name in ("id", "type", "category", "createdAt"))
        assert TIMESTAMP.fullmatch(item["createdAt"])
        assert item["readAt"] is None or TIMESTAMP.fullmatch(item["readAt"])
        assert item["payload"].keys() == PAYLOAD_STRINGS | {"params"}
        assert type(item["payload"]["params"]) is dict
        assert all(item["payload"][name] is None or type(item["payload"][name]) is str for name in PAYLOAD_STRINGS)


def test_one_notification_in_full(inbox: Listing) -> None:
    assert inbox.items(limit=5, page=3) == [
        {
            "id": f"note-{number:02}",
            "type": "policy.published",
            "category": "POLICIES",
            "payload": {
                "titleKey": "t",
                "bodyKey": "b",
                "url": "/policies/",
                "params": {"n": number},
                "entityType": None,
                "entityId": None,
                "entityLabel": None,
                "entityMeta": None,
            },
            "readAt": read_at,
            "createdAt": f"2026-03-{number + 1:02}T10:00:00.000Z",
        }
        for number, read_at in ((1, None), (0, "2026-03-01T10:00:00.000Z"))
    ]


@on_both
def test_params_leave_as_they_were_given(changing: Listing, service: Served) -> None:
    params = {"text": "é", "whole": 3, "part": 2.5, "none": None, "list": [1, {"deep": True}], "": ""}
    entity = {"entityType": "Policy", "entityId": "p-1", "entityLabel": "Access", "entityMeta": "access"}
    service.load(
        {
            "notifications": [
                {
                    "id": "note-params",
                    "organizationId": world.ALPHA,
                    "userId": "user-editor",
                    "category": "SOMETHING_NEW",
                    "payload": {"params": params} | entity,
                    "createdAt": "2026-04-01T00:00:00+02:00",
                }
            ]
        }
    )
    newest = changing.items()[0]
    assert newest["id"] == "note-params"
    assert newest["createdAt"] == "2026-03-31T22:00:00.000Z"
    assert newest["category"] == "SOMETHING_NEW"
    assert newest["payload"] == {"titleKey": None, "bodyKey": None, "url": None, "params": params} | entity


@pytest.mark.parametrize(
    ("user", "found"),
    [
        ("editor", [f"note-{number:02}" for number in range(11, -1, -1)]),
        ("viewer", ["note-unread-viewer", "note-read-viewer"]),
        ("owner", ["note-unread-owner", "note-read-owner"]),
        ("admin", ["note-unread-admin", "note-read-admin"]),
    ],
)
def test_only_the_callers_own(user: str, found: list[str], shared: Served) -> None:
    """An owner does not read along either."""
    page = shared.listing(PATH, user).page()
    assert [item["id"] for item in page["items"]] == found
    assert page["total"] == len(found)


def test_only_of_the_organization_asked_for(changing: Listing, service: Served) -> None:
    """A user of two organizations reads those of one at a time."""
    assert changing.get(organizationId=world.BETA).status_code == 404
    service.load(
        {
            "memberships": [{"id": "member-both", "organizationId": world.BETA, "userId": "user-editor"}],
            "notifications": [{"id": "note-beta", "organizationId": world.BETA, "userId": "user-editor"}],
        }
    )
    assert changing.ids(organizationId=world.BETA) == ["note-beta"]
    assert "note-beta" not in changing.ids()


@on_both
def test_newest_first_and_by_id_where_they_are_of_one_moment(changing: Listing, service: Served) -> None:
    service.load(
        {
            "notifications": [
                {
                    "id": f"tie-{number}",
                    "organizationId": world.ALPHA,
                    "userId": "user-editor",
                    "createdAt": ["2026-03-05T10:00:00Z", "2026-03-05T11:00:00+01:00", "2025-01-01"][number % 3],
                }
                for number in (5, 3, 8, 1, 6, 2, 7, 4, 0)
            ]
        }
    )
    items = changing.walk()
    assert len(items) == 21
    moments = [item["createdAt"] for item in items]
    assert moments == sorted(moments, reverse=True)
    same = [item["id"] for item in items if item["createdAt"] == "2026-03-05T10:00:00.000Z"]
    assert len(same) == 7
    assert same in (sorted(same), sorted(same, reverse=True))
    assert changing.ids() == [item["id"] for item in items]


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (None, range(12)),
        ("false", range(12)),
        ("False", range(12)),
        ("true", [number for number in range(12) if number % 3]),
        ("TRUE", [number for number in range(12) if number % 3]),
    ],
)
def test_unread_only(value: str | None, numbers: list[int], inbox: Listing) -> None:
    """The total counts what the filter leaves; the order is the same."""
    page = inbox.page(unreadOnly=value, limit=5)
    expected = [f"note-{number:02}" for number in reversed(numbers)]
    assert (page["total"], [item["id"] for item in page["items"]]) == (len(expected), expected[:5])
    assert [item["id"] for item in inbox.walk(unreadOnly=value)] == expected


@pytest.mark.parametrize("value", ["", "1", "0", "yes", "no", "on", "t", "null"])
def test_refused_spellings_of_unread_only(value: str, inbox: Listing) -> None:
    assert inbox.faults(unreadOnly=value) == [("unreadOnly", "invalid")]


def test_reading_does_not_mark_as_read(inbox: Listing) -> None:
    assert inbox.page() == inbox.page()
