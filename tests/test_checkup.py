"""What `normata check` looks at: pages, references, and coverage that follows from the statements."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, text

from normata import checkup
from normata.database import Database
from normata.frameworks.recompute import recompute
from tests.world import ALPHA, BETA


def faults(database: Database) -> list[str]:
    return database.read_now(lambda connection: list(checkup.faults(database, connection)))


def contents(database: Database) -> list[str]:
    return database.read_now(lambda connection: list(checkup.contents(connection)))


def execute(database: Database, statement: str) -> None:
    def work(connection: Connection) -> None:
        assert connection.execute(text(statement)).rowcount > 0

    database.write_now(work)


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
        "DELETE FROM control_match WHERE id = 'sun.A.2->moon.A.2'",
        "UPDATE control SET parent_id = NULL WHERE id = 'own.A.2'",
        "DELETE FROM framework_adoption WHERE id = 'adopt-sun'",
    ],
)
def test_stale_coverage_is_named_with_its_organization(database: Database, statement: str) -> None:
    execute(database, statement)
    assert faults(database) == [f"the stored coverage of organization {ALPHA} is not what follows from its statements"]
    database.write_now(lambda connection: recompute(connection, ALPHA))
    assert faults(database) == []


def test_coverage_of_each_organization_is_looked_at(database: Database) -> None:
    execute(database, "DELETE FROM effective_coverage")
    assert [ALPHA in fault or BETA in fault for fault in faults(database)] == [True, True]


def test_contents_name_organizations_and_frameworks(database: Database) -> None:
    assert contents(database)[:3] == [
        "organization org-alpha: Alpha",
        "organization org-beta: Beta",
        "framework fw-foreign (FOREIGN): Beta's own, 13 controls",
    ]
    assert "framework fw-old (OLD): Old Standard, 0 controls" in contents(database)
    assert len(contents(database)) == 8
