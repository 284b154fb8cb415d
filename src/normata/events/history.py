"""Lists of events: all of an organization, or the history of one record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Select, and_, bindparam, literal, select, union

from normata.core.db.transaction import Transaction
from normata.core.http.roles import AUDITOR, Role
from normata.core.schema.fields import Identifier, ShortName, Timestamp
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import Table, sql_table, tables
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.events.proofs import leaves_of
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    Framework,
    FrameworkAdoption,
    SetAsideMatch,
)
from normata.frameworks.visibility import visible_to
from normata.identity.model import Membership
from normata.links.model import Link
from normata.links.queries import ids_of_links
from normata.records import assurance as _kinds  # noqa: F401 - importing the kinds registers them in Restorable.kinds
from normata.records.base import Restorable

Changed = dict[str, Any]


class Event(Wire):
    """An audit event: who, with what, when, which row, and its fields before and after."""

    id: str
    organization_id: str | None
    at: Annotated[Timestamp, Field(description="When it was done.")]
    action: Annotated[str, Field(description="What was done: `create`, `update`, `archive`, `restore`, `load`…")]
    kind: Annotated[str, Field(description="The kind of row, by its name in paths and bundles, such as `policies`.")]
    record_id: Annotated[str | None, Field(description="The id of the row; null for many rows at once.")]
    user_id: Annotated[str | None, Field(description="The id of the user who did it; null for a command.")]
    token_id: Annotated[str | None, Field(description="The id of the token that the user did it with.")]
    command: Annotated[str | None, Field(description="The command that did it; null for a request.")]
    address: Annotated[str | None, Field(description="The address that the request came from.")]
    request_id: Annotated[str | None, Field(description="The id of the request: its `X-Request-Id`.")]
    before: Annotated[
        Changed | None,
        Field(description="The fields that have changed, as they were; null for a new row, and for a restore."),
    ]
    after: Annotated[Changed | None, Field(description="The same fields as they are since; null for what has gone.")]
    counts: Annotated[Changed | None, Field(description="For many rows at once: how many of them.")]
    reason: Annotated[str | None, Field(description="Why, where who did it has said so.")]


class NumberedEvent(Event):
    """An event with its place in the log."""

    number: Annotated[
        int | None,
        Field(description="Its number in the log, see `GET /events/log/`; null until it is sealed, within a second."),
    ]


class EventQuery(PageQuery):
    """The query of the list of events."""

    from_: Annotated[Timestamp | None, Field(alias="from", description="Only events at this time or later.")] = None
    to: Annotated[Timestamp | None, Field(description="Only events before this time.")] = None
    kind: Annotated[ShortName | None, Field(description="Only events about this kind of row, such as `policies`.")] = (
        None
    )
    record_id: Annotated[Identifier | None, Field(description="Only events about the row with this id.")] = None
    user_id: Annotated[Identifier | None, Field(description="Only what this user did.")] = None
    action: Annotated[ShortName | None, Field(description="Only this action, such as `restore`.")] = None


# The names of actions in older versions. Sealed events keep them.
FORMER_ACTIONS = {"state": "assess", "unstate": "clear"}


def least_role(query: EventQuery) -> Role:
    """The smallest role for a query: the history of one row is for everybody who can read such rows."""
    return "viewer" if query.record_id is not None and query.kind in _read_by_all() else AUDITOR


def list_events(transaction: Transaction, query: EventQuery) -> dict[str, Any]:
    """A page of an organization's events, newest first, in three statements; in four for an action that was renamed."""
    columns = _EVENT.c
    wanted = {
        columns.entity_id: query.record_id,
        columns.user_id: query.user_id,
        columns.entity_type: query.kind and _class_names().get(query.kind, ""),
    }
    chosen = [column == value for column, value in wanted.items() if value is not None]
    if query.action is not None:
        # Only those that there are: an index has the events of one action in order, but not those of several.
        former = [
            name
            for name, current in FORMER_ACTIONS.items()
            if current == query.action
            and transaction.row(_OF_ACTION, {"organization": query.organization_id, "action": name}) is not None
        ]
        chosen.append(columns.action.in_([query.action, *former]) if former else columns.action == query.action)
    if query.from_ is not None:
        chosen.append(columns.at >= query.from_)
    if query.to is not None:
        chosen.append(columns.at < query.to)
    return _page(transaction, select(*columns).where(*chosen), query)


def list_record_events(
    transaction: Transaction, kind: type[Restorable], record_id: str, query: PageQuery
) -> dict[str, Any]:
    """A page of the history of a record, archived or live, and of its links, newest first, in five statements.

    Raises NotFound.
    """
    parameters = {"record": record_id, "organization": query.organization_id}
    if transaction.row(_find(kind), parameters) is None:
        raise NotFound
    columns = _EVENT.c
    if links := transaction.scalars(ids_of_links(query.organization_id, kind.path, record_id)):
        about = columns.entity_id.in_([record_id, *links])
        return _page_of(transaction, _about(query, (kind, Link), about), query)
    conditions = (columns.entity_type == kind.__name__, columns.entity_id == record_id)
    return _page(transaction, select(*columns).where(*conditions), query)


