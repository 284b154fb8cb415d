"""Saying what one is called, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from normata.identity.model import User
from normata.identity.tokens import tokens
from normata.wiring import changes_of
from tests import stored
from tests.databases import on_both
from tests.identity.token_requests import admin
from tests.served import Served, refused
from tests.world import ALPHA

ME = "/me/"


@on_both
def test_the_new_name_is_seen_everywhere(service: Served) -> None:
    client, mine, others = service.client, admin(service, "editor"), admin(service, "owner")
    in_alpha = {"organizationId": ALPHA}
    assert client.get(ME, headers=mine).json()["name"] != "Kim Lee"

    changed = client.patch(ME, json={"name": " Kim Lee "}, headers=mine)

    assert (changed.status_code, changed.json()["name"]) == (200, "Kim Lee")
    assert client.get(ME, headers=mine).json() == changed.json()
    members = client.get("/members/", params=in_alpha, headers=others).json()["items"]
    assert {one["name"] for one in members if one["userId"] == "user-editor"} == {"Kim Lee"}
    for kind in ("users", "memberships"):
        names = client.get("/names/", params=in_alpha | {"kind": kind}, headers=others).json()["items"]
        assert "Kim Lee" in {one["label"] for one in names}
    task = client.post("/tasks/", json=in_alpha | {"title": "T"}, headers=mine).json()
    client.post("/archive/", json=in_alpha | {"records": [{"kind": "tasks", "id": task["id"]}]}, headers=mine)
    archived = client.get("/archive/", params=in_alpha | {"recordId": task["id"]}, headers=others).json()["items"]
    assert [one["archivedBy"]["name"] for one in archived] == ["Kim Lee"]


def test_what_is_left_out_stays(service: Served) -> None:
    mine = admin(service, "editor")
    before = service.client.get(ME, headers=mine).json()
    assert service.client.patch(ME, json={}, headers=mine).json() == before
    assert service.client.patch(ME, json={"name": before["name"]}, headers=mine).json() == before


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "a\u202eb", "x" * 501, None, 7])
def test_a_name_that_nobody_sees_is_refused(name: object, service: Served) -> None:
    mine = admin(service, "editor")
    response = service.client.patch(ME, json={"name": name}, headers=mine)
    [fault] = refused(response, 400, "validation")["errors"]
    assert fault["name"] == "name"
    assert stored.rows(service.database, User, id="user-editor")[0]["name"] != name


NONE_PREFERRED: dict[str, Any] = {"timeZone": None, "dateFormat": None, "theme": None, "mail": None, "mailByType": {}}
PREFERRED: dict[str, Any] = {
    "timeZone": "America/New_York",
    "dateFormat": "MONTH_DAY_YEAR",
    "theme": "DARK",
    "mail": "OFF",
    "mailByType": {"record.due_now": "IMMEDIATELY", "coverage.lost": "DAILY"},
}


@on_both
def test_preferences_are_stored_with_the_user(service: Served) -> None:
    client, mine, others = service.client, admin(service, "editor"), admin(service, "owner")
    before = client.get(ME, headers=mine).json()
    assert before == before | NONE_PREFERRED

    changed = client.patch(ME, json=PREFERRED, headers=mine)

    assert (changed.status_code, changed.json()) == (200, before | PREFERRED)
    assert client.get(ME, headers=mine).json() == changed.json()
    fewer: dict[str, Any] = {"theme": None, "mailByType": {}}
    assert client.patch(ME, json=fewer, headers=mine).json() == before | PREFERRED | fewer
    assert client.get(ME, headers=others).json().items() >= NONE_PREFERRED.items()
    row = stored.row(service.database, User, "user-editor")
    assert (row["time_zone"], row["date_format"], row["theme"]) == ("America/New_York", "MONTH_DAY_YEAR", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("timeZone", value) for value in ("", "Berlin", "../UTC", "europe/berlin", "Europe/Berlin\0", 7)),
        *(("dateFormat", value) for value in ("", "%Y", "year_month_day")),
        *(("theme", value) for value in ("", "SYSTEM", "dark", True)),
        *(("mail", value) for value in ("", "daily", "WEEKLY", False)),
        ("mailByType/record.assigned", {"record.assigned": None}),
        ("mailByType", "OFF"),
        ("isMailRefused", True),
    ],
)
def test_a_preference_that_nobody_can_follow_is_refused(name: str, value: object, service: Served) -> None:
    mine = admin(service, "editor")
    response = service.client.patch(ME, json=PREFERRED | {name.partition("/")[0]: value}, headers=mine)
    [fault] = refused(response, 400, "validation")["errors"]
    assert fault["name"] == name
    assert service.client.get(ME, headers=mine).json().items() >= NONE_PREFERRED.items()


def test_a_type_of_notifications_that_there_is_not_is_refused(service: Served) -> None:
    body = {"mailByType": {"record.asigned": "OFF"}}
    response = service.client.patch(ME, json=body, headers=admin(service, "editor"))
    [fault] = refused(response, 400, "validation")["errors"]
    assert "record.assigned" in fault["message"]


def refuse(service: Served, email: str) -> None:
    """Note that the mail server has refused this address of the editor's."""
    statement = update(User).where(User.id == "user-editor").values(refused_email=email)
    service.database.write_now(lambda transaction: transaction.rows(statement))


@on_both
def test_an_address_that_the_mail_server_has_refused_is_tried_again(service: Served) -> None:
    """It is one's own address that was refused; another one, which it was before, says nothing."""
    client, mine = service.client, admin(service, "editor")
    email = client.get(ME, headers=mine).json()["email"]
    for refused_email, is_refused in ((email, True), ("before@alpha.example", False)):
        refuse(service, refused_email)
        assert client.get(ME, headers=mine).json()["isMailRefused"] is is_refused
    refuse(service, email)
    assert client.patch(ME, json={"isMailRefused": False}, headers=mine).json()["isMailRefused"] is False
    assert stored.row(service.database, User, "user-editor")["refused_email"] is None


@on_both
def test_a_narrowed_token_a_small_scope_and_a_program_cannot(service: Served) -> None:
    robot = changes_of(service.database).make_now(
        lambda unit: tokens.create(unit, email="robot-org-alpha", scope="admin", lifetime=None)
    )
    for headers in (
        service.bearer("editor", scope="write"),
        admin(service, "editor", organization=ALPHA),
        {"Authorization": f"Bearer {robot}"},
    ):
        refused(service.client.patch(ME, json={"name": "Kim Lee"}, headers=headers), 403, "forbidden")
        assert service.client.get(ME, headers=headers).json()["name"] != "Kim Lee"
