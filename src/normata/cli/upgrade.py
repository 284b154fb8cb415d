"""Brings a database up to date, and reports the changes in meaning."""

from __future__ import annotations

from sqlalchemy import Connection

from normata.cli.meaning import Difference, Snapshot, differences, snapshot
from normata.core.changes.unit_of_work import Actor
from normata.core.db.database import Database
from normata.core.schema import migrations
from normata.core.schema.migrations import upgrading
from normata.coverage.recompute import recompute_all
from normata.events.sealing import seal_all_now
from normata.operations import SECURITY
from normata.tables import Table
from normata.wiring import changes_of


class _Undone(Exception):
    """Raised to roll back the upgrade of a dry run."""


def upgrade(database: Database, *, finish: bool, command: str, dry_run: bool = False) -> list[Difference]:
    """Bring a database up to date, and return the changes in meaning.

    Once no version before serves any more, which is so at once where the database is embedded, coverage is computed
    anew, for that version has stored it by rules of its own. With ``dry_run`` nothing is changed.
    """
    finish = finish or database.embedded
    found = database.read_now(migrations.version)
    is_compared = found is not None and (found != migrations.head() or (finish and not database.embedded))
    computes = is_compared and finish
    before: Snapshot = {}
    tried: list[Difference] = []

    def look_before(connection: Connection) -> None:
        nonlocal before
        if is_compared:
            before = snapshot(connection)

    def look_after(connection: Connection) -> None:
        if dry_run:
            tried.extend(differences(before, snapshot(connection, computes=computes)) if is_compared else ())
            raise _Undone

    try:
        upgrading.prepare(
            database, Table.metadata, SECURITY, finish=finish, look_before=look_before, look_after=look_after
        )
    except _Undone:
        return tried
    seal_all_now(database)  # events written by an older version
    if not is_compared:
        return []
    if computes:
        changes_of(database).make_now(recompute_all, actor=Actor(command=command))
        seal_all_now(database)
    return differences(before, database.alter_now(snapshot))
