"""What `normata check` looks at: pages, references, and coverage that follows from the statements."""

from __future__ import annotations

import pytest

from normata.cli import check as checkup
from normata.core.db.database import Database
from normata.coverage.recompute import recompute
from normata.operations import SECURITY
from tests.databases import change, tamper
from tests.world import ALPHA, BETA


def faults(database: Database) -> list[str]:
    return database.read_now(lambda transaction: list(checkup.faults(database, transaction, SECURITY)))


def contents(database: Database) -> list[str]:
    return database.read_now(lambda transaction: list(checkup.contents(transaction)))


def test_the_world_is_whole(database: Database) -> None:
    assert faults(database) == []


def test_an_empty_database_is_whole(empty: Database) -> None:
    assert faults(empty) == []
    assert contents(empty) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE effective_coverage SET status = 2 WHERE control_id = 'moon.A.9'",
        "UPDATE effective_coverage SET is_indirect = NOT is_indirect WHERE control_id = 'moon.A.1'",
        "DELETE FROM effective_coverage WHERE control_id = 'sun.A.1'",
        "UPDATE control_coverage SET coverage_status = 0 WHERE control_id = 'sun.A.1'",
        "DELETE FROM control_match WHERE id = 'sun.A.1->moon.A.1'",
        "UPDATE control SET parent_id = NULL WHERE id = 'own.A.2'",
        "DELETE FROM framework_adoption WHERE id = 'adopt-sun'",
    ],
)
def test_stale_coverage_is_named_with_its_organization(database: Database, statement: str) -> None:
    tamper(database, statement)
    assert faults(database) == [f"the stored coverage of organization {ALPHA} does not follow from its assessments"]
    change(database, lambda unit: recompute(unit, ALPHA))
    assert faults(database) == []


def test_coverage_of_each_organization_is_looked_at(database: Database) -> None:
    tamper(database, "DELETE FROM effective_coverage")
    assert [ALPHA in fault or BETA in fault for fault in faults(database)] == [True, True]


def test_contents_name_organizations_and_frameworks(database: Database) -> None:
    assert contents(database)[:3] == [
        "organization org-alpha: Alpha",
        "organization org-beta: Beta",
        "framework fw-foreign (FOREIGN): Beta's own, 13 controls",
    ]
    assert "framework fw-old (OLD): Old Standard, 0 controls" in contents(database)
    assert len(contents(database)) == 8
