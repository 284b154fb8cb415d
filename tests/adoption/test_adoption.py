"""Adopting: which framework a name means, whose it may be, and that coverage follows at once."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from normata.adoption.adoption import adopt
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.coverage.recompute import current_coverage, stored_coverage
from normata.frameworks.choice import NoSuchFramework
from normata.frameworks.model import FrameworkAdoption
from tests import stored, world
from tests.databases import change
from tests.world import ALPHA, BETA


def adopting(database: Database, *names: str, organization_id: str = ALPHA) -> dict[str, bool]:
    return change(database, lambda unit: adopt(unit, organization_id, names))


def adopted(database: Database, organization_id: str = ALPHA) -> set[str]:
    statement = select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == organization_id)
    return set(database.read_now(lambda transaction: transaction.scalars(statement)))


@pytest.mark.parametrize("name", ["fw-star", "star", "STAR"])
def test_by_id_slug_or_identifier(database: Database, name: str) -> None:
    assert adopting(database, name) == {"fw-star": True}
    assert adopted(database) == {"fw-sun", "fw-moon", "fw-own", "fw-star"}


def test_several_at_once_and_one_of_them_twice(database: Database) -> None:
    assert adopting(database, "STAR", "fw-sun", "star") == {"fw-star": True, "fw-sun": False}


def test_again_changes_nothing(database: Database) -> None:
    adopting(database, "fw-star")
    before = world.contents(database)
    assert adopting(database, "fw-star") == {"fw-star": False}
    assert world.contents(database) == before


def test_each_new_adoption_is_published(database: Database) -> None:
    def work(unit: UnitOfWork) -> list[Change]:
        adopt(unit, ALPHA, ["fw-star", "fw-sun"])
        return unit.published

    [published] = change(database, work)
    assert (published.action, published.table, published.organization_id) == ("adopt", FrameworkAdoption, ALPHA)
    assert published.row is not None
    assert published.row == stored.row(database, FrameworkAdoption, str(published.row_id))
    assert published.row["framework_id"] == "fw-star"
    assert change(database, work) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("nowhere", id="unknown"),
        pytest.param("", id="empty"),
        pytest.param("fw-foreign", id="foreign by id"),
        pytest.param("FOREIGN", id="foreign by identifier"),
        pytest.param("fw-old", id="inactive"),
        pytest.param("OLD", id="inactive by identifier"),
        pytest.param("%", id="wildcard"),
        pytest.param("fw-sta_", id="wildcard of one"),
    ],
)
def test_what_the_organization_cannot_see_does_not_exist(database: Database, name: str) -> None:
    before = world.contents(database)
    with pytest.raises(NoSuchFramework, match="can see no framework") as caught:
        adopting(database, "fw-star", name)
    assert repr(name) in str(caught.value)
    assert world.contents(database) == before


def test_foreign_and_unknown_are_told_alike(database: Database) -> None:
    messages = []
    for name in ("fw-foreign", "fw-nowhere"):
        with pytest.raises(NoSuchFramework) as caught:
            adopting(database, name)
        messages.append(str(caught.value).replace(name, "…"))
    assert messages[0] == messages[1]


def test_a_name_of_several_names_none(database: Database) -> None:
    world.load(
        database,
        {
            "frameworks": [
                {"id": "f1", "name": "One", "identifier": "SAME"},
                {"id": "f2", "name": "Two", "slug": "SAME"},
            ]
        },
    )
    with pytest.raises(NoSuchFramework, match="names 2 frameworks") as caught:
        adopting(database, "SAME")
    assert "f1, f2" in str(caught.value)
    assert adopting(database, "f2") == {"f2": True}


def test_an_id_comes_before_other_names(database: Database) -> None:
    world.load(database, {"frameworks": [{"id": "star", "name": "Called as another's slug"}]})
    assert adopting(database, "star") == {"star": True}


def test_a_namesake_that_cannot_be_seen_is_no_hindrance(database: Database) -> None:
    world.load(database, {"frameworks": [{"id": "f", "name": "F", "identifier": "STAR", "organizationId": BETA}]})
    assert adopting(database, "STAR") == {"fw-star": True}


def test_one_that_has_become_inactive_stays_adopted(database: Database) -> None:
    world.load(database, {"frameworks": [{"id": "fw-sun", "isActive": False}]})
    assert adopting(database, "fw-sun") == {"fw-sun": False}
    assert adopted(database) >= {"fw-sun"}


def test_an_organizations_own_framework(database: Database) -> None:
    world.load(database, {"frameworks": [{"id": "f", "name": "F", "organizationId": ALPHA}]})
    assert adopting(database, "f") == {"f": True}


def test_coverage_follows_in_the_same_transaction(database: Database) -> None:
    """The match star.A.4 → moon.A.4 counts from now on, and star's controls have coverage."""
    statement = {"id": "s", "organizationId": ALPHA, "controlId": "star.A.4", "coverageStatus": "FULL"}
    world.load(database, {"controlCoverages": [statement]})
    foreign = database.read_now(lambda transaction: stored_coverage(transaction, BETA))
    before = database.read_now(lambda transaction: stored_coverage(transaction, ALPHA))
    adopting(database, "fw-star")
    after = database.read_now(lambda transaction: stored_coverage(transaction, ALPHA))
    assert before["moon.A.4"].effective.name == "NONE"
    assert (after["moon.A.4"].effective, after["moon.A.4"].indirect) == (2, True)
    assert (after["star.A.4"].effective, after["star.A.4"].indirect) == (2, False)
    assert after == database.read_now(lambda transaction: current_coverage(transaction, ALPHA))
    assert database.read_now(lambda transaction: stored_coverage(transaction, BETA)) == foreign
