"""The list of controls: its items, its order, its filters, and the coverage that follows from the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from normata.database import Database
from normata.frameworks.adoption import adopt
from normata.frameworks.routes import ControlPage
from tests import world
from tests.listing import TIMESTAMP, Item, Listing, in_order, natural

Add = Callable[[dict[str, list[dict[str, Any]]]], None]

PATH = "/controls/"

# As the interface has them.
FIELDS = {
    "id", "identifier", "name", "slug", "purpose", "parentId", "frameworkId", "createdAt", "updatedAt", "type",
    "description", "isMandatory", "isCentralized", "isIndirectlyCovered", "framework", "parent", "coverage",
    "effectiveCoverageStatus", "sourceMatches", "children",
}  # fmt: skip
NULLABLE = {"purpose", "parentId", "parent", "description"}
FRAMEWORK_FIELDS = {"id", "name", "identifier", "identifierColor", "version", "isCentralized"}
MATCHED_FRAMEWORK_FIELDS = {"id", "name", "identifier", "identifierColor"}
REFERENCE_FIELDS = {"id", "identifier", "name"}

RANKS = {"NONE": 0, "PARTIAL": 1, "FULL": 2}
SORT_KEYS: dict[str, Callable[[Item], Any]] = {
    "identifier": lambda item: natural(item["identifier"]),
    "name": lambda item: natural(item["name"]),
    "slug": lambda item: natural(item["slug"]),
    "type": lambda item: item["type"],
    "framework": lambda item: natural(item["framework"]["identifier"]),
    "isMandatory": lambda item: item["isMandatory"],
    "coverageStatus": lambda item: RANKS[item["coverage"]["coverageStatus"]],
    "effectiveCoverageStatus": lambda item: RANKS[item["effectiveCoverageStatus"]],
    "createdAt": lambda item: item["createdAt"],
    "updatedAt": lambda item: item["updatedAt"],
}


@pytest.fixture
def controls(listing: Callable[..., Listing]) -> Listing:
    """The list, as a viewer of alpha asks for it."""
    return listing(PATH)


@pytest.fixture
def varied(add: Add) -> None:
    """An adopted framework of alpha's whose catalog order is no other order, with ties and gaps in every column."""
    moments = ["2020-01-01T00:30:00+01:00", "2020-01-01", "2019-12-31T23:30:00.001Z", "2021-02-03T04:05:06Z"]
    controls: list[dict[str, Any]] = [
        {"id": "turn-root", "identifier": "Z", "name": "Root", "type": "CATEGORY", "createdAt": moments[0]}
    ]
    for number, identifier in enumerate(["C.10", "C.2", "b", "C.02", "A", "c.1", "C.1"]):
        controls.append(
            {
                "id": f"turn-{7 - number}",
                "parentId": "turn-root",
                "identifier": identifier,
                "name": ["same", "SAME", "Same 10", "same 9"][number % 4],
                "slug": f"s-{[3, 20, 3, 100, 1, 20, 3][number]}",
                "isMandatory": number % 3 == 0,
                "description": "Described." if number % 2 else None,
                "createdAt": moments[number % 4],
                "updatedAt": moments[(number + 1) % 3],
            }
        )
    statuses = ["FULL", "PARTIAL", "NONE", "FULL"]
    add(
        {
            "frameworks": [{"id": "fw-turn", "identifier": "SUN-9", "name": "Turn", "organizationId": world.ALPHA}],
            "controls": [control | {"frameworkId": "fw-turn"} for control in controls],
            "controlMatches": [
                {"id": "m-1", "sourceControlId": "turn-7", "targetControlId": "moon.A.5", "matchLevel": "PARTIAL"},
                {"id": "m-2", "sourceControlId": "turn-5", "targetControlId": "moon.A.5", "matchLevel": "FULL"},
                {"id": "m-3", "sourceControlId": "sun.A.10", "targetControlId": "moon.A.5", "matchLevel": "FULL"},
                {"id": "m-4", "sourceControlId": "sun.A.9", "targetControlId": "moon.A.5", "matchLevel": "FULL"},
                {"id": "m-5", "sourceControlId": "moon.A.6", "targetControlId": "moon.A.5", "matchLevel": "FULL"},
                {"id": "m-6", "sourceControlId": "own.A", "targetControlId": "moon.A.5", "matchLevel": "PARTIAL"},
                {"id": "m-7", "sourceControlId": "star.A", "targetControlId": "moon.A.5", "matchLevel": "FULL"},
            ],
            "frameworkAdoptions": [{"id": "adopt-turn", "organizationId": world.ALPHA, "frameworkId": "fw-turn"}],
            "controlCoverages": [
                {
                    "id": f"say-turn-{number}",
                    "organizationId": world.ALPHA,
                    "controlId": f"turn-{number}",
                    "coverageStatus": status,
                }
                for number, status in enumerate(statuses, 1)
            ],
        }
    )


