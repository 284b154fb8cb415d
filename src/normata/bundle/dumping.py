"""From the database to a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, or_, select, union

from normata.audits.model import ChecklistRow
from normata.bundle.arrays import ARRAYS, HISTORY, OPERATORS_OWN
from normata.bundle.history import history_rows
from normata.comments.model import Comment
from normata.core.changes.references import references_of
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.core.schema.wire import as_wire
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import Control, ControlMatch, Framework, MappingDocument, SetAsideMatch
from normata.frameworks.source_model import SourceDocument
from normata.frameworks.visibility import baseline_visible_to, match_visible_to
from normata.frameworks.wording_model import ControlWording
from normata.history.model import AdoptionHistory
from normata.identity.model import Organization
from normata.links.model import Link
from normata.tables import Table


def dump(transaction: Transaction, organization_id: str, file: IO[str]) -> None:
    """Write an organization as one bundle. The same data gives the same bytes.

    It has the organization, all its own rows, and the shared rows that these refer to: users, and whole frameworks with
    the matches between their controls. It does not have tokens (only digests are stored) and audit events, which belong
    to the operator.
    """
    file.write("{")
    separator = "\n"
    for array, table in ARRAYS.items():
        if table not in OPERATORS_OWN:
            file.write(separator)
            write_array(file, array, (as_wire(table, row) for row in _rows(transaction, table, organization_id)))
            separator = ",\n"
    file.write(separator)
    write_array(file, HISTORY, history_rows(transaction, organization_id, _frameworks))
    file.write("\n}\n")


def write_array(file: IO[str], array: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write a member of a bundle, one row per line."""
    file.write(f"  {json.dumps(array)}: [")
    separator = "\n    "
    for row in rows:
        file.write(separator + json.dumps(row, ensure_ascii=False))
        separator = ",\n    "
    file.write("]" if separator == "\n    " else "\n  ]")


def _rows(transaction: Transaction, table: type[Table], organization_id: str) -> Iterator[Any]:
    columns = sql_table(table).c
    order: tuple[ColumnElement[Any], ...] = (columns.id,)
    if table is Control:
        order = (columns.framework_id, columns.position, columns.id)
    statement = select(*columns).where(_belongs(table)).order_by(*order)
    return transaction.stream(statement, {"organization": organization_id})


# --- What belongs to an organization's bundle

_ORGANIZATION: BindParameter[str] = bindparam("organization")


def _belongs(table: type[Table]) -> ColumnElement[bool]:
    columns = sql_table(table).c
    if table in _BELONG:
        return _BELONG[table]()
    if _is_organizations_own(table):
        return columns.organization_id == _ORGANIZATION
    # Rows that organizations share, such as users.
    referred = columns.id.in_(union(*_referred_to(table)))
    return or_(referred, columns.organization_id == _ORGANIZATION) if "organization_id" in columns else referred


def _matches() -> ColumnElement[bool]:
    columns = sql_table(ControlMatch).c
    controls = select(sql_table(Control).c.id).where(sql_table(Control).c.framework_id.in_(_frameworks()))
    ends = columns.source_control_id.in_(controls) & columns.target_control_id.in_(controls)
    return ends & match_visible_to(_ORGANIZATION)


def _baselines() -> ColumnElement[bool]:
    baselines = sql_table(Baseline)
    return baselines.c.framework_id.in_(_frameworks()) & baseline_visible_to(_ORGANIZATION, baselines)


def _source_documents() -> ColumnElement[bool]:
    columns = sql_table(SourceDocument).c
    of_baselines = columns.baseline_id.in_(select(sql_table(Baseline).c.id).where(_baselines()))
    return columns.framework_id.in_(_frameworks()) & (columns.baseline_id.is_(None) | of_baselines)


def _mapping_documents() -> ColumnElement[bool]:
    columns = sql_table(MappingDocument).c
    of_matches = select(sql_table(ControlMatch).c.mapping_document_id).where(_matches())
    return columns.id.in_(of_matches) | (columns.organization_id == _ORGANIZATION)


_BELONG: Mapping[type[Table], Callable[[], ColumnElement[bool]]] = {
    Organization: lambda: sql_table(Organization).c.id == _ORGANIZATION,
    Framework: lambda: sql_table(Framework).c.id.in_(_frameworks()),
    Control: lambda: sql_table(Control).c.framework_id.in_(_frameworks()),
    ControlWording: lambda: sql_table(ControlWording).c.control_id.in_(
        select(sql_table(Control).c.id).where(sql_table(Control).c.framework_id.in_(_frameworks()))
    ),
    Baseline: _baselines,
    BaselineControl: lambda: sql_table(BaselineControl).c.baseline_id.in_(
        select(sql_table(Baseline).c.id).where(_baselines())
    ),
    ControlMatch: _matches,
    MappingDocument: _mapping_documents,
    SourceDocument: _source_documents,
}


def _frameworks() -> Any:
    """The organization's own frameworks, and those that its rows refer to, directly or by one of their controls."""
    frameworks, controls = sql_table(Framework).c, sql_table(Control).c
    adopted = sql_table(AdoptionHistory).c  # those that it has left are part of its past
    return union(
        select(frameworks.id).where(frameworks.organization_id == _ORGANIZATION),
        select(adopted.framework_id).where(adopted.organization_id == _ORGANIZATION),
        *_referred_to(Framework),
        select(controls.framework_id).where(
            controls.id.in_(union(*_referred_to(Control), *_ends_set_aside(), *_named_controls()))
        ),
    )


def _named_controls() -> Iterator[Select[Any]]:
    """The controls that the organization has linked, commented on, or put on a checklist."""
    links = sql_table(Link).c
    for kind, row_id in ((links.from_kind, links.from_id), (links.to_kind, links.to_id)):
        yield select(row_id).where(links.organization_id == _ORGANIZATION, kind == Control.array)
    for table in (Comment, ChecklistRow):
        about = sql_table(table).c
        yield select(about.about_id).where(about.organization_id == _ORGANIZATION, about.about_kind == Control.array)


def _ends_set_aside() -> Iterator[Select[Any]]:
    """The controls of the matches that the organization has set aside."""
    matches, set_aside = sql_table(ControlMatch).c, sql_table(SetAsideMatch).c
    for column in (matches.source_control_id, matches.target_control_id):
        yield (
            select(column)
            .join(sql_table(SetAsideMatch), set_aside.match_id == matches.id)
            .where(set_aside.organization_id == _ORGANIZATION)
        )


def _referred_to(target: type[Table]) -> Iterator[Select[Any]]:
    """The ids of rows of ``target`` that rows of the organization refer to: one statement for each such column."""
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
