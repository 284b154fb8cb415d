"""Who is told that controls have lost coverage: admins and owners of all, whoever has a task about one of that."""

from __future__ import annotations

from typing import Any

import pytest

from normata.notifications.model import Notification
from tests import stored
from tests.databases import on_both
from tests.notifications.test_subscriber import inbox
from tests.records.restoring import Row
from tests.served import Served
from tests.world import ALPHA, BETA

IN_ALPHA = {"organizationId": ALPHA}


def told(service: Served, user: str) -> list[Row]:
    """What a user is told of coverage, newest first."""
    items = inbox(service, service.bearer(user, scope="read"), BETA if user == "foreigner" else ALPHA)
    return [item for item in items if item["type"] == "coverage.lost"]


def take_back(service: Served, control: str, user: str = "editor") -> None:
    """Take back what is stated of a control."""
    response = service.client.delete(f"/controls/{control}/coverage/", params=IN_ALPHA, headers=service.bearer(user))
    assert response.status_code == 200, response.text


@on_both
def test_admins_are_told_and_the_link_leads_to_the_control(service: Served) -> None:
    """sun.A.1 makes moon.A.1 FULL, and that own.A.2: both have lost what they rested on, sun.A.1 was taken back."""
    take_back(service, "sun.A.1")
    assert told(service, "editor") == told(service, "viewer") == told(service, "foreigner") == []
    for user in ("admin", "owner"):
        (item,) = told(service, user)
        assert (item["category"], item["readAt"]) == ("CONTROLS", None)
        payload = item["payload"]
        assert payload == {
            "titleKey": "notifications.control.coverage_lost.title",
            "bodyKey": "notifications.control.coverage_lost.body",
            "params": {
                "count": 2,
                "controls": "A.2 own control 2, A.1 moon control 1",
                "changedBy": "Editor",
            },
            "url": "/controls/own.A.2/",
            "entityType": "Control",
            "entityId": "own.A.2",
            "entityLabel": "own control 2",
            "entityMeta": "A.2",
        }
        response = service.client.get(payload["url"], params=IN_ALPHA, headers=service.bearer(user, scope="read"))
        assert (response.status_code, response.json()["id"]) == (200, "own.A.2")


def test_nobody_is_told_of_what_they_did_themselves_nor_of_a_gain(service: Served) -> None:
    take_back(service, "sun.A.1", "admin")
    assert told(service, "admin") == []
    assert len(told(service, "owner")) == 1
    body = {"organizationId": ALPHA, "coverageStatus": "FULL"}
    response = service.client.put("/controls/sun.A.1/coverage/", json=body, headers=service.bearer("editor"))
    assert response.status_code == 200
    assert len(told(service, "owner")) == 1


@pytest.mark.parametrize(
    ("task", "is_told"),
    [
        ({}, True),
        ({"status": "DONE"}, False),
        ({"archivedAt": "2026-01-01"}, False),
        ({"assigneeMemberId": None}, False),
        ({"assigneeMemberId": "member-editor"}, False),
    ],
)
def test_whoever_has_a_task_about_it_is_told_of_that(task: dict[str, Any], is_told: bool, service: Served) -> None:
    """Of this control alone, and once for several tasks."""
    service.load(
        {
            "controlCoverages": [{"id": "about", **IN_ALPHA, "controlId": "moon.A.1", "coverageStatus": "NONE"}],
            "tasks": [
                {"id": f"task-{number}", **IN_ALPHA, "title": "T", "controlCoverageId": "about"}
                | {"assigneeMemberId": "member-viewer", **task}
                for number in range(2)
            ],
        }
    )
    take_back(service, "sun.A.1")
    assert [item["payload"]["params"]["count"] for item in told(service, "viewer")] == [1] * is_told
    assert [item["payload"]["entityId"] for item in told(service, "viewer")] == ["moon.A.1"] * is_told
    assert told(service, "editor") == []


def test_an_admin_with_a_task_is_told_once(service: Served) -> None:
    service.load(
        {
            "controlCoverages": [{"id": "about", **IN_ALPHA, "controlId": "moon.A.1", "coverageStatus": "NONE"}],
            "tasks": [
                {"id": "task", **IN_ALPHA, "title": "T", "controlCoverageId": "about"}
                | {"assigneeMemberId": "member-admin"}
            ],
        }
    )
    take_back(service, "sun.A.1")
    assert [item["payload"]["params"]["count"] for item in told(service, "admin")] == [2]


def test_what_was_said_of_the_controls_themselves_is_no_news(service: Served) -> None:
    """Whoever lowers two statements knows of both, though one rests on the other as well."""
    statements = [{"controlId": name, "coverageStatus": "NONE"} for name in ("sun.A.1", "moon.A.1", "own.A.2")]
    response = service.client.patch(
        "/controls/coverage/", json={**IN_ALPHA, "assessments": statements}, headers=service.bearer("editor")
    )
    assert response.status_code == 200, response.text
    assert told(service, "owner") == []


@on_both
def test_however_many_there_are_it_is_one_notification(service: Served) -> None:
    """With the number, and the first few by name; of the framework that was left nothing, since it is gone."""
    service.load(
        {
            "controls": [
                {"id": f"many-{number}", "frameworkId": "fw-moon", "identifier": f"M.{number}", "name": "Many"}
                for number in range(30)
            ],
            "controlMatches": [
                {"id": f"many-{number}", "sourceControlId": "sun.A.3", "targetControlId": f"many-{number}"}
                | {"matchLevel": "FULL"}
                for number in range(30)
            ],
        }
    )
    response = service.client.delete("/frameworks/fw-sun/adoption/", params=IN_ALPHA, headers=service.bearer("admin"))
    assert response.status_code == 200, response.text
    (item,) = told(service, "owner")
    assert item["payload"]["params"]["count"] > 30
    assert item["payload"]["params"]["controls"].count(",") == 5
    assert item["payload"]["params"]["controls"].endswith(", …")
    assert "sun control" not in str(item)
    assert len(stored.rows(service.database, Notification, type="coverage.lost")) == 1
