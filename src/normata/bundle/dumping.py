"""From the database to a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select, union

from normata.bundle.arrays import ARRAYS, OPERATORS_OWN
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework, FrameworkAdoption
from normata.identity.model import Membership, Organization, User
from normata.models import Table
from normata.notifications.model import Notification
from normata.records.kinds import Audit, Finding
from normata.vocabulary import sql_table
from normata.wire import as_wire

_ROWS_AT_ONCE = 1_000  # in memory; a database may be larger than that


def dump(connection: Connection, organization_id: str | None, file: IO[str]) -> None:
    """Write all of an organization as one bundle, or, where it is null, everything: the same data gives the same bytes.

    An organization's bundle has the organization, its members, everything of its own, and, of what it shares with
    others, the frameworks that it has adopted or refers to, with the matches between their controls. Tokens (which
    are but digests) and audit events are the operator's, and come with everything only.
    """
    file.write("{")
    separator = "\n"
    for array, table in ARRAYS.items():
        if organization_id is not None and table in OPERATORS_OWN:
            continue
        file.write(f"{separator}  {json.dumps(array)}: [")
        _write_rows(file, (as_wire(table, row) for row in _rows(connection, table, organization_id)))
        separator = ",\n"
    file.write("\n}\n")


def _write_rows(file: IO[str], rows: Iterator[dict[str, Any]]) -> None:
    separator = "\n    "
    for row in rows:
        file.write(separator + json.dumps(row, ensure_ascii=False))
        separator = ",\n    "
    file.write("]" if separator == "\n    " else "\n  ]")


def _rows(connection: Connection, table: type[Table], organization_id: str | None) -> Iterator[RowMapping]:
    columns = sql_table(table).columns
    order: tuple[ColumnElement[Any], ...] = (columns.id,)
    if table is Control:
        order = (columns.framework_id, columns.position, columns.id)
    statement = select(*columns).order_by(*order)
    if organization_id is not None:
        statement = statement.where(_belongs(table, organization_id))
    yield from connection.execute(statement, execution_options={"yield_per": _ROWS_AT_ONCE}).mappings()


def _belongs(table: type[Table], organization_id: str) -> ColumnElement[bool]:
    if table is Organization:
        return Organization.id == organization_id
    if table is User:
        known = union(*(_of(named.user_id, named, organization_id) for named in (Membership, Notification)))
        return User.id.in_(known)
    if table is Framework:
        return Framework.id.in_(_frameworks(organization_id))
    if table is Control:
        return Control.framework_id.in_(_frameworks(organization_id))
    if table is ControlMatch:
        controls = select(Control.id).where(Control.framework_id.in_(_frameworks(organization_id)))
        return ControlMatch.source_control_id.in_(controls) & ControlMatch.target_control_id.in_(controls)
    return sql_table(table).columns.organization_id == organization_id


def _frameworks(organization_id: str) -> Any:
    """The frameworks that the organization's own rows cannot do without."""
    controls = union(*(_of(named.control_id, named, organization_id) for named in (ControlCoverage, Finding)))
    return union(
        select(Framework.id).where(Framework.organization_id == organization_id),
        *(_of(named.framework_id, named, organization_id) for named in (FrameworkAdoption, Audit)),
        select(Control.framework_id).where(Control.id.in_(controls)),
    )


def _of(column: Any, table: Any, organization_id: str) -> Select[Any]:
    return select(column).where(table.organization_id == organization_id, column.is_not(None))
