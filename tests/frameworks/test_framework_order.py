"""The items of the list of frameworks and their order, where nothing is in order by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from normata.frameworks.framework_list import FrameworkQuery
from normata.frameworks.operations import FrameworkPage
from tests import world
from tests.listing import TIMESTAMP, Item, Listing, by_id, in_order, natural
from tests.served import served

PATH = "/frameworks/"

# As the interface has them.
STRINGS = {
    "id", "organizationId", "identifier", "slug", "version", "identifierColor", "publishedAt", "deprecatedAt", "name",
    "description", "lastSyncAt", "createdAt", "updatedAt", "createdBy", "requiredTier",
}  # fmt: skip
BOOLEANS = {"isActive", "isCentralized", "isAdopted"}
OBJECTS = {"_count", "frameworkAdoptions", "adoption"}
NULLABLE = {
    "organizationId", "version", "identifierColor", "publishedAt", "deprecatedAt", "description", "lastSyncAt",
    "createdBy", "adoption",
}  # fmt: skip

SORT_KEYS: dict[str, Callable[[Item], Any]] = {
    "name": lambda item: natural(item["name"]),
    "identifier": lambda item: natural(item["identifier"]),
    "slug": lambda item: natural(item["slug"]),
    "version": lambda item: None if item["version"] is None else natural(item["version"]),
    "controls": lambda item: item["_count"]["controls"],
    "adoptedAt": lambda item: item["adoption"] and item["adoption"]["adoptedAt"],
    "publishedAt": lambda item: item["publishedAt"],
    "createdAt": lambda item: item["createdAt"],
    "updatedAt": lambda item: item["updatedAt"],
}


def varied() -> dict[str, list[dict[str, Any]]]:
    """More frameworks than two pages of five, with ties and gaps in every column."""
    moments = ["2020-01-01T00:30:00+01:00", "2020-01-01", "2019-12-31T23:30:00.001Z", None, "2021-02-03"]
    adopted = [None, "2022-01-01", None, "2021-01-01T01:00:00+02:00", "2022-01-01", "2020-12-31T23:00:00.001Z"]
    return {
        "frameworks": [
            {
                "id": f"fw-{99 - number}",
                "identifier": f"{'SUN-' if number % 2 else 'sun-'}{[9, 10, 2, 1][number % 4]}",
                "name": ["Same", "same", "Same 10", "same 9"][number % 4],
                "slug": f"s-{[3, 20, 100][number % 3]}",
                "version": [None, "10", "2", "2.0", "2.0-rc"][number % 5],
                "publishedAt": moments[number % 5],
                "createdAt": moments[number % 3],
                "updatedAt": moments[(number + 1) % 3],
                "organizationId": world.ALPHA if number % 3 == 0 else None,
                "requiredTier": "enterprise",
                "createdBy": "importer",
                "lastSyncAt": "2024-02-29T12:00:00-11:30",
                "deprecatedAt": "2025-01-01",
            }
            for number in range(11)
        ],
        "controls": [
            {"id": f"control-{number}-{index}", "frameworkId": f"fw-{99 - number}", "name": "Control"}
            for number in range(11)
            for index in range(number % 3)
        ],
        "frameworkAdoptions": [
            {
                "id": f"adopt-{number}",
                "organizationId": world.ALPHA,
                "frameworkId": f"fw-{99 - number}",
                "adoptedAt": moment,
            }
            for number, moment in enumerate(adopted)
            if moment
        ],
    }


@pytest.fixture(scope="module")
def frameworks(shared_url: str) -> Iterator[Listing]:
    """The list, as a viewer of alpha asks for it, over a world that no test changes."""
    with served(shared_url) as opened:
        opened.load(varied())
        yield opened.listing(PATH)


# --- Items


def _conforms(item: Item) -> None:
    """Check names, nulls and types against the interface, not against the product's own models."""
    assert item.keys() == STRINGS | BOOLEANS | OBJECTS
    assert {name for name, value in item.items() if value is None} <= NULLABLE
    assert all(item[name] is None or type(item[name]) is str for name in STRINGS)
    assert all(type(item[name]) is bool for name in BOOLEANS)
    times = [item[name] for name in STRINGS if name.endswith("At")]
    assert all(time is None or TIMESTAMP.fullmatch(time) for time in times)
    assert item["_count"].keys() == {"controls"}
    assert type(item["_count"]["controls"]) is int
    assert item["isCentralized"] == (item["organizationId"] is None)
    assert item["isAdopted"] == (item["adoption"] is not None)
    assert item["frameworkAdoptions"] == ([item["adoption"]] if item["isAdopted"] else [])
    for adoption in item["frameworkAdoptions"]:
        assert adoption.keys() == {"id", "adoptedAt"}
        assert all(type(value) is str for value in adoption.values())
        assert TIMESTAMP.fullmatch(adoption["adoptedAt"])