# --- Items


def _conforms(item: Item) -> None:
    """Check names, nulls and types against the interface, not against the product's own models."""
    assert item.keys() == FIELDS
    assert {name for name, value in item.items() if value is None} <= NULLABLE
    strings = FIELDS - {"framework", "parent", "coverage", "sourceMatches", "children"}
    for name in strings:
        expected = bool if name in ("isMandatory", "isCentralized", "isIndirectlyCovered") else str
        assert item[name] is None or type(item[name]) is expected, name
    assert TIMESTAMP.fullmatch(item["createdAt"])
    assert TIMESTAMP.fullmatch(item["updatedAt"])
    assert item["framework"].keys() == FRAMEWORK_FIELDS
    assert type(item["framework"]["isCentralized"]) is bool
    assert item["framework"]["id"] == item["frameworkId"]
    assert item["coverage"].keys() == {"coverageStatus", "coverageGap"}
    assert (item["parent"] is None) == (item["parentId"] is None)
    for reference in [*item["children"], *([item["parent"]] if item["parent"] else [])]:
        assert reference.keys() == REFERENCE_FIELDS
        assert all(type(value) is str for value in reference.values())
    for match in item["sourceMatches"]:
        assert match.keys() == {"id", "matchLevel", "matchedControl"}
        assert match["matchLevel"] in ("PARTIAL", "FULL")
        assert match["matchedControl"].keys() == {"id", "identifier", "name", "slug", "framework"}
        assert match["matchedControl"]["framework"].keys() == MATCHED_FRAMEWORK_FIELDS
    assert item["type"] in ("CATEGORY", "CONTROL")
    assert item["coverage"]["coverageStatus"] in RANKS
    assert item["effectiveCoverageStatus"] in RANKS


@pytest.mark.usefixtures("varied")
def test_items_have_every_field(controls: Listing) -> None:
    response = controls.get()
    ControlPage.model_validate_json(response.content, strict=True)
    items = response.json()["items"]
    assert any(item["sourceMatches"] for item in items)
    for item in items:
        _conforms(item)


@pytest.mark.usefixtures("varied")
def test_timestamps_are_utc_with_milliseconds(controls: Listing) -> None:
    """Whatever offset they were loaded with."""
    times = {item["id"]: (item["createdAt"], item["updatedAt"]) for item in controls.items(frameworks="fw-turn")}
    assert times["turn-root"] == ("2019-12-31T23:30:00.000Z",) * 2
    assert times["turn-6"] == ("2020-01-01T00:00:00.000Z", "2019-12-31T23:30:00.001Z")


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


@pytest.mark.usefixtures("varied")
def test_children_are_in_catalog_order(controls: Listing) -> None:
    root = controls.items(frameworks="fw-turn")[0]
    assert [child["id"] for child in root["children"]] == [f"turn-{number}" for number in range(7, 0, -1)]


