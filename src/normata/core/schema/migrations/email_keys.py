"""Fills the columns by which people are looked up, as addresses are compared exactly."""

from __future__ import annotations

import sqlalchemy as sa

from normata.core.schema.addresses import email_key

_USER, _INVITATION = (
    sa.table(name, *map(sa.column, ("id", "email", "email_folded"))) for name in ("user_account", "invitation")
)


def fill_email_keys(connection: sa.Connection) -> None:
    """Set ``email_folded`` to the :func:`email_key` of each address that is not ASCII; others have it already.

    In earlier versions, two users could have one address, with its domain as A-labels and as U-labels. The one with
    U-labels is then found only by their id, because the owner of the address is unknown.
    """
    for table in (_USER, _INVITATION):
        found = connection.execute(sa.select(table.c.id, table.c.email).where(table.c.email.is_not(None))).all()
        taken = {row.email.lower() for row in found if row.email.isascii()} if table is _USER else set()
        others = {row.id: email_key(row.email) for row in found if not row.email.isascii()}
        if table is _USER:  # no two rows may have the same key, not even for a moment
            _set(connection, table, dict.fromkeys(others))
        _set(connection, table, {row_id: key for row_id, key in others.items() if key not in taken})


def _set(connection: sa.Connection, table: sa.TableClause, keys: dict[str, str] | dict[str, None]) -> None:
    change = sa.update(table).where(table.c.id == sa.bindparam("row")).values(email_folded=sa.bindparam("key"))
    if keys:
        connection.execute(change, [{"row": row_id, "key": key} for row_id, key in keys.items()])
