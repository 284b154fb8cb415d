"""What has changed in an organization's coverage between two moments, and the events that made it so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, func, or_, select
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction, batches
from normata.core.db.types import UtcTimestamp
from normata.core.schema.fields import CoverageStatus, Timestamp
from normata.core.schema.paging import Counted, PageQuery, envelope, fetch_page
from normata.core.schema.positions import with_todays_position
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.events.history import event_wire
from normata.events.model import AuditEvent
from normata.frameworks.model import Control, Framework
from normata.history.model import ControlHistory, EffectiveHistory
from normata.history.start import known_span, thirty_days_before


class ChangesQuery(PageQuery):
    """The query of changes of coverage."""

    from_: Annotated[
        Timestamp | None,
        Field(
            alias="from",
            description="The earlier moment. Unless said, 30 days before `to`, or the beginning of the known past.",
        ),
    ] = None
    to: Annotated[Timestamp | None, Field(description="The later moment; now unless said.")] = None


class ChangedFramework(Wire):
    """The framework of a control."""

    id: str
    name: str
    identifier: str


class MakingEvent(Wire):
    """An event that changed the coverage of a control, directly or by what follows from it."""

    id: str
    at: Timestamp = Field(description="When it was done.")
    action: str = Field(description="What was done: `assess`, `clear`, `adopt`…")
    kind: str = Field(description="The kind of row that it was about, such as `controlCoverages`.")
    record_id: str | None = Field(description="The id of the row; null for many rows at once.")
    user_id: str | None = Field(description="The id of the user who did it; null for a command.")


class ChangedCoverage(Wire):
    """A control whose effective status is another one."""

    id: str
    identifier: str
    name: str
    framework: ChangedFramework = Field(description="The framework of the control.")
    before: CoverageStatus | None = Field(description="Its status then; null if no adopted framework had the control.")
    after: CoverageStatus | None = Field(description="Its later status, likewise.")
    changed_at: list[Timestamp] = Field(description="When its status, or what it rests on, changed in between.")
    events: list[MakingEvent] = Field(
        description="The organization's events of these moments, oldest first. An import of a centralized catalog is no"
        " event of the organization."
    )


def coverage_changes(transaction: Transaction, query: ChangesQuery) -> dict[str, Any]:
    """A page of the controls whose effective status differs between two moments, in five statements.

    They are in the order of the framework's identifier and the catalog. It takes one more after a cursor. Raises
    PastUnknown and UnfitCursor.
    """
    _, start, end = known_span(transaction, query, transaction.time_of_reading(), thirty_days_before)
    key = {"organization": query.organization_id, "start": start, "end": end}
    counted = Counted(int(transaction.scalar(_COUNT, key) or 0))
    query = with_todays_position(transaction, query, _ORDER, _POSITION, key)
    found = fetch_page(transaction, _ROWS, _ORDER, query, key, counted=counted)
    moments = _moments(transaction, key, [row.id for row in found.rows])
    events = _events(transaction, query.organization_id, {one for found in moments.values() for one in found})
    return envelope(
        [
            {
                "id": row.id,
                "identifier": row.identifier,
                "name": row.name,
                "framework": {
                    "id": row.framework_id,
                    "name": row.framework_name,
                    "identifier": row.framework_identifier,
                },
                "before": row.before,
                "after": row.after,
                "changedAt": moments[row.id],
                "events": [event for moment in moments[row.id] for event in events[moment]],
            }
            for row in found.rows
        ],
        found,
        query,
    )


def _moments(transaction: Transaction, key: dict[str, Any], controls: Sequence[str]) -> defaultdict[str, list[str]]:
    """When what is stored of each control changed between the moments, in order."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for batch in batches(controls):
        for row in transaction.rows(_ENTRIES, key | {"ids": batch}):
            found[row.control_id].update(
                moment for moment in (row.valid_from, row.valid_to) if key["start"] < moment <= key["end"]
            )
    in_order: defaultdict[str, list[str]] = defaultdict(list)
    in_order.update((control, sorted(moments)) for control, moments in found.items())
    return in_order