@pytest.mark.usefixtures("varied")
def test_source_matches_are_in_framework_and_catalog_order(controls: Listing) -> None:
    """Those from frameworks that are not adopted are left out; those from the same framework are not."""
    [item] = (item for item in controls.items() if item["id"] == "moon.A.5")
    assert [match["matchedControl"]["id"] for match in item["sourceMatches"]] == [
        *("own.A", "sun.A.9", "sun.A.10", "turn-7", "turn-5", "moon.A.6")
    ]
    assert [match["id"] for match in item["sourceMatches"]] == ["m-6", "m-4", "m-3", "m-1", "m-2", "m-5"]
    assert [match["matchLevel"] for match in item["sourceMatches"]] == ["PARTIAL", "FULL", "FULL", "PARTIAL"] + [
        "FULL"
    ] * 2


def test_a_child_on_another_page_is_named_all_the_same(controls: Listing) -> None:
    root = controls.items(limit=5)[0]
    assert len(root["children"]) == 12


# --- Coverage


def test_coverage_of_the_world(controls: Listing) -> None:
    """Computed by hand: statements, matches capped by their source and their level, roll-up, and what is indirect."""
    expected = {
        ("sun.A", "NONE", "PARTIAL", False),  # some children are above NONE, by statements alone
        ("sun.A.1", "FULL", "FULL", False),
        ("sun.A.2", "PARTIAL", "PARTIAL", False),
        ("sun.A.3", "FULL", "FULL", False),
        ("moon.A", "NONE", "PARTIAL", True),  # its children are covered by matches only
        ("moon.A.1", "NONE", "FULL", True),  # from sun.A.1
        ("moon.A.2", "NONE", "PARTIAL", True),  # the match is FULL, its source is not
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


def test_a_new_adoption_is_in_the_next_answer(controls: Listing, database: Database) -> None:
    """Controls of a framework that is not adopted are absent, and their matches too, until it is."""
    before = {item["id"]: item for item in controls.items()}
    assert not any(name.startswith(("star.", "foreign.")) for name in before)
    assert before["moon.A.4"]["sourceMatches"] == []
    database.write_now(lambda connection: adopt(connection, world.ALPHA, ["STAR"]))
    after = {item["id"]: item for item in controls.items()}
    assert after.keys() - before.keys() == {"star.A", *(f"star.A.{number}" for number in range(1, 13))}
    assert [match["id"] for match in after["moon.A.4"]["sourceMatches"]] == ["star.A.4->moon.A.4"]
    assert after["moon.A.4"]["effectiveCoverageStatus"] == "NONE"


def test_a_new_statement_is_in_the_next_answer(controls: Listing, add: Add) -> None:
    def effective() -> tuple[str, str]:
        shown = {item["id"]: item["effectiveCoverageStatus"] for item in controls.items()}
        return shown["moon.A.2"], shown["sun.A.2"]

    assert effective() == ("PARTIAL", "PARTIAL")
    add({"controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "FULL"}]})
    assert effective() == ("FULL", "FULL")
    add({"controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "NONE"}]})
    assert effective() == ("NONE", "NONE")


def test_statements_of_others_are_not_seen(listing: Callable[..., Listing], database: Database) -> None:
    """Two organizations that have adopted the same framework each see what they themselves have said of it."""
    database.write_now(lambda connection: adopt(connection, world.ALPHA, ["STAR"]))
    ours, theirs = (
        {item["id"]: item for item in listing(PATH, user).items(organizationId=organization)}["star.A.4"]
        for user, organization in (("viewer", world.ALPHA), ("foreigner", world.BETA))
    )
    assert (ours["coverage"]["coverageStatus"], ours["effectiveCoverageStatus"]) == ("NONE", "NONE")
    assert (theirs["coverage"]["coverageStatus"], theirs["effectiveCoverageStatus"]) == ("FULL", "FULL")


# --- Order


@pytest.mark.usefixtures("varied")
@pytest.mark.parametrize("direction", [None, "asc"])
def test_default_order(direction: str | None, controls: Listing) -> None:
    """The framework's identifier, naturally (SUN-9 before SUN-10), then the catalog's order."""
    catalogs = [[f"{name}.A", *(f"{name}.A.{number}" for number in range(1, 13))] for name in ("own", "sun", "moon")]
    turn = ["turn-root", *(f"turn-{number}" for number in range(7, 0, -1))]
    expected = [*catalogs[0], *catalogs[1], *turn, *catalogs[2]]
    assert controls.ids(sortDirection=direction) == expected
    assert [item["id"] for item in controls.walk(sortDirection=direction)] == expected


@pytest.mark.usefixtures("varied")
def test_default_order_descending(controls: Listing) -> None:
    assert controls.ids(sortDirection="desc") == controls.ids()[::-1]


@pytest.mark.usefixtures("varied")
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("column", SORT_KEYS)
def test_sort_columns(column: str, direction: str, controls: Listing) -> None:
    """Every column, naturally where it is text, with the id to tell equals apart; over pages, too."""
    items = controls.items()
    assert len({str(SORT_KEYS[column](item)) for item in items}) > 1
    walked = controls.walk(sortColumn=column, sortDirection=direction)
    assert [item["id"] for item in walked] == in_order(items, SORT_KEYS[column], direction)


@pytest.mark.usefixtures("varied")
def test_ascending_unless_said(controls: Listing) -> None:
    assert controls.ids(sortColumn="name") == controls.ids(sortColumn="name", sortDirection="asc")


@pytest.mark.parametrize("column", ["", "Name", "id", "description", "adoptedAt", "name,slug", "name desc"])
def test_unknown_sort_column(column: str, controls: Listing) -> None:
    """The fault names the columns that there are."""
    response = controls.get(sortColumn=column)
    assert response.status_code == 400
    [fault] = response.json()["errors"]
    assert fault.pop("message") == f"must be one of {', '.join(fault['allowed'])}"
    assert set(fault.pop("allowed")) == SORT_KEYS.keys()
    assert fault == {"in": "query", "name": "sortColumn", "code": "not_allowed"}


# --- Filters


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


def test_an_identifier_may_have_a_comma(controls: Listing, add: Add) -> None:
    add(
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


def test_a_filter_as_long_as_an_address_can_be(client: TestClient, bearer: Callable[..., dict[str, str]]) -> None:
    """Thousands of entries are no fault of the database's."""
    entries = ",".join(format(number, "x") for number in range(11_000))
    address = f"{PATH}?organizationId={world.ALPHA}&limit=5&frameworks={entries},OWN"
    response = client.get(address, headers=bearer("viewer"))
    assert (response.status_code, response.json().get("total")) == (200, 13)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("SUN control 7", {"sun.A.7"}),  # name
        ("a-7-moon", {"moon.A.7"}),  # slug
        ("grösse été", {"sun.A.7", "moon.A.7", "own.A.7"}),  # purpose
        ("50%_off", {"sun.A.7", "moon.A.7", "own.A.7"}),
        ("\\o/ own", {"own.A.7"}),  # purpose and name
        ("z root", {"turn-root"}),  # identifier and name
        ("described c.02", {"turn-4"}),  # description and identifier
        ("Sun Standard", set()),  # not of the framework
        ("FULL", set()),
    ],
)
@pytest.mark.usefixtures("varied")
def test_searched_fields(search: str, found: set[str], controls: Listing) -> None:
    page = controls.page(search=search)
    assert {item["id"] for item in page["items"]} == found
    assert page["total"] == len(found)


def test_search_and_filter_together(controls: Listing) -> None:
    assert controls.ids(search="grösse", frameworks="OWN", sortColumn="name") == ["own.A.7"]
