"""The list of frameworks: its items, which of them an organization sees, its order and its filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from normata.database import Database
from normata.frameworks.adoption import adopt
from normata.frameworks.routes import FrameworkPage
from tests import world
from tests.listing import TIMESTAMP, Item, Listing, in_order, natural

Add = Callable[[dict[str, list[dict[str, Any]]]], None]

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


@pytest.fixture
def frameworks(listing: Callable[..., Listing]) -> Listing:
    """The list, as a viewer of alpha asks for it."""
    return listing(PATH)


@pytest.fixture
def varied(add: Add) -> None:
    """More frameworks than two pages of five, with ties and gaps in every column."""
    moments = ["2020-01-01T00:30:00+01:00", "2020-01-01", "2019-12-31T23:30:00.001Z", None, "2021-02-03"]
    adopted = [None, "2022-01-01", None, "2021-01-01T01:00:00+02:00", "2022-01-01", "2020-12-31T23:00:00.001Z"]
    add(
        {
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
    )


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


@pytest.mark.usefixtures("varied")
def test_items_have_every_field(frameworks: Listing) -> None:
    response = frameworks.get()
    FrameworkPage.model_validate_json(response.content, strict=True)
    items = response.json()["items"]
    assert {item["isAdopted"] for item in items} == {True, False}
    for item in items:
        _conforms(item)


@pytest.mark.usefixtures("varied")
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


def test_a_framework_that_is_not_adopted(frameworks: Listing) -> None:
    [item] = (item for item in frameworks.items() if item["id"] == "fw-star")
    assert item["isAdopted"] is False
    assert item["adoption"] is None
    assert item["frameworkAdoptions"] == []
    assert item["_count"] == {"controls": 13}
    assert item["requiredTier"] == "free-trial"


def test_adoption_is_the_organizations_own(listing: Callable[..., Listing], database: Database) -> None:
    """What another organization has adopted, and when, is not told."""
    [before] = (item for item in listing(PATH).items() if item["id"] == "fw-star")
    database.write_now(lambda connection: adopt(connection, world.ALPHA, ["STAR"]))
    [ours] = (item for item in listing(PATH).items() if item["id"] == "fw-star")
    [theirs] = (item for item in listing(PATH, "foreigner").items(organizationId=world.BETA) if item["id"] == "fw-star")
    assert before["adoption"] is None
    assert theirs["adoption"] == {"id": "adopt-beta-star", "adoptedAt": world.EARLIER}
    assert ours["isAdopted"]
    assert ours["adoption"]["id"] != theirs["adoption"]["id"]


# --- What an organization sees


def test_visible_frameworks(listing: Callable[..., Listing]) -> None:
    """The active centralized ones, the adopted ones, and the organization's own; never another's."""
    shared = {"fw-sun", "fw-moon", "fw-star"}
    assert set(listing(PATH).ids()) == shared | {"fw-own"}
    assert set(listing(PATH, "foreigner").ids(organizationId=world.BETA)) == shared | {"fw-foreign"}


def test_an_inactive_framework_is_seen_where_it_is_adopted(listing: Callable[..., Listing], add: Add) -> None:
    add({"frameworkAdoptions": [{"id": "adopt-old", "organizationId": world.ALPHA, "frameworkId": "fw-old"}]})
    [item] = (item for item in listing(PATH).items() if item["id"] == "fw-old")
    assert (item["isActive"], item["isAdopted"]) == (False, True)
    assert "fw-old" not in listing(PATH, "foreigner").ids(organizationId=world.BETA)


def test_an_own_framework_is_seen_even_when_inactive(listing: Callable[..., Listing], add: Add) -> None:
    add({"frameworks": [{"id": "fw-draft", "name": "Draft", "organizationId": world.ALPHA, "isActive": False}]})
    assert "fw-draft" in listing(PATH).ids()
    assert "fw-draft" not in listing(PATH, "foreigner").ids(organizationId=world.BETA)


# --- Filters


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"fw-sun", "fw-moon", "fw-star", "fw-own"}),
        ({"includeUserDefined": "true"}, {"fw-sun", "fw-moon", "fw-star", "fw-own"}),
        ({"includeUserDefined": "false"}, {"fw-sun", "fw-moon", "fw-star"}),
        ({"adoptedOnly": "false"}, {"fw-sun", "fw-moon", "fw-star", "fw-own"}),
        ({"adoptedOnly": "true"}, {"fw-sun", "fw-moon", "fw-own"}),
        ({"adoptedOnly": "true", "includeUserDefined": "false"}, {"fw-sun", "fw-moon"}),
        ({"adoptedOnly": "TRUE", "includeUserDefined": "False"}, {"fw-sun", "fw-moon"}),
    ],
)
def test_filters(query: dict[str, str], found: set[str], frameworks: Listing) -> None:
    page = frameworks.page(**query)
    assert {item["id"] for item in page["items"]} == found
    assert page["total"] == len(found)


@pytest.mark.parametrize("name", ["includeUserDefined", "adoptedOnly"])
@pytest.mark.parametrize("value", ["", "1", "0", "yes", "no", "on", "t", "null", "truee"])
def test_refused_spellings_of_booleans(name: str, value: str, frameworks: Listing) -> None:
    response = frameworks.get(**{name: value})
    assert response.status_code == 400
    assert response.json()["errors"] == [
        {
            "in": "query",
            "name": name,
            "code": "invalid",
            "message": "must be true or false",
            "allowed": ["true", "false"],
        }
    ]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("standard", {"fw-sun", "fw-moon"}),  # name
        ("SUN-10", {"fw-moon"}),  # identifier and slug
        ("star 100%", {"fw-star"}),  # identifier and description
        ("_NEW_ strasse", {"fw-star"}),  # description and name
        ("alpha's", {"fw-own"}),
        ("old", set()),  # inactive
        ("beta", set()),  # foreign
        ("free-trial", set()),
        ("category", set()),  # not of the controls
    ],
)
def test_searched_fields(search: str, found: set[str], frameworks: Listing) -> None:
    page = frameworks.page(search=search)
    assert {item["id"] for item in page["items"]} == found
    assert page["total"] == len(found)


@pytest.mark.usefixtures("varied")
def test_search_in_slugs(frameworks: Listing) -> None:
    found = frameworks.items(search="s-100", adoptedOnly="false", sortColumn="slug")
    assert {item["slug"] for item in found} == {"s-100"}


# --- Order


@pytest.mark.usefixtures("varied")
@pytest.mark.parametrize("direction", [None, "asc", "desc"])
def test_default_order_is_by_name(direction: str | None, frameworks: Listing) -> None:
    expected = in_order(frameworks.items(), SORT_KEYS["name"], direction or "asc")
    assert frameworks.ids(sortDirection=direction) == expected


def test_names_are_ordered_whatever_their_case(frameworks: Listing) -> None:
    assert [item["name"] for item in frameworks.items()] == [
        *("Alpha's own", "moon standard", "Sun Standard", "Étoile Straße")
    ]


@pytest.mark.usefixtures("varied")
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("column", SORT_KEYS)
def test_sort_columns(column: str, direction: str, frameworks: Listing) -> None:
    """Every column, naturally where it is text, null last, with the id to tell equals apart; over pages, too."""
    items = frameworks.items()
    assert len({str(SORT_KEYS[column](item)) for item in items}) > 2
    walked = frameworks.walk(sortColumn=column, sortDirection=direction)
    assert [item["id"] for item in walked] == in_order(items, SORT_KEYS[column], direction)


@pytest.mark.usefixtures("varied")
@pytest.mark.parametrize("column", ["version", "adoptedAt", "publishedAt"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_null_sorts_last(column: str, direction: str, frameworks: Listing) -> None:
    values = [SORT_KEYS[column](item) for item in frameworks.items(sortColumn=column, sortDirection=direction)]
    present = [value for value in values if value is not None]
    assert 0 < len(present) < len(values)
    assert values == [*present, *[None] * (len(values) - len(present))]


@pytest.mark.parametrize("column", ["", "Name", "id", "isAdopted", "isMandatory", "_count", "name,slug"])
def test_unknown_sort_column(column: str, frameworks: Listing) -> None:
    """The fault names the columns that there are."""
    response = frameworks.get(sortColumn=column)
    assert response.status_code == 400
    [fault] = response.json()["errors"]
    assert fault.pop("message") == f"must be one of {', '.join(fault['allowed'])}"
    assert set(fault.pop("allowed")) == SORT_KEYS.keys()
    assert fault == {"in": "query", "name": "sortColumn", "code": "not_allowed"}
