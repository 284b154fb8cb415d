"""What holds between frameworks, controls and matches: order, hierarchy and whose they are."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from normata.core.changes.source import FaultyInput
from normata.core.db.database import Database
from normata.core.schema.table import Table, sql_table
from normata.frameworks.model import Control, ControlMatch, Framework
from tests import world
from tests.world import ALPHA, BETA

Document = dict[str, list[dict[str, Any]]]


def column(database: Database, table: type[Table], name: str, row_id: str) -> Any:
    """One value of one stored row."""
    columns = sql_table(table).c
    statement = select(columns[name]).where(columns.id == row_id)
    [value] = database.read_now(lambda transaction: transaction.scalars(statement))
    return value


def faults(database: Database, document: Document) -> list[str]:
    with pytest.raises(FaultyInput) as caught:
        world.load(database, document)
    return [f"{fault.place}: {fault.reason}" for fault in caught.value.faults]


# --- Catalog order


def order_of(database: Database, framework_id: str) -> list[str]:
    statement = select(Control.id).where(Control.framework_id == framework_id).order_by(Control.position, Control.id)
    return database.read_now(lambda transaction: transaction.scalars(statement))


def controls(*names: str) -> Document:
    return {"controls": [{"id": name, "frameworkId": "f", "name": name} for name in names]}


@pytest.fixture
def catalog(database: Database) -> Database:
    """The world with one more framework, whose controls came in an order that no sorting gives."""
    world.load(database, {"frameworks": [{"id": "f", "name": "F"}], **controls("c", "a", "b")})
    return database


def test_catalog_order_is_the_order_of_the_array(catalog: Database) -> None:
    assert order_of(catalog, "f") == ["c", "a", "b"]


def test_a_load_of_some_controls_leaves_the_order_and_appends(catalog: Database) -> None:
    world.load(catalog, controls("e", "b", "d", "c"))
    assert order_of(catalog, "f") == ["c", "a", "b", "e", "d"]


def test_a_load_of_all_controls_sets_the_order_anew(catalog: Database) -> None:
    assert world.load(catalog, controls("b", "new", "a", "c"))["controls"].inserted == 1
    assert order_of(catalog, "f") == ["b", "new", "a", "c"]


def test_a_new_framework_names_itself(database: Database) -> None:
    world.load(database, {"frameworks": [{"id": "f", "name": "Straße & Co"}]})
    assert column(database, Framework, "identifier", "f") == "Straße & Co"
    assert column(database, Framework, "is_centralized", "f") is True


# --- Hierarchy


CIRCLE = "leads round in a circle: the control has an ancestor that is its own ancestor"


@pytest.mark.parametrize(
    ("parents", "named"),
    [
        ({"sun.A": "sun.A"}, {0}),
        ({"sun.A": "sun.A.1"}, {0}),  # the stored sun.A.1 lies below the stored sun.A
        ({"new": "newer", "newer": "newest", "newest": "new"}, {0, 1, 2}),
        ({"sun.A.1": "sun.A.2", "sun.A.2": "new", "new": "sun.A.1"}, {0, 1, 2}),
    ],
)
def test_no_control_is_its_own_ancestor(database: Database, parents: dict[str, str], named: set[int]) -> None:
    rows = [{"id": name, "frameworkId": "fw-sun", "name": name, "parentId": parent} for name, parent in parents.items()]
    assert set(faults(database, {"controls": rows})) == {
        f"/controls/{index}/parentId: leads round in a circle: the control has an ancestor that is its own ancestor"
        for index in named
    }


@pytest.mark.long
def test_a_deep_hierarchy_is_no_problem(database: Database) -> None:
    rows = [
        {"id": f"deep-{n}", "frameworkId": "fw-own", "name": "D", "parentId": f"deep-{n + 1}" if n < 2_999 else None}
        for n in range(3_000)
    ]
    assert world.load(database, {"controls": rows})["controls"].inserted == 3_000


@pytest.mark.parametrize("stated", [True, False])
def test_what_a_control_says_of_itself_stays_where_it_is_left_out(database: Database, stated: bool) -> None:
    """A control may not differ from its framework in being centralized; if it may, it must not change by itself."""
    try:
        world.load(database, {"controls": [{"id": "own.A.1", "isCentralized": stated}]})
    except FaultyInput:
        assert stated  # the framework is the organization's own
        return
    world.load(database, {"controls": [{"id": "own.A.1", "name": "Renamed"}]})
    assert column(database, Control, "is_centralized", "own.A.1") is stated


# --- Whose they are


@pytest.mark.parametrize(
    ("framework", "control", "expected"),
    [("fw-sun", "sun.A", None), ("fw-own", "own.A", ALPHA), ("fw-foreign", "foreign.A", BETA)],
)
def test_a_control_is_its_frameworks(database: Database, framework: str, control: str, expected: str | None) -> None:
    assert column(database, Framework, "organization_id", framework) == expected
    assert column(database, Control, "organization_id", control) == expected
    assert column(database, Control, "is_centralized", control) is (expected is None)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [("sun.A", "moon.A", None), ("own.A", "moon.A", ALPHA), ("sun.A", "foreign.A", BETA), ("own.A", "own.A.1", ALPHA)],
)
def test_a_match_is_that_organizations_whose_control_it_names(
    database: Database, source: str, target: str, expected: str | None
) -> None:
    match = {"id": "m", "sourceControlId": source, "targetControlId": target, "matchLevel": "FULL"}
    world.load(database, {"controlMatches": [match]})
    assert column(database, ControlMatch, "organization_id", "m") == expected


def test_a_match_never_joins_two_organizations_even_when_it_is_changed(database: Database) -> None:
    changed = {"id": "own.A.1->moon.A.1", "targetControlId": "foreign.A.1"}
    assert faults(database, {"controlMatches": [changed]}) == [
        "/controlMatches/0/targetControlId: names a control of another organization than the source's"
    ]


@pytest.mark.parametrize("field", ["name", "identifier", "slug", "purpose", "description"])
def test_what_a_search_looks_through_follows_every_change(database: Database, field: str) -> None:
    world.load(database, {"controls": [{"id": "sun.A.1", field: "ÉTÉ-GRÖẞE"}]})
    assert "été-grösse" in column(database, Control, "search_text", "sun.A.1")
