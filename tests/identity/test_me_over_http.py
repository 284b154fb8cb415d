"""Saying what one is called, over HTTP."""

from __future__ import annotations

import pytest

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
