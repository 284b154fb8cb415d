"""Following ``next`` through a list, on both databases: nothing is missed and nothing comes twice, whoever writes."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from typing import Any

import pytest

from normata.core.http.operation import ListOperation
from normata.core.schema import paging
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from tests.cells import all_cells
from tests.core.http.crowd import crowd
from tests.core.http.samples import families
from tests.databases import on_both_shared
from tests.listing import FULLY_COUNTED, Item, Listing
from tests.served import Served, served
from tests.world import ALPHA, BETA

pytestmark = on_both_shared

FOLLOWED = [
    one
    for one in OPERATIONS
    if isinstance(one, ListOperation)
    and "{" not in one.path
    and one.authority == "organization"
    and one.operation_id != "listCoverageChanges"  # nothing changes in the world
]
all_lists = families(lambda operation: operation in FOLLOWED)
# A crowd does not invite anybody, and brings no programs.
NOT_CROWDED = ("listInvitations", "listServiceAccounts", "listWebhooks")
paged_lists = families(lambda operation: operation in FOLLOWED and operation.operation_id not in NOT_CROWDED)
KINDS = {f"/{kind.path}/": kind for kind in Restorable.kinds}


@pytest.fixture(scope="module")
def many(shared_url: str) -> Iterator[Served]:
    """The application with several pages of everything."""
    with served(shared_url, page_cache_mib=0) as service:
        service.load(crowd(30))
        service.wait_for_seals()
        yield service


@pytest.fixture
def listing(operation: ListOperation, many: Served) -> Listing:
    """The list, as one asks for it who may read all lists."""
    return many.listing(operation.path, "owner")


def orders(operation: ListOperation) -> Iterator[dict[str, str]]:
    """Queries of a list in each of its orders, and with a filter or a search."""
    properties = operation.query.model_json_schema(by_alias=True)["properties"]
    yield {}
    if "sortDirection" in properties:
        yield {"sortDirection": "desc"}
        for choice in properties["sortColumn"]["anyOf"]:
            for number, column in enumerate(choice.get("enum", ())):
                yield {"sortColumn": column, "sortDirection": "desc" if number % 2 else "asc"}
    if "search" in properties:
        yield {"search": "c"}
        if "sortColumn" in properties:
            yield {"search": "c", "sortColumn": "createdAt"}
    if "archived" in properties:
        yield {"archived": "include"}
    if "updatedSince" in properties:
        yield {"archived": "include", "updatedSince": "2020-01-01"}
    if "effectiveCoverageStatus" in properties:
        yield {"effectiveCoverageStatus": "FULL"}
        yield {"coverageStatus": "NONE"}


def newcomers() -> dict[str, list[dict[str, Any]]]:
    """A few more rows of everything that is listed, before and behind those that are there."""
    placed: dict[str, list[dict[str, Any]]] = {}
    for place, moment in (("a", "1999-01-01"), ("z", "2040-01-01")):
        number = next(_NUMBERS)
        for name, rows in crowd(1, f"{place}{number}").items():
            dated = {"createdAt": moment} if f"/{name}/" in KINDS or name in ("controls", "notifications") else {}
            numbered = {"number": number} if name == "soaVersions" else {}
            placed.setdefault(name, []).extend(row | dated | numbered for row in rows)
    return placed


_NUMBERS = count(1_000)
_WRITES = 5  # between the first pages


@all_lists
def test_who_follows_while_others_write_sees_everything_once(operation: ListOperation, many: Served) -> None:
    """What was there throughout and is unchanged: in every order, with rows added around, changed and removed."""
    listing = many.listing(operation.path, "owner")
    queries = list(orders(operation))
    before = [everything(listing, query) for query in queries]
    walks = [
        listing.pages(limit=min(100, max(5, len(items) // 5)), **query)
        for query, items in zip(queries, before, strict=True)
    ]
    seen: list[list[Item]] = [[] for _ in walks]
    going = set(range(len(walks)))
    for number in count():
        for walk in sorted(going):
            page = next(walks[walk], None)
            if page is None:
                going.remove(walk)
            else:
                seen[walk] += page["items"]
        if not going:
            break
        if number > _WRITES:
            continue
        many.load(newcomers())
        if operation.path in KINDS and seen[0]:
            # The row that the next page begins after is not there any more, and one to come is another one.
            kind, last = KINDS[operation.path], seen[0][-1]["id"]
            gone = {"id": last, "organizationId": ALPHA, "archivedAt": "2026-07-01"}
            changed = {"id": before[0][-1]["id"], "organizationId": ALPHA, kind.title_column(): f"Changed {number}"}
            many.load({kind.path: [gone, changed] if gone["id"] != changed["id"] else [gone]})
    with all_cells() as at:
        for query, started, found in zip(queries, before, seen, strict=True):
            with at(query):
                ids = [key(item) for item in found]
                # What is changed meanwhile moves to where the walk is still to come.
                assert len(set(ids)) == len(ids) or query.get("sortColumn") == "updatedAt"
                ended = {key(item): item for item in everything(listing, query)}
                unchanged = [key(item) for item in started if query == {} or ended.get(key(item)) == item]
                assert [one for one in unchanged if one in ended] == [
                    one for one in ids if one in set(unchanged) and one in ended
                ]
                assert len(unchanged) > 5 or len(started) <= 5


def everything(listing: Listing, query: dict[str, str]) -> list[Item]:
    """All items of a list, by the numbers of its pages."""
    items: list[Item] = []
    for number in count(1):
        page = listing.page(page=number, **query)
        items += page["items"]
        if len(page["items"]) < 100:
            return items
    raise AssertionError


def key(item: Item) -> str:
    """What identifies an item; two kinds may have the same ids."""
    return f"{item.get('kind')} {item['id']} {item.get('what')}"


# --- What is refused


@pytest.fixture
def cursor(listing: Listing) -> str:
    """The cursor of a list's second page."""
    response = listing.get(limit=5)
    return response.links["next"]["url"].rpartition("cursor=")[2]