def _events(transaction: Transaction, organization_id: str, moments: set[str]) -> defaultdict[str, list[Any]]:
    """The events of the organization at these moments, by moment."""
    names = ("id", "at", "action", "kind", "recordId", "userId")
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for batch in batches(sorted(moments)):
        for row in transaction.rows(_EVENTS, {"organization": organization_id, "moments": batch}):
            event = event_wire(row)
            found[row.at].append({name: event[name] for name in names})
    return found


_ORGANIZATION: BindParameter[str] = bindparam("organization")
_FROM, _TO = bindparam("start", type_=UtcTimestamp()), bindparam("end", type_=UtcTimestamp())
_EFFECTIVE, _EVENT = sql_table(EffectiveHistory), sql_table(AuditEvent)
_FRAMEWORK, _CONTROL = sql_table(Framework), sql_table(Control)


def _held(moment: ColumnElement[str]) -> ColumnElement[bool]:
    return and_(_EFFECTIVE.c.valid_from <= moment, _EFFECTIVE.c.valid_to > moment)


_before, _after = (func.max(case((_held(moment), _EFFECTIVE.c.status))) for moment in (_FROM, _TO))
_changed = (
    select(_EFFECTIVE.c.control_id, _before.label("before"), _after.label("after"))
    .where(_EFFECTIVE.c.organization_id == _ORGANIZATION, or_(_held(_FROM), _held(_TO)))
    .group_by(_EFFECTIVE.c.control_id)
    .having(_before.is_distinct_from(_after))
    .subquery("changed")
)
_COUNT = select(func.count()).select_from(_changed)
# A control that is gone is named as it was last.
_gone = aliased(sql_table(ControlHistory), name="gone")
_last = (
    select(func.max(sql_table(ControlHistory).c.valid_to))
    .where(sql_table(ControlHistory).c.id == _changed.c.control_id)
    .correlate(_changed)
    .scalar_subquery()
)
_ROWS = (
    select(
        _changed.c.control_id.label("id"),
        func.coalesce(_CONTROL.c.identifier, _gone.c.identifier, _changed.c.control_id).label("identifier"),
        func.coalesce(_CONTROL.c.name, _gone.c.name, "").label("name"),
        func.coalesce(_CONTROL.c.framework_id, _gone.c.framework_id, "").label("framework_id"),
        func.coalesce(_FRAMEWORK.c.name, "").label("framework_name"),
        func.coalesce(_FRAMEWORK.c.identifier, "").label("framework_identifier"),
        _changed.c.before,
        _changed.c.after,
    )
    .select_from(_changed)
    .outerjoin(_CONTROL, _CONTROL.c.id == _changed.c.control_id)
    .outerjoin(_gone, and_(_CONTROL.c.id.is_(None), _gone.c.id == _changed.c.control_id, _gone.c.valid_to == _last))
    .outerjoin(_FRAMEWORK, _FRAMEWORK.c.id == func.coalesce(_CONTROL.c.framework_id, _gone.c.framework_id))
)
_ORDER = (_FRAMEWORK.c.identifier_key.nulls_last(), _CONTROL.c.position.nulls_last(), _changed.c.control_id)
_POSITION = (
    select(_CONTROL.c.position)
    .join(_EFFECTIVE, _EFFECTIVE.c.control_id == _CONTROL.c.id)
    .where(_CONTROL.c.id == bindparam("last"), _EFFECTIVE.c.organization_id == _ORGANIZATION)
    .limit(1)
)
_ENTRIES = select(_EFFECTIVE.c.control_id, _EFFECTIVE.c.valid_from, _EFFECTIVE.c.valid_to).where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION,
    _EFFECTIVE.c.control_id.in_(bindparam("ids", expanding=True)),
    _EFFECTIVE.c.valid_from <= _TO,
    _EFFECTIVE.c.valid_to > _FROM,
)
_EVENTS = (
    select(*_EVENT.c)
    .where(_EVENT.c.organization_id == _ORGANIZATION, _EVENT.c.at.in_(bindparam("moments", expanding=True)))
    .order_by(_EVENT.c.at, _EVENT.c.id)
)
