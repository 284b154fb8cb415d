"""What `normata check` looks at: pages, references, and coverage that follows from the statements."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

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


_DROP = "DROP INDEX ix_task_archived_at"
_DROP_TRIGGER = "DROP TRIGGER note_unsealed_event"
_TRIGGER = "the trigger note_unsealed_event of the table audit_event"
_FUNCTION = "CREATE OR REPLACE FUNCTION note_unsealed_event() RETURNS trigger LANGUAGE plpgsql AS"
ALIKE: dict[str, tuple[list[str], str]] = {
    "an index that is gone": ([_DROP], "the index ix_task_archived_at of the table task is missing"),
    "a unique index that is gone": (
        ["DROP INDEX uq_task_live_slug"],
        "the unique index uq_task_live_slug of the table",
    ),
    "an index of other columns": (
        [_DROP, "CREATE INDEX ix_task_archived_at ON task (id) WHERE archived_at IS NOT NULL"],
        "the index ix_task_archived_at of the table task is not as Normata makes it",
    ),
    "an index of other rows": (
        [
            _DROP,
            "CREATE INDEX ix_task_archived_at ON task (organization_id, archived_at, id) WHERE archived_at IS NULL",
        ],
        "the index ix_task_archived_at of the table task is not as Normata makes it",
    ),
    "an index that is not unique any more": (
        [
            "DROP INDEX uq_task_live_slug",
            "CREATE INDEX uq_task_live_slug ON task (organization_id, slug) WHERE archived_at IS NULL",
        ],
        "the unique index uq_task_live_slug of the table task is missing",
    ),
    "another unique index": (
        ["CREATE UNIQUE INDEX mine ON task (id, title)"],
        "the table task has a unique index mine that is not Normata's",
    ),
}
SCHEMA: dict[str, dict[str, tuple[list[str], str]]] = {
    "sqlite": {
        **ALIKE,
        "a trigger that is gone": ([_DROP_TRIGGER], f"{_TRIGGER} is missing"),
        "a trigger that does nothing": (
            [_DROP_TRIGGER, "CREATE TRIGGER note_unsealed_event AFTER INSERT ON audit_event BEGIN SELECT 1; END"],
            f"{_TRIGGER} is not as Normata makes it",
        ),
        "another trigger": (
            ["CREATE TRIGGER mine AFTER INSERT ON unsealed_event BEGIN DELETE FROM unsealed_event; END"],
            "the table unsealed_event has a trigger mine that is not Normata's",
        ),
        "trigrams without a text": (["DROP VIEW record_trigram_text"], "the index of trigrams is not as Normata makes"),
        "texts without trigrams": (
            ["DELETE FROM record_trigram_row WHERE kind = 'task'"],
            "rows of the table task, which have no trigrams",
        ),
    },
    "postgresql": {
        **ALIKE,
        "a trigger that is gone": ([f"{_DROP_TRIGGER} ON audit_event"], f"{_TRIGGER} is missing"),
        "a trigger that is off": (
            ["ALTER TABLE audit_event DISABLE TRIGGER note_unsealed_event"],
            f"{_TRIGGER} is not as Normata makes it",
        ),
        "a function that does nothing": (
            [f"{_FUNCTION} 'BEGIN RETURN NULL; END'"],
            f"{_TRIGGER} is not as Normata makes it",
        ),
        "a rule": (
            ["CREATE RULE mine AS ON INSERT TO unsealed_event DO INSTEAD NOTHING"],
            "the table unsealed_event has a rule mine that is not Normata's",
        ),
        "references that nobody looks at": (["ALTER TABLE task DISABLE TRIGGER ALL"], "does not look at references"),
    },
}


@pytest.mark.parametrize(
    ("database_url", "case"),
    [(dialect, case) for dialect, cases in SCHEMA.items() for case in cases],
    indirect=["database_url"],
)
def test_what_the_schema_lacks_or_has_too_much_is_named(database: Database, case: str) -> None:
    statements, sentence = SCHEMA["sqlite" if database.embedded else "postgresql"][case]

    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.alter_now(work)
    assert any(sentence in one for one in faults(database))


def test_more_indexes_do_no_harm(database: Database) -> None:
    database.alter_now(lambda connection: connection.exec_driver_sql("CREATE INDEX mine ON task (title)"))
    assert faults(database) == []


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
    stale, *of_the_past = faults(database)
    assert stale == f"the stored coverage of organization {ALPHA} does not follow from its assessments"
    assert all(one.startswith(f"the coverage of organization {ALPHA} as of ") for one in of_the_past)
    change(database, lambda unit: recompute(unit, ALPHA))
    assert stale not in faults(database)


def test_a_past_that_does_not_follow_is_named_with_a_moment(database: Database) -> None:
    tamper(database, "UPDATE effective_coverage_history SET status = 2 WHERE control_id = 'moon.A.9'")
    found = faults(database)
    assert found
    assert all(one.startswith(f"the coverage of organization {ALPHA} as of 2") for one in found)


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


def test_jobs_that_fail_again_and_again_are_named(database: Database) -> None:
    row = "INSERT INTO job (owner, type, key, attempts, due_at, failure) VALUES"
    tamper(database, f"{row} ('{ALPHA}', 'reminders', '', 3, '2026-01-01T00:00:00.000Z', 'ValueError')")
    assert faults(database) == []
    tamper(database, "UPDATE job SET attempts = 4")
    tamper(database, f"{row} ('', 'mails', 'a', 9, '2026-01-01T00:00:00.000Z', NULL)")
    assert faults(database) == [
        "the job mails of the instance was attempted 9 times, and its process ended; the log says more",
        f"the job reminders of organization {ALPHA} was attempted 4 times, at last with ValueError; the log says more",
    ]