def test_items_have_every_field(frameworks: Listing) -> None:
    response = frameworks.get()
    FrameworkPage.model_validate_json(response.content, strict=True)
    items = response.json()["items"]
    assert {item["isAdopted"] for item in items} == {True, False}
    for item in items:
        _conforms(item)


def test_one_framework_in_full(frameworks: Listing) -> None:
    """Timestamps are in UTC with milliseconds, whatever they were loaded as."""
    [item] = (item for item in frameworks.items() if item["id"] == "fw-96")
    adoption = {"id": "adopt-3", "adoptedAt": "2020-12-31T23:00:00.000Z"}
    assert item == {
        "id": "fw-96",
        "organizationId": world.ALPHA,
        "identifier": "SUN-1",
        "slug": "s-3",
        "version": "2.0",
        "identifierColor": None,
        "publishedAt": None,
        "deprecatedAt": "2025-01-01T00:00:00.000Z",
        "name": "same 9",
        "description": None,
        "lastSyncAt": "2024-02-29T23:30:00.000Z",
        "createdAt": "2019-12-31T23:30:00.000Z",
        "updatedAt": "2020-01-01T00:00:00.000Z",
        "createdBy": "importer",
        "isActive": True,
        "isCentralized": False,
        "isAdopted": True,
        "requiredTier": "enterprise",
        "_count": {"controls": 0},
        "frameworkAdoptions": [adoption],
        "adoption": adoption,
    }


# --- Order


def test_every_column_is_tried() -> None:
    schema = FrameworkQuery.model_json_schema(by_alias=True)["properties"]["sortColumn"]
    assert [value for choice in schema["anyOf"] for value in choice.get("enum", ())] == list(SORT_KEYS)


@pytest.mark.parametrize("direction", [None, "asc", "desc"])
def test_default_order_is_by_name(direction: str | None, frameworks: Listing) -> None:
    expected = in_order(by_id(frameworks.items()), SORT_KEYS["name"], direction or "asc")
    assert frameworks.ids(sortDirection=direction) == expected


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("column", SORT_KEYS)
def test_sort_columns(column: str, direction: str, frameworks: Listing) -> None:
    """Every column, naturally where it is text, null last, with the id to tell equals apart; over pages, too."""
    items = frameworks.items()
    assert len({str(SORT_KEYS[column](item)) for item in items}) > 2
    expected = in_order(by_id(items), SORT_KEYS[column], direction)
    assert frameworks.ids(sortColumn=column, sortDirection=direction) == expected
    if direction == "desc":
        assert [item["id"] for item in frameworks.walk(sortColumn=column, sortDirection=direction)] == expected


@pytest.mark.parametrize("column", ["version", "adoptedAt", "publishedAt"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_null_sorts_last(column: str, direction: str, frameworks: Listing) -> None:
    values = [SORT_KEYS[column](item) for item in frameworks.items(sortColumn=column, sortDirection=direction)]
    present = [value for value in values if value is not None]
    assert 0 < len(present) < len(values)
    assert values == [*present, *[None] * (len(values) - len(present))]


def test_search_in_slugs(frameworks: Listing) -> None:
    found = frameworks.items(search="s-100", adoptedOnly="false", sortColumn="slug")
    assert {item["slug"] for item in found} == {"s-100"}
