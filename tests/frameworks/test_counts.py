"""Frameworks keep the number of their controls, whatever is loaded in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from normata.adoption.adoption import adopt
from normata.cli import check as checkup
from normata.core.db.database import Database
from normata.core.schema.table import sql_table
from normata.frameworks.model import Control, Framework
from normata.operations import SECURITY
from tests import world
from tests.databases import change, tamper
from tests.listing import Listing
from tests.world import ALPHA

Document = dict[str, list[dict[str, Any]]]
Listings = Callable[..., Listing]


def controls(framework: str, *names: str, **values: Any) -> list[dict[str, Any]]:
    return [{"id": name, "frameworkId": framework, "name": name} | values for name in names]


# Loads one after the other, with the number of controls that the framework `new` or `fw-sun` has then.
HISTORIES: dict[str, tuple[str, list[tuple[Document, int]]]] = {
    "empty": ("new", [({"frameworks": [{"id": "new", "name": "New"}]}, 0)]),
    "all at once": (
        "new",
        [({"frameworks": [{"id": "new", "name": "New"}], "controls": controls("new", *"abc")}, 3)],
    ),
    "controls before their framework": (
        "new",
        [({"controls": controls("new", *"cab"), "frameworks": [{"id": "new", "name": "New"}]}, 3)],
    ),
    "one after the other": (
        "new",
        [
            ({"frameworks": [{"id": "new", "name": "New", "organizationId": ALPHA}]}, 0),
            ({"controls": controls("new", "a")}, 1),
            ({"controls": controls("new", "b", parentId="a")}, 2),
            ({"frameworks": [{"id": "new", "name": "Renamed"}]}, 2),
            ({"frameworks": [{"id": "new", "slug": "other"}], "controls": controls("new", "c")}, 3),
            ({"controls": controls("new", *"cba")}, 3),
        ],
    ),
    "more for one that has some": (
        "fw-sun",
        [
            ({"controls": controls("fw-sun", "x", "y")}, 15),
            ({"frameworks": [{"id": "fw-sun", "name": "Sunny"}]}, 15),
            ({"controls": controls("fw-sun", "x", "y", name="Changed")}, 15),
            (world.bundle(), 15),
        ],
    ),
    "the same again": ("fw-sun", [(world.bundle(), 13), (world.bundle(), 13)]),
    "in another order": ("fw-sun", [({"controls": world.bundle()["controls"][::-1]}, 13)]),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_the_count_is_that_of_the_controls(database: Database, listing: Listings, history: str) -> None:
    framework, loads = HISTORIES[history]
    frameworks, listed = listing("/frameworks/"), listing("/controls/")
    for document, expected in loads:
        world.load(database, document)
        change(database, lambda unit: adopt(unit, ALPHA, [framework]))
        (item,) = (item for item in frameworks.items() if item["id"] == framework)
        assert item["_count"] == {"controls": expected}
        page = listed.page(frameworks=framework)
        assert (page["total"], len(page["items"])) == (expected, expected)
        assert [item["id"] for item in listed.walk(frameworks=framework)] == [item["id"] for item in page["items"]]
        assert faults(database) == []


def test_counts_and_places_are_whole_for_every_framework(database: Database) -> None:
    framework, control = sql_table(Framework).c, sql_table(Control).c
    statement = (
        select(
            framework.id,
            framework.control_count,
            func.count(control.id).label("controls"),
            func.coalesce(func.max(control.position) + 1, 0).label("following"),
        )
        .outerjoin(sql_table(Control), control.framework_id == framework.id)
        .group_by(framework.id, framework.control_count)
    )
    rows = database.read_now(lambda transaction: transaction.rows(statement))
    assert len(rows) == 6
    for row in rows:
        assert row.control_count == row.controls == row.following


def test_pages_across_frameworks_have_each_control_once(listing: Listings) -> None:
    """Places are counted on from one framework to the next."""
    listed = listing("/controls/")
    everything = [item["id"] for item in listed.items()]
    assert [item["id"] for item in listed.walk()] == everything
    assert len(set(everything)) == len(everything) == 39
    backwards = [item["id"] for item in listed.walk(sortDirection="desc")]
    assert sorted(backwards) == sorted(everything)


def faults(database: Database) -> list[str]:
    return database.read_now(lambda transaction: list(checkup.faults(database, transaction, SECURITY)))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE framework SET control_count = 12 WHERE id = 'fw-star'",
        "UPDATE framework SET control_count = 14 WHERE id = 'fw-star'",
        "UPDATE framework SET control_count = 0 WHERE id = 'fw-star'",
        "UPDATE control SET position = 13 WHERE id = 'star.A.12'",
        "UPDATE control SET position = 100 WHERE id = 'star.A.3'",
    ],
)
def test_a_wrong_count_is_told(database: Database, statement: str) -> None:
    tamper(database, statement)
    assert faults(database) == ["the framework fw-star has other controls than it has counted, or gaps in their order"]


def test_two_controls_in_one_place_are_told(database: Database) -> None:
    """A page would have one of them too many."""
    tamper(database, "UPDATE control SET position = 4 WHERE id = 'star.A.3'")
    assert faults(database) == ["the framework fw-star has other controls than it has counted, or gaps in their order"]


def test_a_framework_without_controls_that_counts_some_is_told(database: Database) -> None:
    tamper(database, "UPDATE framework SET control_count = 1 WHERE id = 'fw-old'")
    assert faults(database) == ["the framework fw-old has other controls than it has counted, or gaps in their order"]