@paged_lists
def test_a_cursor_belongs_to_its_list_filters_and_order(
    operation: ListOperation, listing: Listing, cursor: str, many: Served
) -> None:
    second = listing.page(cursor=cursor, limit=5)
    assert second["page"] == 2
    assert listing.page(cursor=cursor, limit=7)["items"][:5] == second["items"]
    for query in list(orders(operation))[1:]:
        assert refused(listing, cursor=cursor, **query) == "other_query"
    other = many.listing("/members/" if operation.path == "/events/" else "/events/", "owner")
    assert refused(other, cursor=cursor) == "other_query"
    assert refused(many.listing(operation.path, "foreigner"), cursor=cursor, organizationId=BETA) == "other_query"
    assert refused(listing, cursor=cursor, page=2) == "combined"
    assert refused(listing, cursor=cursor, page=1) == "combined"
    assert refused(listing, cursor=cursor, page=1, limit=5) == "combined", (
        "whatever was answered to the same without page"
    )


@paged_lists
def test_a_cursor_that_was_changed_is_refused(listing: Listing, cursor: str) -> None:
    for changed in ("", "x", "W10", cursor[:-2], cursor + "A", cursor + "=", f" {cursor}", "é", "\0", "A" * 3_000):
        assert refused(listing, cursor=changed) == "malformed"
    for place in range(0, len(cursor), 7):
        changed = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        assert refused(listing, cursor=changed) == "malformed"


@paged_lists
def test_a_forged_cursor_is_no_error_of_the_database(listing: Listing, cursor: str) -> None:
    """Whoever computes the checksum starts at another place of the same list, or is refused."""
    content = json.loads(urlsafe_b64decode(cursor + "==")[6:])
    values: tuple[Any, ...] = (
        None,
        True,
        7,
        2**31,
        10**400,
        1e300,
        float("nan"),
        "x",
        "\0",
        "\ud800",
        "2026-01-01T00:00:00.000Z",
        [],
    )
    for place in range(len(content)):
        for value in values:
            forged = json.dumps([*content[:place], value, *content[place + 1 :]]).encode()
            text = urlsafe_b64encode(sha256(forged).digest()[:6] + forged).rstrip(b"=").decode()
            response = listing.get(cursor=text, limit=5)
            assert response.status_code == 200 or refused(listing, cursor=text, limit=5), (place, value)


def refused(listing: Listing, **params: Any) -> str:
    """The code of the one fault, of the cursor, for which a request is refused."""
    response = listing.get(**params)
    assert response.status_code == 400, response.text[:500]
    (fault,) = response.json()["errors"]
    assert (fault["in"], fault["name"]) == ("query", "cursor")
    return str(fault["code"])


# --- Totals


@paged_lists
def test_most_lists_count_no_more_than_so_many(listing: Listing, cursor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts_all = listing.path in FULLY_COUNTED
    everything = listing.page(limit=5)["total"]
    monkeypatch.setattr(paging, "MOST_COUNTED", 7)
    for place in ({"page": 1}, {"page": 2}, {"cursor": cursor}):
        response = listing.get(limit=5, **place)
        page = response.json()
        if counts_all or page["totalIsExact"]:  # a list that knows its total does not have to count
            assert page["total"] == everything
        else:
            assert page["total"] == paging.MANY.total
            assert "last" not in response.links
        assert "next" in response.links or everything <= 10
    assert listing.get(limit=5, page=3).status_code == (200 if counts_all else 400)


# --- Catalog order has positions


def test_positions_that_move_move_no_page(many: Served) -> None:
    """An import puts controls in front of those that a page has shown: of names, and of changes of coverage."""
    many.load(_framework(range(100, 112)) | {"frameworkAdoptions": [_OF_ALPHA | {"frameworkId": "f"}]})
    many.load({"controlCoverages": [_assessed(number) for number in range(100, 112)]})
    walks = {
        name: many.listing(path, "owner").pages(**query)
        for name, path, query in (
            ("controls", "/names/", {"search": "moved"}),
            ("assessments", "/names/", {"search": "moved", "kind": "controlCoverages"}),
            ("changes", "/coverage/changes/", {}),
        )
    }
    seen = {name: next(walk)["items"] for name, walk in walks.items()}
    expected = [f"f-{number}" for number in range(100, 112)]
    assert [[item["id"] for item in items] for items in seen.values()] == [expected[:5]] * 3
    many.load(_framework(range(90, 112)))
    for name, walk in walks.items():
        seen[name] += [item for page in walk for item in page["items"]]
    found = [[item["id"] for item in items if item["id"].startswith("f-")] for items in seen.values()]
    assert found == [expected] * 3


_OF_ALPHA = {"id": "f", "organizationId": ALPHA}


def _framework(numbers: range) -> dict[str, list[dict[str, Any]]]:
    """A framework, the first one in the order of identifiers, with these controls in this order."""
    controls = [{"id": f"f-{number}", "frameworkId": "f", "name": f"Moved {number}"} for number in numbers]
    return {"frameworks": [{"id": "f", "name": "0"}], "controls": controls}


def _assessed(number: int) -> dict[str, Any]:
    return _OF_ALPHA | {"id": f"f-{number}", "controlId": f"f-{number}", "coverageStatus": "FULL"}
