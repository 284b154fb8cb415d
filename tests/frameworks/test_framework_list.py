"""The list of frameworks: which of them an organization sees, and its filters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from normata.adoption.adoption import adopt
from normata.frameworks.framework_list import FrameworkQuery
from tests import world
from tests.databases import change
from tests.listing import Listing
from tests.served import Served, served

PATH = "/frameworks/"


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a world that no test changes."""
    with served(shared_url) as opened:
        yield opened


@pytest.fixture
def frameworks(shared: Served) -> Listing:
    """The list, as a viewer of alpha asks for it."""
    return shared.listing(PATH)


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened


# --- What an organization sees


def test_a_framework_that_is_not_adopted(frameworks: Listing) -> None:
    [item] = (item for item in frameworks.items() if item["id"] == "fw-star")
    assert item["isAdopted"] is False
    assert item["adoption"] is None
    assert item["frameworkAdoptions"] == []
    assert item["_count"] == {"controls": 13}
    assert item["requiredTier"] == "free-trial"


def test_visible_frameworks(shared: Served) -> None:
    """The active centralized ones, the adopted ones, and the organization's own; never another's."""
    everybodys = {"fw-sun", "fw-moon", "fw-star"}
    assert set(shared.listing(PATH).ids()) == everybodys | {"fw-own"}
    assert set(shared.listing(PATH, "foreigner").ids(organizationId=world.BETA)) == everybodys | {"fw-foreign"}


def test_adoption_is_the_organizations_own(service: Served) -> None:
    """What another organization has adopted, and when, is not told."""
    [before] = (item for item in service.listing(PATH).items() if item["id"] == "fw-star")
    change(service.database, lambda unit: adopt(unit, world.ALPHA, ["STAR"]))
    [ours] = (item for item in service.listing(PATH).items() if item["id"] == "fw-star")
    [theirs] = (
        item for item in service.listing(PATH, "foreigner").items(organizationId=world.BETA) if item["id"] == "fw-star"
    )
    assert before["adoption"] is None
    assert theirs["adoption"] == {"id": "adopt-beta-star", "adoptedAt": world.EARLIER}
    assert ours["isAdopted"]
    assert ours["adoption"]["id"] != theirs["adoption"]["id"]


def test_an_inactive_framework_is_seen_where_it_is_adopted(service: Served) -> None:
    service.load({"frameworkAdoptions": [{"id": "adopt-old", "organizationId": world.ALPHA, "frameworkId": "fw-old"}]})
    [item] = (item for item in service.listing(PATH).items() if item["id"] == "fw-old")
    assert (item["isActive"], item["isAdopted"]) == (False, True)
    assert "fw-old" not in service.listing(PATH, "foreigner").ids(organizationId=world.BETA)


def test_an_own_framework_is_seen_even_when_inactive(service: Served) -> None:
    service.load(
        {"frameworks": [{"id": "fw-draft", "name": "Draft", "organizationId": world.ALPHA, "isActive": False}]}
    )
    assert "fw-draft" in service.listing(PATH).ids()
    assert "fw-draft" not in service.listing(PATH, "foreigner").ids(organizationId=world.BETA)


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


# --- Order


def test_names_are_ordered_whatever_their_case(frameworks: Listing) -> None:
    assert [item["name"] for item in frameworks.items()] == [
        *("Alpha's own", "moon standard", "Sun Standard", "Étoile Straße")
    ]


def allowed_columns() -> list[str]:
    """The columns that the list can be sorted by, as its declaration has them; `test_framework_order` tries each."""
    schema = FrameworkQuery.model_json_schema(by_alias=True)["properties"]["sortColumn"]
    return [value for choice in schema["anyOf"] for value in choice.get("enum", ())]


@pytest.mark.parametrize("column", ["", "Name", "id", "isAdopted", "isMandatory", "_count", "name,slug"])
def test_unknown_sort_column(column: str, frameworks: Listing) -> None:
    """The fault names the columns that there are."""
    response = frameworks.get(sortColumn=column)
    assert response.status_code == 400
    [fault] = response.json()["errors"]
    assert fault.pop("message") == f"must be one of {', '.join(fault['allowed'])}"
    assert fault.pop("allowed") == allowed_columns()
    assert fault == {"in": "query", "name": "sortColumn", "code": "not_allowed"}
