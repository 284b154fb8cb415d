"""The order of the list of controls, and what its search looks at, where nothing is in order by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from normata.frameworks.control_query import ControlQuery
from normata.frameworks.operations import ControlPage
from tests import world
from tests.listing import TIMESTAMP, Item, Listing, by_id, in_order, natural
from tests.served import served

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


def varied() -> dict[str, list[dict[str, Any]]]:
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
    return {
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


@pytest.fixture(scope="module")
def controls(shared_url: str) -> Iterator[Listing]:
    """The list, as a viewer of alpha asks for it, over a world that no test changes."""
    with served(shared_url) as opened:
        opened.load(varied())
        yield opened.listing(PATH)


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


def test_items_have_every_field(controls: Listing) -> None:
    response = controls.get()
    ControlPage.model_validate_json(response.content, strict=True)
    items = response.json()["items"]
    assert any(item["sourceMatches"] for item in items)
    for item in items:
        _conforms(item)


def test_timestamps_are_utc_with_milliseconds(controls: Listing) -> None:
    """Whatever offset they were loaded with."""
    times = {item["id"]: (item["createdAt"], item["updatedAt"]) for item in controls.items(frameworks="fw-turn")}
    assert times["turn-root"] == ("2019-12-31T23:30:00.000Z",) * 2
    assert times["turn-6"] == ("2020-01-01T00:00:00.000Z", "2019-12-31T23:30:00.001Z")


def test_children_are_in_catalog_order(controls: Listing) -> None:
    root = controls.items(frameworks="fw-turn")[0]
    assert [child["id"] for child in root["children"]] == [f"turn-{number}" for number in range(7, 0, -1)]


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


# --- Order


@pytest.mark.parametrize("direction", [None, "asc"])
def test_default_order(direction: str | None, controls: Listing) -> None:
    """The framework's identifier, naturally (SUN-9 before SUN-10), then the catalog's order."""
    catalogs = [[f"{name}.A", *(f"{name}.A.{number}" for number in range(1, 13))] for name in ("own", "sun", "moon")]
    turn = ["turn-root", *(f"turn-{number}" for number in range(7, 0, -1))]
    expected = [*catalogs[0], *catalogs[1], *turn, *catalogs[2]]
    assert controls.ids(sortDirection=direction) == expected
    assert [item["id"] for item in controls.walk(sortDirection=direction)] == expected


def test_default_order_descending(controls: Listing) -> None:
    assert controls.ids(sortDirection="desc") == controls.ids()[::-1]


def test_every_column_is_tried() -> None:
    schema = ControlQuery.model_json_schema(by_alias=True)["properties"]["sortColumn"]
    assert [value for choice in schema["anyOf"] for value in choice.get("enum", ())] == list(SORT_KEYS)


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("column", SORT_KEYS)
def test_sort_columns(column: str, direction: str, controls: Listing) -> None:
    """Every column, naturally where it is text, with the id to tell equals apart; over pages, too."""
    items = controls.items()
    assert len({str(SORT_KEYS[column](item)) for item in items}) > 1
    expected = in_order(by_id(items), SORT_KEYS[column], direction)
    assert controls.ids(sortColumn=column, sortDirection=direction) == expected
    if direction == "desc":
        assert [item["id"] for item in controls.walk(sortColumn=column, sortDirection=direction)] == expected


def test_ascending_unless_said(controls: Listing) -> None:
    assert controls.ids(sortColumn="name") == controls.ids(sortColumn="name", sortDirection="asc")


# --- Search


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
def test_searched_fields(search: str, found: set[str], controls: Listing) -> None:
    page = controls.page(search=search)
    assert {item["id"] for item in page["items"]} == found
    assert page["total"] == len(found)
