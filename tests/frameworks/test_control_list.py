"""The list of controls: its items, its filters, and the coverage that follows from the world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from normata.adoption.adoption import adopt
from normata.frameworks.control_query import ControlQuery
from tests import world
from tests.databases import change
from tests.listing import Listing
from tests.served import Served, served

PATH = "/controls/"


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a world that no test changes."""
    with served(shared_url) as opened:
        yield opened


@pytest.fixture
def controls(shared: Served) -> Listing:
    """The list, as a viewer of alpha asks for it."""
    return shared.listing(PATH)


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened


# --- Items


def test_one_control_in_full(controls: Listing) -> None:
    [item] = (item for item in controls.items() if item["id"] == "moon.A.1")
    own, sun = (
        {"id": f"fw-{name}", "name": title, "identifier": identifier, "identifierColor": None}
        for name, title, identifier in (("own", "Alpha's own", "OWN"), ("sun", "Sun Standard", "SUN-2"))
    )
    created, updated = item.pop("createdAt"), item.pop("updatedAt")
    assert created == updated
    assert item == {
        "id": "moon.A.1",
        "identifier": "A.1",
        "name": "moon control 1",
        "slug": "a-1-moon-control-1",
        "purpose": None,
        "description": None,
        "type": "CONTROL",
        "parentId": "moon.A",
        "frameworkId": "fw-moon",
        "isMandatory": False,
        "isCentralized": True,
        "framework": {
            "id": "fw-moon",
            "name": "moon standard",
            "identifier": "SUN-10",
            "identifierColor": "#123456",
            "version": "10",
            "isCentralized": True,
        },
        "parent": {"id": "moon.A", "identifier": "A", "name": "moon category"},
        "coverage": {"coverageStatus": "NONE", "coverageGap": None},
        "effectiveCoverageStatus": "FULL",
        "isIndirectlyCovered": True,
        "sourceMatches": [
            {
                "id": f"{name}.A.1->moon.A.1",
                "matchLevel": level,
                "matchedControl": {
                    "id": f"{name}.A.1",
                    "identifier": "A.1",
                    "name": f"{name} control 1",
                    "slug": f"a-1-{name}-control-1",
                    "framework": framework,
                },
            }
            for name, level, framework in (("own", "PARTIAL", own), ("sun", "FULL", sun))
        ],
        "children": [],
    }


def test_controls_of_an_own_framework_are_not_centralized(controls: Listing) -> None:
    items = controls.items(frameworks="fw-own")
    assert items
    assert (
        {item["isCentralized"] for item in items} == {item["framework"]["isCentralized"] for item in items} == {False}
    )


def test_parent_and_children(controls: Listing) -> None:
    """A category names its controls in catalog order, each control its category."""
    items = {item["id"]: item for item in controls.items(frameworks="fw-sun")}
    root = items.pop("sun.A")
    assert (root["parent"], root["parentId"]) == (None, None)
    assert root["children"] == [
        {"id": f"sun.A.{number}", "identifier": f"A.{number}", "name": f"sun control {number}"}
        for number in range(1, 13)
    ]
    for item in items.values():
        assert item["parentId"] == "sun.A"
        assert item["parent"] == {"id": "sun.A", "identifier": "A", "name": "sun category"}
        assert item["children"] == []


def test_a_child_on_another_page_is_named_all_the_same(controls: Listing) -> None:
    root = controls.items(limit=5)[0]
    assert len(root["children"]) == 12


# --- Coverage


