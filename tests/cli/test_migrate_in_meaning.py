"""What `migrate` says that it changes in meaning, tries without changing it, and lists in a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from normata.cli import meaning
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema import migrations
from normata.core.schema.migrations import upgrading
from tests import world
from tests.cli.commands import Run, failed, mode
from tests.databases import on_both, on_sqlite, tamper

# What a version before has stored by other rules.
OTHER_RULES = "UPDATE effective_coverage SET status = 1 - status % 2 WHERE control_id IN ('moon.A.1', 'moon.A.9')"
BEFORE = min(migrations.known_versions())
SENTENCE = "2 controls changed their coverage (org-alpha: 2)"


@pytest.fixture
def old(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database that a version before has left: one with an old schema, as far as anybody asks for its version."""
    tamper(database, OTHER_RULES)
    found, prepare = migrations.version, upgrading.prepare
    is_old = True

    def version(transaction: Transaction) -> str | None:
        return BEFORE if is_old else found(transaction)

    def upgrade(*arguments: Any, **options: Any) -> None:
        nonlocal is_old
        prepare(*arguments, **options)
        is_old = False

    monkeypatch.setattr(migrations, "version", version)
    monkeypatch.setattr(upgrading, "prepare", upgrade)
    return database


@on_both
@pytest.mark.usefixtures("old")
def test_migrate_says_what_it_has_changed_in_meaning(normata: Run, database_url: str, folder: Path) -> None:
    done = normata("migrate", "--after", "--report", "report.csv", "--database", database_url)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        SENTENCE,
        "report.csv lists 2 changes",
        f"the schema is at {migrations.head()}",
    ]
    assert mode(folder / "report.csv") == 0o600
    head, *rows = list(csv.reader((folder / "report.csv").read_text("utf-8").splitlines()))
    assert head == ["what", "organization", "which", "before", "after", "rule"]
    assert {(row[0], row[1]) for row in rows} == {("coverage", "org-alpha")}
    assert all(row[3] != row[4] and {row[3], row[4]} <= {"NONE", "PARTIAL", "FULL"} for row in rows)
    assert normata("check", "--database", database_url).code == 0
    # A second time there is nothing to say.
    again = normata("migrate", "--after", "--database", database_url)
    assert again.out == f"the schema is at {migrations.head()}\n"


@on_both
def test_a_dry_run_says_the_same_and_changes_nothing(normata: Run, old: Database, database_url: str) -> None:
    before = world.contents(old)
    done = normata("migrate", "--after", "--dry-run", "--report", "report.csv", "--database", database_url)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"dry run: {SENTENCE}",
        "report.csv lists 2 changes",
        f"the schema is at {BEFORE}, and would become {migrations.head()}; nothing was changed",
    ]
    assert world.contents(old) == before


def test_a_dry_run_makes_no_database(normata: Run, folder: Path) -> None:
    assert "there is no file" in failed(normata("migrate", "--dry-run"))
    assert list(folder.iterdir()) == []


def test_a_report_replaces_no_file(normata: Run, folder: Path) -> None:
    (folder / "report.csv").write_text("mine")
    assert "exists already" in failed(normata("migrate", "--report", "report.csv"))
    assert {path.name for path in folder.iterdir()} == {"report.csv"}


@on_sqlite
@pytest.mark.usefixtures("old")
def test_other_commands_that_upgrade_say_it_as_well(normata: Run, database_url: str) -> None:
    done = normata("organization", "list", "--database", database_url)
    assert done.code == 0
    assert done.err == f"the upgrade of the database: {SENTENCE}\n"


def different(subject: str, before: str, after: str) -> meaning.Difference:
    [found] = [one for one in meaning.SUBJECTS if one.name == subject]
    return meaning.Difference(found, "org-alpha" if subject != "address" else "", "A.1", before, after)


@pytest.mark.parametrize(
    ("subject", "count", "sentence"),
    [
        ("coverage", 1, "1 control changed its coverage (org-alpha: 1)"),
        ("assessment", 2, "2 assessments changed their status (org-alpha: 2)"),
        ("applicability", 1, "1 control changed whether it applies (org-alpha: 1)"),
        ("match", 3, "3 matches changed their level (org-alpha: 3)"),
        ("role", 1, "1 member changed its role (org-alpha: 1)"),
        ("address", 2, "2 persons changed the address that they are found by"),
    ],
)
def test_each_subject_has_its_sentence(subject: str, count: int, sentence: str) -> None:
    assert list(meaning.sentences([different(subject, "a", "b")] * count)) == [sentence]
