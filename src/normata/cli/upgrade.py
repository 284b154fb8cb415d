"""Brings a database up to date, and reports the changes in meaning."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from normata.cli.meaning import Difference, Snapshot, differences, snapshot
from normata.core.changes.unit_of_work import Actor
from normata.core.db.altering import AlteringTransaction
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema import migrations
from normata.core.schema.migrations import upgrading
from normata.coverage.upgrades import ReportedChange, reported_changes
from normata.events.sealing import seal_all_now
from normata.history.rules import compute_by_new_rules
from normata.operations import SECURITY
from normata.tables import Table
from normata.wiring import changes_of


class _Undone(Exception):
    """Raised to roll back the upgrade of a dry run."""


class Upgrade(NamedTuple):
    """The changes in meaning by an upgrade, and what this one and those before have recorded of controls."""

    differences: list[Difference]
    recorded: list[ReportedChange]


def upgrade(database: Database, *, finish: bool, command: str, dry_run: bool = False) -> Upgrade:
    """Bring a database up to date, and return what that has changed in meaning.

    Once no version before serves any more, which is so at once where the database is embedded, coverage is computed
    anew, for that version has stored it by rules of its own. With ``dry_run`` nothing is changed.
    """
    finish = finish or database.embedded
    found = database.read_now(migrations.version)
    is_compared = found is not None and (found != migrations.head() or (finish and not database.embedded))
    computes = is_compared and finish
    before: Snapshot = {}
    tried = Upgrade([], [])

    def look_before(connection: Connection) -> None:
        nonlocal before
        if is_compared:
            before = snapshot(connection)

    def look_after(connection: Connection) -> None:
        if dry_run:
            if is_compared:
                tried.differences.extend(differences(before, snapshot(connection, computes=computes)))
            tried.recorded.extend(recorded(AlteringTransaction(connection)))
            raise _Undone

    try:
        upgrading.prepare(
            database, Table.metadata, SECURITY, finish=finish, look_before=look_before, look_after=look_after
        )
    except _Undone:
        return tried
    seal_all_now(database)  # events written by an older version
    if not is_compared:
        return Upgrade([], database.read_now(recorded))
    if computes:
        changes_of(database).make_now(compute_by_new_rules, actor=Actor(command=command))
        seal_all_now(database)
    return Upgrade(differences(before, database.alter_now(snapshot)), database.read_now(recorded))


def recorded(transaction: Transaction) -> list[ReportedChange]:
    """What upgrades have recorded of controls."""
    return list(reported_changes(transaction))
