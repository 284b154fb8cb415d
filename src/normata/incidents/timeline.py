"""The timeline of an incident: what happened, what was done about it, and who has recorded it when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field
from sqlalchemy import and_, bindparam, or_, select

from normata.comments.model import Comment
from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Timestamp, Token
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire, as_wire, columns
from normata.errors import NotFound
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.identity.model import Membership, User
from normata.incidents.closing import needed_to_close
from normata.links.model import Link
from normata.records.kinds import Incident, Task

# Fields with a moment, the type of their entry, and the field that says more.
_MOMENTS: Mapping[str, tuple[str, str | None]] = {
    "occurredAt": ("OCCURRED", None),
    "detectedAt": ("DETECTED", None),
    "authorityNotifiedAt": ("AUTHORITY_NOTIFIED", "notificationNotes"),
    "dataSubjectsNotifiedAt": ("DATA_SUBJECTS_NOTIFIED", None),
    "resolvedAt": ("RESOLVED", None),
    "closedAt": ("CLOSED", None),
}
_TEXTS = {"rootCause": "ROOT_CAUSE", "lessonsLearned": "LESSONS_LEARNED"}
# A status of which a field has the moment, and which needs no entry of its own then.
_OF_STATUS = {"RESOLVED": "resolvedAt", "CLOSED": "closedAt"}
_CONTAINED, _DONE = "CONTAINED", "DONE"
TYPES = (
    *("OCCURRED", "DETECTED", "REPORTED", "RATED", "BREACH", "STATUS", _CONTAINED, "AUTHORITY_NOTIFIED"),
    *("DATA_SUBJECTS_NOTIFIED", "RESOLVED", "ROOT_CAUSE", "LESSONS_LEARNED", "CLOSED", "COMMENT", "TASK_ADDED"),
    "TASK_DONE",
)
_MOST = 1_000  # of the events, of the comments, and of the tasks


class TimelineUser(Wire):
    """Who has recorded an entry."""

    id: str = Field(description="The id of the user.")
    name: str = Field(description="The name of the user.")


class TimelineRecord(Wire):
    """The comment or task that an entry is about."""

    kind: str = Field(description="`comments` or `tasks`.")
    id: str = Field(description="The id.")


class TimelineEntry(Wire):
    """What happened at a moment."""

    at: Timestamp = Field(description="When it happened.")
    type: Token = Field(
        description=f"What it was. Known values: {', '.join(TYPES)}.",
        json_schema_extra={"x-extensible-enum": list(TYPES)},
    )
    text: str | None = Field(
        description="What there is to say: the severity or status, the notes on the notification, the cause, the"
        " lessons, the comment in Markdown, or the title of the task; null for nothing."
    )
    user: TimelineUser | None = Field(description="Who has recorded it; null if that is not known.")
    recorded_at: Timestamp | None = Field(description="When it was recorded; null if that is not known.")
    record: TimelineRecord | None = Field(description="The comment or task that it is about; null for none.")


class IncidentTimeline(Wire):
    """The timeline of an incident."""

    items: list[TimelineEntry] = Field(description="The entries, the earliest first.")
    is_complete: bool = Field(description=f"False if there are more than {_MOST:,} events, comments or tasks.")
    missing: list[str] = Field(description="The fields that it should have before it is closed, and does not.")


class _Recorded(NamedTuple):
    """Who has recorded something, and when; nulls if that is not known."""

    by: str | None
    at: str | None


class _Event(NamedTuple):
    """An event of a record: what it has changed, to which values."""

    at: str
    recorded: _Recorded
    action: str
    record_id: str
    after: Mapping[str, Any]


def timeline(transaction: Transaction, query: OrganizationQuery, incident_id: str) -> dict[str, Any]:
    """The members of :class:`IncidentTimeline`, in six statements at most. Raises NotFound."""
    key = {"organization": query.organization_id, "incident": incident_id}
    row = transaction.row(_INCIDENT, key)
    if row is None:
        raise NotFound
    incident = as_wire(Incident, row)
    events = list(_events(transaction.rows(_EVENTS, key | {"ids": [incident_id], "type": Incident.__name__})))
    comments = transaction.rows(_COMMENTS, key)
    tasks = {task.id: task.title for task in transaction.rows(_TASKS, key)}
    done = transaction.rows(_EVENTS, key | {"ids": [*tasks], "type": Task.__name__}) if tasks else ()
    of_tasks = list(_events(done))
    found = [*_of_incident(incident, events), *_of_tasks(tasks, of_tasks)]
    found += [
        _entry(one.created_at, "COMMENT", one.text, _Recorded(one.user_id, one.created_at), ("comments", one.id))
        for one in comments
    ]
    found.sort(key=lambda one: (one["at"], one["recordedAt"] or ""))
    people = {one["user"] for one in found if one["user"]}
    names = {one.id: one.name for one in transaction.rows(_USERS, {**key, "ids": sorted(people)})} if people else {}
    for one in found:
        one["user"] = {"id": one["user"], "name": names[one["user"]]} if one["user"] in names else None
    return {
        "items": found,
        "isComplete": max(map(len, (events, comments, tasks, done))) < _MOST,
        "missing": [name for name, is_there in needed_to_close(incident).items() if not is_there],
    }


def _of_incident(incident: Mapping[str, Any], events: Sequence[_Event]) -> Iterator[dict[str, Any]]:
    for name, (kind, says) in _MOMENTS.items():
        if incident[name]:
            recorded = _recorded(name, incident[name], events)
            yield _entry(incident[name], kind, incident[says] if says else None, recorded)
    for name, kind in _TEXTS.items():
        if incident[name]:
            recorded = _recorded(name, incident[name], events)
            at = recorded.at or incident["closedAt"] or incident["updatedAt"]
            yield _entry(at, kind, incident[name], recorded)
    for event in events:
        after = event.after
        if event.action == "create":
            yield _entry(event.at, "REPORTED", None, event.recorded)
            continue
        if status := after.get("status"):
            if status == _CONTAINED:
                yield _entry(event.at, _CONTAINED, None, event.recorded)
            elif not (field := _OF_STATUS.get(status)) or not incident[field]:
                yield _entry(event.at, "STATUS", status, event.recorded)
        if severity := after.get("severity"):
            yield _entry(event.at, "RATED", severity, event.recorded)
        if after.get("isPersonalDataBreach"):
            yield _entry(event.at, "BREACH", None, event.recorded)


def _of_tasks(tasks: Mapping[str, str], events: Sequence[_Event]) -> Iterator[dict[str, Any]]:
    """When tasks were made, and when they were done, as far as they are still so."""
    last = {event.record_id: event for event in events if "status" in event.after}
    for event in events:
        record = ("tasks", event.record_id)
        title = tasks[event.record_id]
        if event.action == "create":
            yield _entry(event.at, "TASK_ADDED", title, event.recorded, record)
        if event.after.get("status") == _DONE and last[event.record_id] is event:
            yield _entry(event.at, "TASK_DONE", title, event.recorded, record)


def _recorded(name: str, value: Any, events: Sequence[_Event]) -> _Recorded:
    """Who has given a field its value, and when."""
    found = (event.recorded for event in reversed(events) if event.after.get(name) == value)
    return next(found, _Recorded(None, None))


def _events(rows: Sequence[Any]) -> Iterator[_Event]:
    """Events with a content, the oldest first. Erased ones have none."""
    for row in reversed(rows):
        if row.body:
            yield _Event(
                row.at, _Recorded(row.user_id, row.at), row.action, row.entity_id, values_of(row.body)["after"] or {}
            )


def _entry(
    at: str, kind: str, text: str | None, recorded: _Recorded, record: tuple[str, str] | None = None
) -> dict[str, Any]:
    """An entry in wire form, but for its user, which is an id."""
    about = None if record is None else {"kind": record[0], "id": record[1]}
    return {"at": at, "type": kind, "text": text, "user": recorded.by, "recordedAt": recorded.at, "record": about}


# --- Statements

_TABLE, _TASK, _EVENT, _COMMENT = Incident.sql(), Task.sql(), sql_table(AuditEvent), sql_table(Comment)
_LINK, _MEMBER, _USER = sql_table(Link), sql_table(Membership), sql_table(User)
_ORGANIZATION: Any = bindparam("organization")
_ID: Any = bindparam("incident")
_IDS: Any = bindparam("ids", expanding=True)
_INCIDENT = select(*columns(Incident)).where(_TABLE.c.organization_id == _ORGANIZATION, _TABLE.c.id == _ID)
_EVENTS = (
    select(_EVENT.c.at, _EVENT.c.user_id, _EVENT.c.action, _EVENT.c.entity_id, _EVENT.c.body)
    .where(
        _EVENT.c.organization_id == _ORGANIZATION,
        _EVENT.c.entity_id.in_(_IDS),
        _EVENT.c.entity_type == bindparam("type"),
    )
    .order_by(_EVENT.c.at.desc(), _EVENT.c.id.desc())
    .limit(_MOST)
)
_COMMENTS = (
    select(_COMMENT.c.id, _COMMENT.c.text, _COMMENT.c.created_at, _MEMBER.c.user_id)
    .join(_MEMBER, _MEMBER.c.id == _COMMENT.c.author_id)
    .where(
        _COMMENT.c.organization_id == _ORGANIZATION,
        _COMMENT.c.about_id == _ID,
        _COMMENT.c.about_kind == Incident.path,
    )
    .order_by(_COMMENT.c.created_at.desc(), _COMMENT.c.id.desc())
    .limit(_MOST)
)


def _linked(own: str, other: str) -> Any:
    """The tasks that a live link connects with the incident, which is at the end ``other``."""
    ends = (_LINK.c[f"{own}_kind"] == Task.path, _LINK.c[f"{other}_kind"] == Incident.path)
    found = and_(_LINK.c.organization_id == _ORGANIZATION, _LINK.c[f"{other}_id"] == _ID, _LINK.c.removed_at.is_(None))
    return select(_LINK.c[f"{own}_id"]).where(found, *ends)


_TASKS = (
    select(_TASK.c.id, _TASK.c.title)
    .where(
        _TASK.c.organization_id == _ORGANIZATION,
        or_(
            _TASK.c.incident_id == _ID,
            _TASK.c.id.in_(_linked("from", "to")),
            _TASK.c.id.in_(_linked("to", "from")),
        ),
    )
    .order_by(_TASK.c.created_at.desc(), _TASK.c.id.desc())
    .limit(_MOST)
)
_USERS = (
    select(_USER.c.id, _USER.c.name)
    .join(_MEMBER, _MEMBER.c.user_id == _USER.c.id)
    .where(_MEMBER.c.organization_id == _ORGANIZATION, _USER.c.id.in_(_IDS))
)