def list_control_events(transaction: Transaction, control_id: str, query: PageQuery) -> dict[str, Any]:
    """A page of what the organization has said of a control that it can see, newest first, in four statements.

    That is all its assessments and links, and the control itself if it is the organization's own. Raises NotFound.
    """
    parameters = {"control": control_id, "organization": query.organization_id}
    if transaction.row(_CONTROL, parameters) is None:
        raise NotFound
    made = select(_EVENT.c.entity_id).where(
        _EVENT.c.organization_id == query.organization_id, _EVENT.c.control_id == control_id
    )
    # What the previous version has written during an upgrade names no control.
    present = select(_ASSESSMENT.c.id).where(
        _ASSESSMENT.c.organization_id == query.organization_id, _ASSESSMENT.c.control_id == control_id
    )
    about = _EVENT.c.entity_id.in_(
        union(
            made,
            present,
            *ids_of_links(query.organization_id, Control.array, control_id).selects,
            select(literal(control_id)),
        )
    )
    return _page_of(transaction, _about(query, (ControlCoverage, Control, Link), about), query)


def _about(query: PageQuery, kinds: Iterable[type[Table]], about: ColumnElement[bool]) -> Select[Any]:
    """The organization's events of these kinds, with a condition on what they are about.

    They are read by their ids alone: SQLite would rather walk through all events of the organization, in their order.
    """
    own = select(_EVENT.c.id).where(_EVENT.c.organization_id == query.organization_id, about)
    names = [kind.__name__ for kind in kinds]
    return select(*_EVENT.c).where(_EVENT.c.id.in_(own), _EVENT.c.entity_type.in_(names))


def _page(transaction: Transaction, statement: Select[Any], query: PageQuery) -> dict[str, Any]:
    return _page_of(transaction, statement.where(_EVENT.c.organization_id == query.organization_id), query)


def _page_of(transaction: Transaction, statement: Select[Any], query: PageQuery) -> dict[str, Any]:
    found = fetch_page(transaction, statement, [_EVENT.c.at.desc(), _EVENT.c.id.desc()], query)
    leaves = leaves_of(transaction, [row.id for row in found.rows]) if found.rows else {}
    items = [event_wire(row) | {"number": leaves[row.id][0] if row.id in leaves else None} for row in found.rows]
    return envelope(items, found, query)


def event_wire(row: Any) -> dict[str, Any]:
    """An event in wire form. Fields that an older version did not record, or that were erased, are null."""
    body: Mapping[str, Any] = values_of(row.body) if row.body else {}
    return {
        "id": row.id,
        "organizationId": row.organization_id,
        "at": row.at,
        "action": row.action,
        "kind": kind_of(row),
        "recordId": row.entity_id,
        "userId": row.user_id,
        "tokenId": row.token_id,
        "requestId": row.request_id or None,
        **{name: body.get(name) for name in ("command", "address", "before", "after", "counts", "reason")},
    }


def kind_of(row: Any) -> str:
    """The kind of row of an event, by its name on the wire."""
    return _arrays().get(row.entity_type, str(row.entity_type))


@cache
def _arrays() -> dict[str, str]:
    """The name of each kind of row on the wire, by that of its class."""
    return {table.__name__: table.array for table in tables()}


@cache
def _class_names() -> dict[str, str]:
    return {array: name for name, array in _arrays().items() if array}


@cache
def _read_by_all() -> frozenset[str]:
    """The kinds of rows that every member can read."""
    others: tuple[type[Table], ...] = (
        *(Control, ControlCoverage, ControlMatch, SetAsideMatch),
        *(Framework, FrameworkAdoption, Membership, Link),
    )
    return frozenset(table.array for table in (*Restorable.kinds, *others))


_EVENT, _ASSESSMENT = sql_table(AuditEvent), sql_table(ControlCoverage)
_OF_ACTION = (
    select(_EVENT.c.id)
    .where(_EVENT.c.organization_id == bindparam("organization"), _EVENT.c.action == bindparam("action"))
    .limit(1)
)
_CONTROL = (
    select(Control.id)
    .join(Framework, Framework.id == Control.framework_id)
    .outerjoin(
        FrameworkAdoption,
        and_(
            FrameworkAdoption.framework_id == Framework.id,
            FrameworkAdoption.organization_id == bindparam("organization"),
        ),
    )
    .where(Control.id == bindparam("control"), visible_to(bindparam("organization")))
)


@cache
def _find(kind: type[Restorable]) -> Select[Any]:
    table = kind.sql()
    return select(table.c.id).where(
        table.c.id == bindparam("record"), table.c.organization_id == bindparam("organization")
    )
