"""From the database to a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, or_, select, union

from normata.bundle.arrays import ARRAYS, OPERATORS_OWN
from normata.core.changes.references import references_of
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.core.schema.wire import as_wire
from normata.frameworks.model import Control, ControlMatch, Framework
from normata.frameworks.visibility import match_visible_to
from normata.identity.model import Organization
from normata.tables import Table


def dump(transaction: Transaction, organization_id: str | None, file: IO[str]) -> None:
    """Write all of an organization as one bundle, or, where it is null, everything: the same data gives the same bytes.

    An organization's bundle has the organization, everything of its own, and, of what it shares with others, what its
    own rows refer to: users, and frameworks, whole, with the matches between their controls. Tokens (which are but
    digests) and audit events are the operator's, and come with everything only.
    """
    file.write("{")
    separator = "\n"
    for array, table in ARRAYS.items():
        if organization_id is not None and table in OPERATORS_OWN:
            continue
        file.write(f"{separator}  {json.dumps(array)}: [")
        _write_rows(file, (as_wire(table, row) for row in _rows(transaction, table, organization_id)))
        separator = ",\n"
    file.write("\n}\n")


def _write_rows(file: IO[str], rows: Iterable[dict[str, Any]]) -> None:
    separator = "\n    "
    for row in rows:
        file.write(separator + json.dumps(row, ensure_ascii=False))
        separator = ",\n    "
    file.write("]" if separator == "\n    " else "\n  ]")


def _rows(transaction: Transaction, table: type[Table], organization_id: str | None) -> Iterator[Any]:
    columns = sql_table(table).c
    order: tuple[ColumnElement[Any], ...] = (columns.id,)
    if table is Control:
        order = (columns.framework_id, columns.position, columns.id)
    statement = select(*columns).order_by(*order)
    if organization_id is None:
        return transaction.stream(statement)
    return transaction.stream(statement.where(_belongs(table)), {"organization": organization_id})


# --- What belongs to an organization's bundle

_ORGANIZATION: BindParameter[str] = bindparam("organization")


def _belongs(table: type[Table]) -> ColumnElement[bool]:
    columns = sql_table(table).c
    if table is Organization:
        return columns.id == _ORGANIZATION
    if table is Control:
        return columns.framework_id.in_(_frameworks())
    if table is ControlMatch:
        controls = select(sql_table(Control).c.id).where(sql_table(Control).c.framework_id.in_(_frameworks()))
        ends = columns.source_control_id.in_(controls) & columns.target_control_id.in_(controls)
        return ends & match_visible_to(_ORGANIZATION)
    if table is Framework:
        return columns.id.in_(_frameworks())
    if _is_organizations_own(table):
        return columns.organization_id == _ORGANIZATION
    # Rows that organizations share, such as users.
    referred = columns.id.in_(union(*_referred_to(table)))
    return or_(referred, columns.organization_id == _ORGANIZATION) if "organization_id" in columns else referred


def _frameworks() -> Any:
    """The organization's own frameworks, and those that its rows refer to, be it by one of their controls."""
    frameworks, controls = sql_table(Framework).c, sql_table(Control).c
    return union(
        select(frameworks.id).where(frameworks.organization_id == _ORGANIZATION),
        *_referred_to(Framework),
        select(controls.framework_id).where(controls.id.in_(union(*_referred_to(Control)))),
    )


def _referred_to(target: type[Table]) -> Iterator[Select[Any]]:
    """The ids of rows of ``target`` that rows of the organization name: a statement for each column that may."""
    for table in ARRAYS.values():
        columns = sql_table(table).c
        if "organization_id" in columns and table not in OPERATORS_OWN:
            for name, referred in references_of(table):
                if referred == target.__tablename__:
                    column = columns[name]
                    yield select(column).where(columns.organization_id == _ORGANIZATION, column.is_not(None))


def _is_organizations_own(table: type[Table]) -> bool:
    """Whether each row of the table belongs to one organization."""
    owner = sql_table(table).c.get("organization_id")
    return owner is not None and not owner.nullable