def test_coverage_of_the_world(controls: Listing) -> None:
    """Computed by hand: statements, matches from what is FULL, roll-up, and what is indirect.

    The match sun.A.2 → moon.A.2 is FULL, but its source is PARTIAL, and nobody knows that it lies within the target.
    """
    expected = {
        ("sun.A", "NONE", "PARTIAL", False),  # some children are above NONE, by statements alone
        ("sun.A.1", "FULL", "FULL", False),
        ("sun.A.2", "PARTIAL", "PARTIAL", False),
        ("sun.A.3", "FULL", "FULL", False),
        ("moon.A", "NONE", "PARTIAL", True),  # its children are covered by matches only
        ("moon.A.1", "NONE", "FULL", True),  # from sun.A.1
        ("moon.A.3", "NONE", "PARTIAL", True),  # the source is FULL, the match is not
        ("own.A", "NONE", "PARTIAL", True),
        ("own.A.2", "NONE", "FULL", True),  # from moon.A.1, which has it from sun.A.1
    }
    shown = {
        (
            item["id"],
            item["coverage"]["coverageStatus"],
            item["effectiveCoverageStatus"],
            item["isIndirectlyCovered"],
        )
        for item in controls.items()
    }
    assert {row for row in shown if row[1:] != ("NONE", "NONE", False)} == expected
    assert len(shown) == 39


def test_statement_and_its_absence(controls: Listing) -> None:
    """Where nothing is said the object is there all the same: NONE and null."""
    said = {item["id"]: item["coverage"] for item in controls.items()}
    assert said["sun.A.1"] == {"coverageStatus": "FULL", "coverageGap": None}
    assert said["sun.A.2"] == {"coverageStatus": "PARTIAL", "coverageGap": "Two sites are missing."}
    assert said["sun.A.4"] == {"coverageStatus": "NONE", "coverageGap": None}


def test_a_new_adoption_is_in_the_next_answer(service: Served) -> None:
    """Controls of a framework that is not adopted are absent, and their matches too, until it is."""
    controls = service.listing(PATH)
    before = {item["id"]: item for item in controls.items()}
    assert not any(name.startswith(("star.", "foreign.")) for name in before)
    assert before["moon.A.4"]["sourceMatches"] == []
    change(service.database, lambda unit: adopt(unit, world.ALPHA, ["STAR"]))
    after = {item["id"]: item for item in controls.items()}
    assert after.keys() - before.keys() == {"star.A", *(f"star.A.{number}" for number in range(1, 13))}
    assert [match["id"] for match in after["moon.A.4"]["sourceMatches"]] == ["star.A.4->moon.A.4"]
    assert after["moon.A.4"]["effectiveCoverageStatus"] == "NONE"


