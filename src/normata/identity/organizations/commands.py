"""Changes of an organization: it is created, renamed, removed and restored, and never deleted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects import postgresql

from normata.core.changes.jobs import JOB_WRITES, schedule
from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.changes.writing import BODY
from normata.core.schema.table import sql_table
from normata.core.schema.text import slugify
from normata.errors import CommandError, NotFound
from normata.identity.authority import lock_members, require_role
from normata.identity.mail_choices import DEFAULT_CHOICE
from normata.identity.model import Membership, Organization, User

_CHANGEABLE = (
    "name",
    "stale_assessments",
    "scope",
    "risk_levels",
    "mail",
    "keep_replaced_files_days",
    "allows_self_approval",
    "verifies_findings",
)

CREATION_WRITES = (insert_of(Organization),)
CHANGE_WRITES = (update_of(Organization, *_CHANGEABLE), *JOB_WRITES)
REMOVAL_WRITES = (update_of(Organization, "removed_at"), update_of(Membership, "removed_at"))

LAPSES = "lapses"  # the job that lapses or reinstates assessments after the organization's setting has changed
_NEW = {
    **dict.fromkeys(("removed_at", "scope", "risk_levels", "keep_replaced_files_days")),
    "stale_assessments": "FLAG",
    "mail": DEFAULT_CHOICE,
    "allows_self_approval": False,
    "verifies_findings": False,
}


def create(unit: UnitOfWork, organization_id: str, name: str, slug: str | None = None) -> Any:
    """Create an organization without members, and return its row.

    Without a slug it gets one derived from its name. Raises FaultyInput if the slug is taken, also by a removed
    organization.
    """
    for one in [slug] if slug is not None else _slugs(name):
        row = unit.row(_CREATE, {"id": organization_id, "name": name.strip(), "slug": one, **_NEW})
        if row is not None:
            unit.publish(Change("create", Organization, organization_id, organization_id, row._asdict()))
            return row
    faulty = Row(Organization.array, BODY, "", {"slug": slug})
    raise FaultyInput([faulty.fault("slug", "is that of another organization")])


def _slugs(name: str) -> Iterator[str]:
    slug = slugify(name)
    yield slug
    yield from (f"{slug}-{number}" for number in count(2))


def change(unit: UnitOfWork, organization_id: str, **values: Any) -> Any:
    """Change columns of an organization, and return its row. Raises NotFound and InsufficientRole.

    A job then updates stale assessments, immediately.
    """
    before = _found(unit, organization_id)
    require_role(unit, organization_id, "admin")
    after = {name: values.get(name, getattr(before, name)) for name in _CHANGEABLE}
    if all(getattr(before, name) == value for name, value in after.items()):
        return before
    row: Any = unit.row(
        _CHANGE, {"organization": organization_id} | {f"new_{name}": value for name, value in after.items()}
    )
    _publish(unit, "update", before, row)
    if row.stale_assessments != before.stale_assessments:
        schedule(unit, LAPSES, organization_id, "", unit.moment)
    return row


def remove(unit: UnitOfWork, organization_id: str) -> Any:
    """Remove an organization, and return its row. Repeating it is harmless. From now on no member sees it.

    Nothing that it owns is deleted. Raises NotFound and InsufficientRole.
    """
    before = _found(unit, organization_id)
    require_role(unit, organization_id, "owner")
    lock_members(unit, organization_id)
    if before.removed_at is not None:
        return before
    row = unit.row(_REMOVE, {"organization": organization_id, "moment": unit.moment})
    ended = unit.rows(_END_MEMBERSHIPS, {"organization": organization_id, "moment": unit.moment})
    _publish(unit, "remove", before, row)
    for member in ended:
        after = member._asdict()
        unit.publish(Change("remove", Membership, organization_id, member.id, after, after | {"removed_at": None}))
    return row


def restore(unit: UnitOfWork, organization_id: str) -> int:
    """Restore a removed organization with its former members, and return their number.

    Raises NotFound, and CommandError if it was not removed.
    """
    before = _found(unit, organization_id)
    if before.removed_at is None:
        raise CommandError(f"the organization {before.slug} has not been removed")
    lock_members(unit, organization_id)
    row = unit.row(_RESTORE, {"organization": organization_id})
    back = unit.rows(_RESTORE_MEMBERSHIPS, {"organization": organization_id, "since": before.removed_at})
    _publish(unit, "restore", before, row)
    for member in back:
        after = member._asdict()
        was = after | {"removed_at": before.removed_at}
        unit.publish(Change("restore", Membership, organization_id, member.id, after, was))
    return len(back)


def _found(unit: UnitOfWork, organization_id: str) -> Any:
    row = unit.row(_ONE, {"organization": organization_id})
    if row is None:
        raise NotFound
    unit.require_reach(organization_id)
    return row


def _publish(unit: UnitOfWork, action: str, before: Any, row: Any) -> None:
    unit.publish(Change(action, Organization, row.id, row.id, row._asdict(), before._asdict()))


_TABLE, _MEMBER, _USER = sql_table(Organization), sql_table(Membership), sql_table(User)
_IS_THIS = _TABLE.c.id == bindparam("organization")
_IS_MEMBER = _MEMBER.c.organization_id == bindparam("organization")
_MOMENT = bindparam("moment", type_=_TABLE.c.removed_at.type)

_ONE = select(*_TABLE.c).where(_IS_THIS)
# SQLite's compiler accepts PostgreSQL's construct. Other organizations are not visible, so only this insert can find
# out that a slug is taken.
_CREATE = (
    postgresql.insert(_TABLE)
    .values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
    .on_conflict_do_nothing(index_elements=[_TABLE.c.slug])
    .returning(*_TABLE.c)
)
_CHANGE = (
    update(_TABLE)
    .where(_IS_THIS)
    .values({name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in _CHANGEABLE})
    .returning(*_TABLE.c)
)
_REMOVE = update(_TABLE).where(_IS_THIS).values(removed_at=_MOMENT).returning(*_TABLE.c)
_RESTORE = update(_TABLE).where(_IS_THIS).values(removed_at=None).returning(*_TABLE.c)
_END_MEMBERSHIPS = (
    update(_MEMBER).where(_IS_MEMBER, _MEMBER.c.removed_at.is_(None)).values(removed_at=_MOMENT).returning(*_MEMBER.c)
)
_RESTORE_MEMBERSHIPS = (
    update(_MEMBER)
    .where(
        _IS_MEMBER,
        _MEMBER.c.removed_at == bindparam("since", type_=_MEMBER.c.removed_at.type),
        # Users who were removed from the instance meanwhile stay removed.
        _MEMBER.c.user_id.in_(select(_USER.c.id).where(_USER.c.removed_at.is_(None))),
    )
    .values(removed_at=None)
    .returning(*_MEMBER.c)
)
