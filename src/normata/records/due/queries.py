"""Due dates: what is due or overdue and not done yet, of every kind with such dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import Field, StringConstraints
from pydantic.alias_generators import to_camel
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    TextClause,
    and_,
    bindparam,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy import Table as SqlTable
from sqlalchemy import text as sql_text

from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, format_timestamp, now, passes_at, text
from normata.core.schema.cursors import SortKeys
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import PageQuery, QueryFlag, envelope, fetch_page
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import Wire
from normata.frameworks.model import REVIEW_IS_DUE, Control, ControlCoverage
from normata.identity.model import Membership, User
from normata.records import assurance as _kinds  # noqa: F401 - importing the kinds registers them in Restorable.kinds
from normata.records.base import Restorable, where_due
from normata.records.owners import Owner, has_linked_owners, is_owned_by, owners_by_links, responsible_column


class DueDate(NamedTuple):
    """A date by which something has to be done: of a kind of records, or of assessments."""

    table: type[Table]
    column: str

    @property
    def kind(self) -> type[Restorable]:
        """The kind of records with the date."""
        assert issubclass(self.table, Restorable)  # noqa: S101 - narrows the type
        return self.table

    @property
    def has_time(self) -> bool:
        """Whether the time of the date matters, and not only its day."""
        return issubclass(self.table, Restorable) and self.table.has_times

    def sql(self) -> SqlTable:
        """The table, for Core statements."""
        return sql_table(self.table)

    def is_open(self) -> TextClause:
        """The condition that a row is live and the date still has to be met. An index has exactly these rows."""
        if issubclass(self.table, Restorable):
            return sql_text(where_due(self.column, self.sql().c[self.column].info["due"]))
        return sql_text(REVIEW_IS_DUE)

    @property
    def ends_by_passing(self) -> bool:
        """Whether the date is done once it has passed."""
        return issubclass(self.table, Restorable) and self.sql().c[self.column].info["due"].ends_by_passing

    def is_ahead(self) -> ColumnElement[bool]:
        """The condition that the date has not passed, where it ends by that; its parameters are :func:`present`."""
        if not self.ends_by_passing:
            return true()
        at = self.sql().c[self.column]
        moment, today = bindparam("moment", type_=at.type), bindparam("today", type_=at.type)
        return and_(at >= today, or_(at > moment, at == today))

    def label(self) -> ColumnElement[Any]:
        """The title of a row; for an assessment, the name of its control."""
        if issubclass(self.table, Restorable):
            return self.sql().c[self.table.title_column()]
        return select(_CONTROL.c.name).where(_CONTROL.c.id == self.sql().c.control_id).scalar_subquery()


@cache
def due_dates() -> tuple[DueDate, ...]:
    """The dates of all kinds."""
    return tuple(
        DueDate(kind, column.name) for kind in Restorable.kinds for column in kind.sql().c if "due" in column.info
    )


def present(moment: str) -> dict[str, str]:
    """The parameters of :meth:`DueDate.is_ahead` at a moment: a date without a time passes when its day ends."""
    day = datetime.fromisoformat(moment).replace(hour=0, minute=0, second=0, microsecond=0)
    return {"moment": moment, "today": format_timestamp(day)}


REVIEW = DueDate(ControlCoverage, "review_by")


def all_due_dates() -> tuple[DueDate, ...]:
    """Those of all kinds, and the review of assessments."""
    return (*due_dates(), REVIEW)


class Responsible(Wire):
    """The responsible member of a record."""

    member_id: str = Field(description="The id of the membership.")
    name: str = Field(description="The name of the user.")


class DueItem(Wire):
    """A date of a record, or of an assessment, by which something has to be done."""

    kind: str = Field(
        description="The kind of the record: the first segment of its address, such as `tasks`. Of an assessment it is"
        " `controlCoverages`."
    )
    id: str
    label: str = Field(description="The name or title of the record, or the name of the control that was assessed.")
    control_id: str | None = Field(description="The control of an assessment; null for records.")
    what: str = Field(description="The field of the record that has the date, such as `deadline`.")
    at: Timestamp = Field(description="The date.")
    overdue: bool = Field(description="Whether the date has passed. A date without a time passes when its day ends.")
    responsible: Responsible | None = Field(
        description="Who is responsible for the record; null if nobody is. Of several owners of a finding it is the one"
        " who was linked first."
    )


class DueQuery(PageQuery):
    """The query of the list of what is due."""

    within: Annotated[
        str,
        StringConstraints(pattern=r"^[0-9]{1,4}d$"),
        Field(description="How many days to look ahead, such as `30d`. What is overdue is always there."),
    ] = "30d"
    mine: Annotated[QueryFlag, Field(description="Whether to list only items for which you are responsible.")] = False


def list_due(transaction: Transaction, user_id: str, query: DueQuery) -> dict[str, Any]:
    """A page of what is due in an organization, soonest first; in two to four statements."""
    moment = now()
    parameters = {
        "organization": query.organization_id,
        "user": user_id,
        "until": format_timestamp(datetime.fromisoformat(moment) + timedelta(days=int(query.within[:-1]))),
        **present(moment),
    }
    dates = _due(mine=query.mine, are_near=True)
    columns = dates.selected_columns
    order = [columns["at"], columns["id"], columns["kind"], columns["what"]]
    # One to see whether there is a next page, and the last one of the page before, whose id may be another kind's, too.
    near: dict[str, Any] = {"last_at": _EARLIEST, "last_id": "", "reach": (query.offset or 0) + query.limit + 2}
    if query.start is not None:
        SortKeys(order).check(query.start.keys)
        near |= {"last_at": query.start.keys[0], "last_id": query.start.keys[1]}
    found = fetch_page(transaction, dates, order, query, parameters | near, all_rows=_due(mine=query.mine))
    people = _responsible(transaction, query.organization_id, found.rows)
    items = [
        {
            "kind": row.kind,
            "id": row.id,
            "label": row.label,
            "controlId": row.control_id,
            "what": row.what,
            "at": row.at,
            "overdue": is_overdue(row.at, moment),
            "responsible": person and {"memberId": person.member_id, "name": person.name},
        }
        for row, person in zip(found.rows, people, strict=True)
    ]
    return envelope(items, found, query)


def own_dates(transaction: Transaction, organization_id: str, user_id: str, most: int) -> list[Any]:
    """The dates for which a user is responsible, however far ahead: the ``most`` soonest, in one statement.

    The rows have ``kind``, ``id``, ``label``, ``control_id``, ``what``, ``at``, and ``changed_at``, when the record was
    last changed, null if that is not known.
    """
    dates = _due(mine=True, are_near=True, with_change=True)
    columns = dates.selected_columns
    return transaction.rows(
        dates.order_by(*(columns[name] for name in ("at", "id", "kind", "what"))).limit(bindparam("most")),
        {
            "organization": organization_id,
            "user": user_id,
            "until": _LATEST,
            **present(now()),
            "last_at": _EARLIEST,
            "last_id": "",
            "reach": most,
            "most": most,
        },
    )


def _responsible(transaction: Transaction, organization_id: str, rows: Sequence[Any]) -> list[Owner | None]:
    """Who is responsible for each of the rows, in two statements at most: one who is named, or has the first link."""
    named = sorted({row.member_id for row in rows if row.member_id is not None})
    names = {row.id: row.name for row in transaction.rows(_NAMES, {"ids": named})} if named else {}
    linked = {row.id for row in rows if row.kind in _linked_kinds()}
    owners = owners_by_links(transaction, organization_id, linked) if linked else {}
    return [
        Owner(row.member_id, names.get(row.member_id, ""))
        if row.member_id is not None
        else next(iter(owners.get((row.kind, row.id), ())), None)
        for row in rows
    ]


@cache
def _linked_kinds() -> frozenset[str]:
    return frozenset(date.table.array for date in all_due_dates() if has_linked_owners(date.table))


_EARLIEST, _LATEST = "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"


def is_overdue(at: str, moment: str) -> bool:
    """Whether a date has passed."""
    return passes_at(at) <= moment


_CONTROL, _MEMBER, _USER = sql_table(Control), sql_table(Membership), sql_table(User)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_MINE = select(_MEMBER.c.id).where(_MEMBER.c.organization_id == _ORGANIZATION, _MEMBER.c.user_id == bindparam("user"))
_NAMES = (
    select(_MEMBER.c.id, _USER.c.name)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(_MEMBER.c.id.in_(bindparam("ids", expanding=True)))
)


@cache
def _due(*, mine: bool, are_near: bool = False, with_change: bool = False) -> Select[Any]:
    """The dates before ``until`` of all kinds; with ``mine``, only those for which the user is responsible.

    With ``are_near``, there are only so many of each kind as the page can need, so that an index scan ends early. With
    ``with_change``, the rows say when they were last changed.
    """
    some = [_of(date, mine=mine, with_change=with_change) for date in all_due_dates()]
    if are_near:
        some = [select(*_near(one).subquery().c) for one in some]
    every = union_all(*some).subquery("due")
    return select(*every.c)


def _near(dates: Select[Any]) -> Select[Any]:
    at, row_id = dates.selected_columns["at"], dates.selected_columns["id"]
    last = tuple_(bindparam("last_at", type_=UtcTimestamp()), bindparam("last_id", type_=row_id.type))
    reach = bindparam("reach", type_=Integer())
    return dates.where(tuple_(at, row_id) >= last).order_by(at, row_id).limit(reach)


def _of(date: DueDate, *, mine: bool, with_change: bool) -> Select[Any]:
    table = date.sql()
    column = responsible_column(date.table)
    member = literal_column("NULL", text()) if column is None else table.c[column]
    found = select(
        literal_column(f"'{date.table.array}'", text()).label("kind"),
        table.c.id,
        date.label().label("label"),
        (table.c.control_id if date.table is ControlCoverage else literal_column("NULL", text())).label("control_id"),
        literal_column(f"'{to_camel(date.column)}'", text()).label("what"),
        table.c[date.column].label("at"),
        member.label("member_id"),
    ).where(
        date.is_open(),
        date.is_ahead(),
        table.c.organization_id == _ORGANIZATION,
        table.c[date.column] <= bindparam("until", type_=UtcTimestamp()),
    )
    if with_change:
        changed = table.c.updated_at if "updated_at" in table.c else table.c.created_at
        found = found.add_columns(changed.label("changed_at"))
    return found.where(is_owned_by(date.table, _MINE)) if mine else found
