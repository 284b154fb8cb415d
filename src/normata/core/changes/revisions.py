"""Revisions: the state of the rows of each cached list, for each organization.

A page that was built at the current revision can be sent as it is. So every change of a row that a cached list shows
sets another revision of that list, in the same transaction. The revision is a new id each time and not a number: a
database that was restored from a backup must never get a revision that it has had before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Insert, bindparam, select, update
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.changes.unit_of_work import Actor, Change, insert_of, update_of
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.db.upsert import upsert
from normata.core.schema.fields import Identifier
from normata.core.schema.table import CODED, Table, foreign_key, new_id, sql_table


class ListRevision(Table):
    """The current revision of a cached list of an organization. A list without a row is not cached."""

    __tablename__ = "list_revision"
    published = False

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    list: Mapped[str] = mapped_column(text(64), primary_key=True)
    revision: Mapped[str] = mapped_column(text(36), info=CODED)

    __table_args__ = ({"info": {"catalogs": "write"}},)  # centralized frameworks are in the lists of all organizations


class AdvanceRevisions:
    """Subscribes to changes: sets another revision of the lists that show changed rows."""

    writes = (insert_of(ListRevision), update_of(ListRevision, "revision"))

    def __call__(self, transaction: Transaction, changes: Sequence[Change], _actor: Actor, _moment: str) -> None:
        """Set new revisions of all lists that show changed rows."""
        touched = {(change.organization_id, name) for change in changes for name in change.table.shown_in}
        # Centralized rows may be in the lists of all organizations.
        everywhere = sorted({name for organization_id, name in touched if organization_id is None})
        for name in everywhere:
            transaction.rows(_ADVANCE_ALL, {"name": name, "new": new_id()})
        # In a fixed order, so that two units of work cannot deadlock.
        for organization_id, name in sorted((one, name) for one, name in touched if one is not None):
            transaction.rows(_advance(), {"organization": organization_id, "name": name, "new": new_id()})


_LIST = sql_table(ListRevision)
_ADVANCE_ALL = update(_LIST).where(_LIST.c.list == bindparam("name")).values(revision=bindparam("new"))
_CURRENT = select(_LIST.c.revision).where(
    _LIST.c.organization_id == bindparam("organization"), _LIST.c.list == bindparam("name")
)


@cache
def _advance() -> Insert:
    names = {"organization_id": "organization", "list": "name", "revision": "new"}
    values: dict[str, Any] = {column: bindparam(name) for column, name in names.items()}
    return upsert(_LIST, values, key=("organization_id", "list"), update=("revision",))


def current_revision(transaction: Transaction, organization_id: str, name: str) -> str:
    """The revision of an organization's list; empty if there is none, so that its pages are not cached."""
    return transaction.scalar(_CURRENT, {"organization": organization_id, "name": name}) or ""