def test_a_new_statement_is_in_the_next_answer(service: Served) -> None:
    controls = service.listing(PATH)

    def effective() -> tuple[str, str]:
        shown = {item["id"]: item["effectiveCoverageStatus"] for item in controls.items()}
        return shown["moon.A.2"], shown["sun.A.2"]

    assert effective() == ("NONE", "PARTIAL")
    service.load({"controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "FULL"}]})
    assert effective() == ("FULL", "FULL")
    service.load({"controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "NONE"}]})
    assert effective() == ("NONE", "NONE")


def test_statements_of_others_are_not_seen(service: Served) -> None:
    """Two organizations that have adopted the same framework each see what they themselves have said of it."""
    change(service.database, lambda unit: adopt(unit, world.ALPHA, ["STAR"]))
    ours, theirs = (
        {item["id"]: item for item in service.listing(PATH, user).items(organizationId=organization)}["star.A.4"]
        for user, organization in (("viewer", world.ALPHA), ("foreigner", world.BETA))
    )
    assert (ours["coverage"]["coverageStatus"], ours["effectiveCoverageStatus"]) == ("NONE", "NONE")
    assert (theirs["coverage"]["coverageStatus"], theirs["effectiveCoverageStatus"]) == ("FULL", "FULL")


# --- Filters


def allowed_columns() -> list[str]:
    """The columns that the list can be sorted by, as its declaration has them; `test_control_order` tries each."""
    schema = ControlQuery.model_json_schema(by_alias=True)["properties"]["sortColumn"]
    return [value for choice in schema["anyOf"] for value in choice.get("enum", ())]


@pytest.mark.parametrize("column", ["", "Name", "id", "description", "adoptedAt", "name,slug", "name desc"])
def test_unknown_sort_column(column: str, controls: Listing) -> None:
    """The fault names the columns that there are."""
    response = controls.get(sortColumn=column)
    assert response.status_code == 400
    [fault] = response.json()["errors"]
    assert fault.pop("message") == f"must be one of {', '.join(fault['allowed'])}"
    assert fault.pop("allowed") == allowed_columns()
    assert fault == {"in": "query", "name": "sortColumn", "code": "not_allowed"}


@pytest.mark.parametrize(
    "query",
    [
        {"frameworks": ["fw-sun", "fw-own"]},
        {"frameworks[]": ["fw-sun", "fw-own"]},
        {"frameworks[0]": "fw-sun", "frameworks[1]": "fw-own"},
        {"frameworks[7]": "fw-own", "frameworks[3]": "fw-sun"},
        {"frameworks": "fw-sun,fw-own"},
        {"frameworks": " fw-sun , fw-own "},
        {"frameworks": ["fw-sun,fw-own", "fw-sun"]},
        {"frameworks[]": "fw-sun,fw-own"},
        {"frameworks": "fw-sun", "frameworks[]": "fw-own"},
        {"frameworks": "fw-sun", "frameworks[0]": "OWN"},
        {"frameworks": ["sun-2", "own"]},
        {"frameworks": ["SUN-2", "OWN"]},
        {"frameworks": "SUN-2,fw-own,own"},
        {"frameworks": ["fw-sun", "fw-own", "fw-star", "fw-foreign", "nonsense"]},
        {"frameworks": "fw-sun,,fw-own,"},
    ],
    ids=str,
)
def test_frameworks_filter(query: dict[str, Any], controls: Listing) -> None:
    """In every encoding of the array, by id, slug or identifier, or a mixture."""
    page = controls.page(**query)
    assert {item["frameworkId"] for item in page["items"]} == {"fw-sun", "fw-own"}
    assert page["total"] == len(page["items"]) == 26


@pytest.mark.parametrize("entry", ["fw-moon", "sun-10", "SUN-10"])
def test_frameworks_filter_by_one(entry: str, controls: Listing) -> None:
    assert {item["frameworkId"] for item in controls.items(frameworks=entry)} == {"fw-moon"}


@pytest.mark.parametrize(
    "entry",
    [
        "nonsense",
        "fw-star",
        "STAR",
        "fw-foreign",
        "FOREIGN",
        "foreign",
        "fw-old",
        "SUN",
        "%",
        "fw-su_",
        "fw-sun\0",
        "\0",
        "Sun Standard",
    ],
)
def test_frameworks_that_select_nothing(entry: str, controls: Listing) -> None:
    """Unknown, not adopted, foreign, or part of a name: they say nothing of what exists elsewhere."""
    assert controls.page(frameworks=entry) == {"items": [], "total": 0, "page": 1, "limit": 100}


@pytest.mark.parametrize("entry", ["", ",", " , ", ["", ""]])
def test_an_empty_filter_is_none(entry: str | list[str], controls: Listing) -> None:
    assert controls.page(frameworks=entry) == controls.page()


def test_an_identifier_may_have_a_comma(service: Served) -> None:
    controls = service.listing(PATH)
    service.load(
        {
            "frameworks": [{"id": "fw-comma", "identifier": "Law 1, part 2", "name": "Law"}],
            "controls": [{"id": "comma", "frameworkId": "fw-comma", "name": "Article"}],
            "frameworkAdoptions": [{"id": "adopt-comma", "organizationId": world.ALPHA, "frameworkId": "fw-comma"}],
        }
    )
    assert controls.ids(frameworks="Law 1, part 2") == ["comma"]
    assert {item["frameworkId"] for item in controls.items(frameworks=["Law 1, part 2", "OWN"])} == {
        "fw-comma",
        "fw-own",
    }


def test_a_filter_as_long_as_an_address_can_be(shared: Served) -> None:
    """Thousands of entries are no fault of the database's."""
    entries = ",".join(format(number, "x") for number in range(11_000))
    address = f"{PATH}?organizationId={world.ALPHA}&limit=5&frameworks={entries},OWN"
    response = shared.client.get(address, headers=shared.bearer("viewer"))
    assert (response.status_code, response.json().get("total")) == (200, 13)


def test_search_and_filter_together(controls: Listing) -> None:
    assert controls.ids(search="grösse", frameworks="OWN", sortColumn="name") == ["own.A.7"]
