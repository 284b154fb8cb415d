"""Records of all kinds in one search: found by their texts, those first that have the words in their title."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from normata.records.base import Restorable
from tests.served import Served, served
from tests.world import ALPHA, record_id

KINDS = [kind.path for kind in Restorable.kinds]
Find = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def service(shared_url: str) -> Iterator[Served]:
    """The application over the test world and some records more, on each database."""
    with served(shared_url) as opened:
        yield opened


@pytest.fixture
def find(service: Served) -> Find:
    """What the operation answers a viewer."""

    def answer(user: str = "viewer", organization: str = ALPHA, **query: Any) -> dict[str, Any]:
        page: dict[str, Any] = service.listing("/search/", user).get(organizationId=organization, **query).json()
        return page

    return answer


def test_live_records_of_every_kind_are_there_and_archived_ones_are_not(find: Find) -> None:
    ids = {(item["kind"], item["id"]) for item in find(limit=100)["items"]}
    assert {kind for kind, _ in ids} == set(KINDS)
    assert {(kind.path, record_id(kind, "live")) for kind in Restorable.kinds} <= ids
    assert ids.isdisjoint({(kind.path, record_id(kind, "archived")) for kind in Restorable.kinds})


def test_the_newest_come_first(find: Find) -> None:
    whole = find(limit=100)["items"]
    moments = [item["createdAt"] for item in whole]
    assert moments == sorted(moments, reverse=True)
    assert find(limit=7)["items"] == whole[:7]


@pytest.mark.parametrize("kinds", [["tasks"], ["policies", "labels"]])
def test_of_some_kinds(kinds: list[str], find: Find) -> None:
    assert {item["kind"] for item in find(kind=kinds)["items"]} == set(kinds)


def test_words_in_the_title_come_first(service: Served, find: Find) -> None:
    headers = service.bearer("editor")

    def make(path: str, **fields: str) -> str:
        answer = service.client.post(f"/{path}/", json={"organizationId": ALPHA, **fields}, headers=headers)
        assert answer.status_code == 201, answer.text
        made: str = answer.json()["id"]
        return made

    named = make("tasks", title="Ölwechsel at press 100%_2")
    described = make("vendors", name="Zwei", description="Does the ÖLWECHSEL at the press 100%_2.")
    make("labels", name="Press")
    found = find(search="ÖLWECHSEL 100%_2 press")
    assert [item["id"] for item in found["items"]] == [named, described]
    assert found["items"][0]["label"] == "Ölwechsel at press 100%_2"
    assert found["items"][0]["shortId"]
    assert found["items"][1]["slug"] == "zwei"
    assert find("foreigner", "org-beta", search="Ölwechsel") == {"items": []}


def test_records_of_any_kind_are_found_by_their_ids_in_their_own_organization(find: Find) -> None:
    live, archived = record_id(Restorable.kinds[0], "live"), record_id(Restorable.kinds[-1], "archived")
    ids = [live, archived, "risks-live-org-beta", "nothing"]
    assert [item["id"] for item in find(id=ids)["items"]] == [live]
    found = {item["id"]: item["isLive"] for item in find(id=ids, archived="include")["items"]}
    assert found == {live: True, archived: False}


def test_what_is_wrong_is_told(service: Served) -> None:
    listing = service.listing("/search/")
    answer = listing.get(organizationId=ALPHA, kind="robots", limit=0)
    assert answer.status_code == 400
    assert {error["name"].partition("/")[0] for error in answer.json()["errors"]} == {"kind", "limit"}
