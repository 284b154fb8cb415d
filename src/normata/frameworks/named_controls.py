"""Controls with their names, in the order of lists."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.frameworks.counting import is_requirement
from normata.frameworks.model import Control, Framework


def named_controls(transaction: Transaction, ids: Collection[str], *, requirements: bool = False) -> list[Any]:
    """Rows with id, identifier, name, framework_id, position and identifier_key, by framework and in catalog order.

    With ``requirements``, other controls are left out.
    """
    statement = _REQUIREMENTS if requirements else _CONTROLS
    rows = [row for batch in batches(sorted(ids)) for row in transaction.rows(statement, {"ids": batch})]
    return sorted(rows, key=lambda row: (row.identifier_key, row.framework_id, row.position, row.id))


_CONTROL, _FRAMEWORK = sql_table(Control), sql_table(Framework)
_CONTROLS = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.identifier,
        _CONTROL.c.name,
        _CONTROL.c.framework_id,
        _CONTROL.c.position,
        _FRAMEWORK.c.identifier_key,
    )
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)))
)
_REQUIREMENTS = _CONTROLS.where(is_requirement())
