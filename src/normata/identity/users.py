"""Users who are persons. Service accounts have a module of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints
from sqlalchemy import bindparam, func, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.transaction import Transaction
from normata.core.schema.addresses import LONGEST_EMAIL, email_key
from normata.core.schema.table import sql_table
from normata.core.schema.text import plain
from normata.errors import NotFound
from normata.identity.model import Membership, Operator, User

# The tables that :func:`create` and :func:`bring_back` write.
CREATION_WRITES = (insert_of(User), update_of(User, "removed_at"))
RENAME_WRITES = (update_of(User, "name"),)

Addresses = Annotated[
    list[Annotated[str, StringConstraints(max_length=LONGEST_EMAIL, pattern=r"^[^\x00]*$"), AfterValidator(email_key)]],
    Field(
        max_length=100,
        description="Only whoever has this email address, or one of these where it is repeated; the case of its"
        " letters does not matter.",
    ),
]


def named(transaction: Transaction, name: str) -> Any | None:
    """The user with this id or email address, within the transaction's scope; null if there is none."""
    # An address takes precedence over an id with the same spelling, because people type addresses.
    return transaction.row(_BY_EMAIL, {"email": email_key(name)}) or transaction.row(_BY_ID, {"user": name})


def listing(transaction: Transaction) -> Sequence[Any]:
    """All users, by address: their names, whether they are operators, and the number of their organizations."""
    return transaction.rows(_LIST)


def create(unit: UnitOfWork, user_id: str, *, email: str | None, name: str, organization_id: str | None = None) -> None:
    """Create a user: a person with an address, or with ``organization_id`` a service account of that organization.

    Invisible characters of the name are removed; without a name, the address is the name.
    """
    row: dict[str, Any] = {
        "id": user_id,
        "email": email,
        "name": plain(name),
        "organization_id": organization_id,
        "removed_at": None,
    }
    row |= {name: None for name in _NAMES if name not in row}  # what a person has not chosen yet
    User.fill(row)
    User.derive(row)
    unit.rows(_CREATE, row)
    unit.publish(Change("create", User, organization_id, user_id, row))


def rename(unit: UnitOfWork, user_id: str, name: str) -> None:
    """Rename a user, without spaces around the name. Raises NotFound."""
    before = unit.row(_BY_ID, {"user": user_id})
    if before is None:
        raise NotFound
    name = name.strip()
    if name != before.name:
        unit.rows(_RENAME, {"user": user_id, "new_name": name})
        row = before._asdict()
        unit.publish(Change("update", User, before.organization_id, user_id, row | {"name": name}, row))


def bring_back(unit: UnitOfWork, user_id: str) -> None:
    """Restore a removed user; does nothing for others."""
    before = unit.row(_BY_ID, {"user": user_id})
    if before is not None and before.removed_at is not None:
        unit.rows(_BRING_BACK, {"user": user_id})
        row = before._asdict()
        unit.publish(Change("restore", User, before.organization_id, user_id, row | {"removed_at": None}, row))


_USER, _OPERATOR, _MEMBER = sql_table(User), sql_table(Operator), sql_table(Membership)
_NAMES = [column.name for column in _USER.c]
_SHOWN = [_USER.c[name] for name in ("id", "email", "name", "organization_id", "removed_at")]
_BY_ID = select(*_SHOWN).where(_USER.c.id == bindparam("user"))
_BY_EMAIL = select(*_SHOWN).where(_USER.c.email_folded == bindparam("email"))
_MEMBERSHIPS = (
    select(func.count())
    .where(_MEMBER.c.user_id == _USER.c.id, _MEMBER.c.removed_at.is_(None))
    .correlate(_USER)
    .scalar_subquery()
)
_LIST = (
    select(*_SHOWN, _OPERATOR.c.since.label("operator_since"), _MEMBERSHIPS.label("organizations"))
    .outerjoin(_OPERATOR, _OPERATOR.c.user_id == _USER.c.id)
    .order_by(_USER.c.email_folded.nulls_last(), _USER.c.id)
)
_CREATE = insert(_USER).values({column.name: bindparam(column.name, type_=column.type) for column in _USER.c})
_RENAME = update(_USER).where(_USER.c.id == bindparam("user")).values(name=bindparam("new_name"))
_BRING_BACK = update(_USER).where(_USER.c.id == bindparam("user")).values(removed_at=None)
