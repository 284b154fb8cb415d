"""Writing, changing and removing comments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, select

from normata.comments.model import Comment
from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.changes.writing import BODY, valid_rows, write_one
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, Forbidden, NotFound
from normata.identity.authority import own_membership
from normata.identity.organization_lookup import reached
from normata.links.commands import as_sent
from normata.links.model import End
from normata.links.queries import named_ends
from normata.links.relations import MEMBERS, TABLES
from normata.links.rules import fault_ends
from normata.records.archive.queries import KINDS as RECORDS

KINDS = tuple(kind for kind in TABLES if kind != MEMBERS)

CREATION_WRITES = (insert_of(Comment),)
CHANGE_WRITES = (update_of(Comment, "text", "updated_at"),)
REMOVAL_WRITES = (delete_of(Comment),)

_SENT = {"aboutKind": ("about", "kind"), "aboutId": ("about", "id")}
_NOT_AUTHOR = "Only who has written a comment can change it."
_NO_PERSON = "A service account does not comment."


def write(unit: UnitOfWork, organization: str, about: End, text: str, *, comment_id: str | None = None) -> Any:
    """Write a comment, and return its row. Its id is new, or ``comment_id``, which must be free.

    Raises NotFound, InsufficientRole, Archived if it is about an archived record, Forbidden for a service account, and
    FaultyInput if it is about nothing in the organization.
    """
    organization_id = reached(unit, organization)
    author_id = own_membership(unit, organization_id)
    if author_id is None:
        raise Forbidden(_NO_PERSON)
    values = {
        "id": comment_id or new_id(),
        "organizationId": organization_id,
        "aboutKind": about.kind,
        "aboutId": about.id,
        "authorId": author_id,
        "text": text,
    }
    try:
        row = _store(unit, "create", values)
    except FaultyInput as error:
        raise FaultyInput([as_sent(fault, _SENT) for fault in error.faults]) from None
    if about.kind in RECORDS and not named_ends(unit, organization_id, {about})[about]["isLive"]:
        raise Archived
    return row


def change(unit: UnitOfWork, comment_id: str, text: str, *, require_current: Callable[[Any], None]) -> Any:
    """Change the text of one's own comment, and return its row.

    ``require_current`` gets the row before, and raises if that is not what the caller knows. Raises NotFound,
    InsufficientRole, Forbidden and FaultyInput.
    """
    before = _own(unit, comment_id)
    require_current(before)
    return _store(unit, "update", {"id": comment_id, "text": text}, before)


def remove(unit: UnitOfWork, comment_id: str) -> None:
    """Remove one's own comment. Raises NotFound, InsufficientRole and Forbidden."""
    before = _own(unit, comment_id)
    unit.rows(_DELETE, {"comment": comment_id})
    unit.publish(Change("delete", Comment, before.organization_id, before.id, before=before._asdict()))


def check(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for comments about what does not exist in the organization."""
    fault_ends(rows, references, [("about_kind", "about_id")], KINDS)


def _own(unit: UnitOfWork, comment_id: str) -> Any:
    row = unit.row(_LOCK, {"comment": comment_id})
    if row is None:
        raise NotFound
    unit.require_reach(row.organization_id)
    if own_membership(unit, row.organization_id) != row.author_id:
        raise Forbidden(_NOT_AUTHOR)
    return row


def _store(unit: UnitOfWork, action: str, values: Mapping[str, Any], before: Any = None) -> Any:
    row = Row(Comment.array, BODY, "", dict(values))
    [pending] = valid_rows(unit, Comment, [row], own_rules={Comment: check}, are_new=before is None)
    if not pending.changed:
        return before
    written = write_one(unit, Comment, pending)
    known = None if before is None else before._asdict()
    unit.publish(Change(action, Comment, written.organization_id, written.id, written._asdict(), known))
    return written


_TABLE = sql_table(Comment)
_LOCK = select(*_TABLE.c).where(_TABLE.c.id == bindparam("comment")).with_for_update()
_DELETE = delete(_TABLE).where(_TABLE.c.id == bindparam("comment"))
