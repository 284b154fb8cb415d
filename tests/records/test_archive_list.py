"""The archive: what is in it, across kinds, and what it says of each record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from normata.records.base import Restorable
from normata.records.kinds import IntegrationCheck, Label, RiskReview, Task
from tests import mostly_sqlite
from tests.databases import on_both
from tests.served import Served, refused, served
from tests.world import ALPHA, ARCHIVED, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

PATH = "/archive/"
KINDS = [kind.path for kind in Restorable.kinds]


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


@pytest.fixture
def find(service: Served) -> Callable[..., list[dict[str, Any]]]:
    """The items of the archive, for a viewer; a parameter may be repeated."""
    headers = service.bearer("viewer")

    def items(**query: Any) -> list[dict[str, Any]]:
        names = {"since": "from", "until": "to"}
        params = {"organizationId": ALPHA} | {names.get(name, name): value for name, value in query.items()}
        response = service.client.get(PATH, params=params, headers=headers)
        assert response.status_code == 200, response.text[:500]
        found: list[dict[str, Any]] = response.json()["items"]
        assert response.json()["total"] >= len(found)
        return found

    return items


Find = Callable[..., list[dict[str, Any]]]


def archive(service: Served, kind: type[Restorable], *, user: str = "editor", state: str = "live", **body: Any) -> str:
    """Archive a record of the world as a request does, and return its id."""
    row_id = record_id(kind, state)
    headers = service.bearer(user)
    response = service.client.post(f"/{kind.path}/{row_id}/archive/", json=body, headers=headers)
    assert response.status_code == 200, response.text[:500]
    return row_id


def test_all_kinds_are_in_it_whoever_archived_them(find: Find) -> None:
    """Also what a load has archived: then nobody knows by whom, and why. Of one moment the kinds have an order."""
    items = find()
    assert {item["kind"] for item in items} == set(KINDS)
    assert {item["archivedAt"] for item in items} == {ARCHIVED}
    assert [item["kind"] for item in items] == sorted((item["kind"] for item in items), key=KINDS.index)
    for item in items:
        assert (item["archivedBy"], item["reason"], item["archiveId"]) == (None, None, None)
        kind = next(kind for kind in Restorable.kinds if kind.path == item["kind"])
        assert item["id"] in (record_id(kind, "archived"), record_id(kind, "taken"))
        assert (item["slug"] is not None) == ("slug" in kind.sql().c)
        assert item["label"].startswith(kind.words())


@pytest.mark.parametrize("kind", Restorable.kinds, ids=lambda kind: str(kind.path))
@on_both
def test_what_stands_in_the_way_is_what_the_restore_says(kind: type[Restorable], service: Served, find: Find) -> None:
    headers = service.bearer("editor")
    items = find(kind=kind.path)
    assert len(items) == (2 if "slug" in kind.sql().c else 1)
    for item in items:
        response = service.client.post(f"/{kind.path}/{item['id']}/restore/", headers=headers)
        assert item["restorable"] == (response.status_code == 200)
        if item["obstacle"] is None:
            assert item["restorable"]
        else:
            problem = refused(response, 409, item["obstacle"]["code"])
            assert problem["conflictingId"] == item["obstacle"]["conflictingId"]


def test_who_archived_it_when_and_why(service: Served, find: Find) -> None:
    first = archive(service, Task, reason="It is done.")
    second = archive(service, RiskReview, user="owner")
    newest, other = find()[:2]
    assert (newest["id"], other["id"]) == (second, first)
    assert newest["archivedAt"] >= other["archivedAt"] > ARCHIVED
    assert other["archivedBy"]["id"] == "user-editor"
    assert other["archivedBy"]["name"]
    assert (other["reason"], newest["reason"]) == ("It is done.", None)
    assert newest["archiveId"] not in (None, other["archiveId"])
    assert newest["slug"] is None


def test_an_entry_counts_only_for_its_own_archiving(service: Served, find: Find) -> None:
    """What was restored and then archived by a load has lost it."""
    row_id = archive(service, Task, reason="It is done.")
    headers = service.bearer("editor")
    assert service.client.post(f"/tasks/{row_id}/restore/", headers=headers).status_code == 200
    assert row_id not in [item["id"] for item in find(kind="tasks")]
    service.load({"tasks": [{"id": row_id, "archivedAt": "2026-06-01"}]})
    assert find(userId="user-editor") == []
    (item,) = find(since="2026-06-01")
    assert (item["id"], item["archivedBy"], item["reason"], item["archiveId"]) == (row_id, None, None, None)
    archive(service, Task, state="namesake", reason="Anew.")
    assert [item["reason"] for item in find(userId="user-editor")] == ["Anew."]


@on_both
def test_filters(service: Served, find: Find) -> None:
    archive(service, Label, user="owner")
    archive(service, IntegrationCheck)
    assert {item["kind"] for item in find(kind=["labels", "tasks"])} == {"labels", "tasks"}
    assert [item["kind"] for item in find(userId="user-owner")] == ["labels"]
    assert [item["kind"] for item in find(userId="user-editor", kind="labels")] == []
    assert find(userId="user-foreigner") == []
    moment = ARCHIVED
    assert {item["archivedAt"] for item in find(since=moment, until="2026-07-01")} == {moment}
    assert find(until=moment) == []
    assert len(find(since=moment)) == len(find())
    assert {item["id"] for item in find(search="LABEL archived")} == {record_id(Label, "archived")}
    assert find(search="label nowhere") == []


@on_both
def test_pages_cover_everything_once(service: Served, find: Find) -> None:
    for kind in Restorable.kinds[::3]:
        archive(service, kind)
    every = find(limit=100)
    pages = [find(limit=7, page=number) for number in range(1, 9)]
    assert [item for page in pages for item in page] == every
    assert len({(item["kind"], item["id"]) for item in every}) == len(every) > 20


@on_both
def test_nothing_of_others_is_in_it(service: Served, find: Find) -> None:
    assert not [item for item in find() if BETA in item["id"] or (item["obstacle"] or {}).get("conflictingId") == BETA]
    response = service.client.get(PATH, params={"organizationId": ALPHA}, headers=service.bearer("foreigner"))
    refused(response, 404, "not_found")


@pytest.mark.parametrize("query", [{"kind": "controls"}, {"kind": ["tasks", ""]}, {"from": "yesterday"}, {"to": "7"}])
def test_what_is_no_filter_is_refused(query: dict[str, Any], service: Served) -> None:
    params = {"organizationId": ALPHA} | query
    response = service.client.get(PATH, params=params, headers=service.bearer("viewer"))
    (fault,) = refused(response, 400, "validation")["errors"]
    assert fault["name"] in query
