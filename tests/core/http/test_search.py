"""Pages and search, on both databases: what a list counts, skips and finds must not depend on which it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.core.http.operation import ListOperation
from normata.records.base import Restorable, text_columns
from normata.records.kinds import Label
from tests.cells import each
from tests.core.http.crowd import crowd
from tests.core.http.samples import families
from tests.databases import on_both_shared
from tests.listing import FULLY_COUNTED, LISTS, SEARCHED, Listing
from tests.served import Served, served
from tests.world import ALPHA

all_lists = families(lambda operation: operation in LISTS)
searched_lists = families(lambda operation: operation in SEARCHED)

pytestmark = on_both_shared

TEXTS = {
    "street": "Straße des Friedens",
    "summer": "Été À Noël",
    "izmir": "\u0130zmir",
    "greek": "\u039f\u0394\u039f\u03a3 \u039a\u03b1\u03bb\u03ae",
    "wide": "\uff21\uff22\uff23 \uff11\uff12",
    "percent": "50% of",
    "under": "a_b",
    "slash": "c\\d",
    "plain": "axb cd 500 of",
    "breaks": "first\nsecond",
}


@pytest.fixture(scope="module")
def texts(shared_url: str) -> Iterator[Served]:
    """A world that no test changes, with more than two pages of five of everything, and things named by the texts."""
    named: list[dict[str, Any]] = [
        {"id": f"text-{key}", "name": text, "identifier": f"T-{number}", "slug": f"t-{number}"}
        for number, (key, text) in enumerate(TEXTS.items())
    ]
    with served(shared_url) as service:
        service.load(crowd(12))
        service.load({"frameworks": named, "controls": [row | {"frameworkId": "fw-sun"} for row in named]})
        service.load({kind.path: [as_record(kind, row) for row in named] for kind in Restorable.kinds})
        archived = {"archivedAt": "2026-03-01T09:00:00.000Z"}
        rows = [as_record(Label, row | {"id": row["id"].replace("-", "-archived-")}) | archived for row in named]
        service.load({"labels": rows})
        service.wait_for_seals()
        yield service


def as_record(kind: type[Restorable], named: dict[str, Any]) -> dict[str, Any]:
    """Such a row as a record; a kind without slugs has it in another text."""
    second = "slug" if "slug" in kind.sql().c else to_camel(text_columns(kind)[-1])
    return {"id": named["id"], "organizationId": ALPHA, kind.title_column(): named["name"], second: named["slug"]}


@pytest.fixture
def listing(operation: ListOperation, texts: Served) -> Listing:
    """The list, as one who has more than two pages of five of each asks for it."""
    return texts.listing(operation.path, "editor")


# --- Pages


@all_lists
def test_pages_cover_everything_once(listing: Listing) -> None:
    everything = listing.items(limit=100)
    assert len(everything) > 10
    assert listing.walk() == everything
    assert len({item["id"] for item in everything}) == len(everything)


@all_lists
@each(("limit", "items"), [("5", 5), ("6", 6), ("100", None)])
def test_limits_within_bounds(limit: str, items: int | None, listing: Listing) -> None:
    page = listing.page(limit=limit)
    assert page["limit"] == int(limit)
    assert len(page["items"]) == (items or page["total"])


@all_lists
@each("number", [20, 100, 101, 2**31, 2**63, 2**64, 10**30, 10**400])
def test_page_past_the_end(number: int, listing: Listing) -> None:
    """No items and the true total, however far past the end; beyond 10,000 rows, most lists have no such page."""
    total = listing.page()["total"]
    if number > 100 and listing.path not in FULLY_COUNTED:
        response = listing.get(page=number)
        assert (response.status_code, response.json()["code"]) == (400, "page_too_deep")
        assert "cursor" in response.json()["detail"]
        return
    exact = {} if listing.path in FULLY_COUNTED else {"totalIsExact": True}
    assert listing.page(page=number) == {"items": [], "total": total, "page": number, "limit": 100} | exact


# --- Search, where a list has it


@searched_lists
def test_there_is_something_to_find(operation: ListOperation, listing: Listing) -> None:
    """What is not there, no search finds."""
    found = {row_id.replace("-archived-", "-") for row_id in listing.ids(limit=100)}
    missing = {f"text-{key}" for key in TEXTS} - found
    assert not missing, f"the fixture `texts` must bring rows of {operation.path} with these ids"


@searched_lists
@each(
    ("search", "found"),
    [
        ("Straße", {"street"}),
        ("STRASSE", {"street"}),
        ("stra\u1e9ee", {"street"}),
        ("friedens straße", {"street"}),
        ("frieden stras t-0", {"street"}),
        ("friedens straße absent", set()),
        ("été", {"summer"}),
        ("ÉTÉ", {"summer"}),
        ("e\u0301te\u0301", {"summer"}),
        ("à NOËL", {"summer"}),
        ("\u0130ZMIR", {"izmir"}),
        ("i\u0307zmir", {"izmir"}),
        ("οδος", {"greek"}),
        ("ΟΔΟΣ καλή", {"greek"}),
        ("abc 12", {"wide"}),
        ("\uff41\uff42\uff43", {"wide"}),
        ("50%", {"percent"}),
        ("%of", set()),
        ("5%f", set()),
        ("a_b", {"under"}),
        ("a_", {"under"}),
        ("c\\d", {"slash"}),
        ("c\\", {"slash"}),
        ("c\\\\d", set()),
        ("a?b", set()),
        ("a*b", set()),
        ("first second", {"breaks"}),
        ("first\nsecond", {"breaks"}),
        ("t-1 été", {"summer"}),
        ("'", set()),
        ('"', set()),
    ],
)
def test_search(search: str, found: set[str], listing: Listing) -> None:
    """Every word must occur somewhere, in any case of any script; no character is special."""
    ids = listing.ids(search=search)
    assert {item.removeprefix("text-").removeprefix("archived-") for item in ids if item.startswith("text-")} == found


@searched_lists
@each("character", ["%", "_", "\\"])
def test_special_characters_stand_for_themselves(character: str, listing: Listing) -> None:
    found = listing.items(search=character)
    assert 0 < len(found) < len(listing.items())
    if listing.path != "/names/":  # which shows less of a row than it searches
        assert all(any(character in str(value) for value in item.values()) for item in found)


@searched_lists
@each("blanks", ["", " ", "   ", "\t", "\u3000", " \n "])
def test_blanks_search_for_nothing(blanks: str, listing: Listing) -> None:
    assert listing.page(search=blanks) == listing.page()


@searched_lists
def test_search_is_trimmed_before_it_is_measured(listing: Listing) -> None:
    assert {"text-street", "text-archived-street"} & set(listing.ids(search=f"{' ' * 150}strasse{' ' * 150}"))


@searched_lists
@each("search", ["x" * 200, "é" * 200, "ж " * 99 + "ж"])
def test_longest_search(search: str, listing: Listing) -> None:
    assert listing.page(search=search)["total"] == 0


@searched_lists
def test_total_counts_what_the_search_leaves(listing: Listing) -> None:
    page = listing.page(search="t-", limit=5)
    assert (len(page["items"]), page["total"]) == (5, len(TEXTS))
