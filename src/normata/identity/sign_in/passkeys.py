"""Passkeys of people: added, listed, used and removed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.schema.table import new_id, sql_table
from normata.errors import NotFound
from normata.identity.errors import SignInRefused
from normata.identity.sign_in.webauthn import NewCredential
from normata.identity.sign_in_model import Passkey

MOST = 20  # of one person

ADD_WRITES = (insert_of(Passkey),)
USE_WRITES = (update_of(Passkey, "sign_count", "last_used_at"),)
REMOVE_WRITES = (delete_of(Passkey),)


def add(unit: UnitOfWork, user_id: str, made: NewCredential, name: str) -> None:
    """Store a new key of a user. Raises SignInRefused if they have too many.

    The commit raises ConstraintViolation where the key is stored already.
    """
    if (unit.scalar(_COUNT, {"user": user_id}) or 0) >= MOST:
        raise SignInRefused("too_many_passkeys")
    row: dict[str, Any] = {
        "id": new_id(),
        "user_id": user_id,
        "credential_id": made.credential_id,
        "sign_count": made.sign_count,
        "name": name,
        "created_at": unit.moment,
        "last_used_at": None,
    }
    unit.rows(_ADD, {**row, "credential": made.credential})
    unit.publish(Change("create", Passkey, None, row["id"], row))


def note_use(unit: UnitOfWork, passkey_id: str, sign_count: int) -> None:
    """Store the use of a key, and its counter.

    Raises SignInRefused if the counter has not grown: the key may be a copy.

    An authenticator without a counter always returns 0 (WebAuthn, level 3, section 6.1.1).
    """
    row = unit.row(_USE, {"passkey": passkey_id, "count": sign_count, "moment": unit.moment})
    if row is None:
        raise SignInRefused("passkey_count")
    unit.publish(Change("use", Passkey, None, passkey_id, row._asdict(), changed=("last_used_at",)))


def own(transaction: Transaction, user_id: str) -> list[Any]:
    """A user's keys, oldest first."""
    return transaction.rows(_OWN, {"user": user_id})


def remove(unit: UnitOfWork, user_id: str, passkey_id: str) -> None:
    """Remove a key of a user. Raises NotFound."""
    row = unit.row(_REMOVE, {"user": user_id, "passkey": passkey_id})
    if row is None:
        raise NotFound
    unit.publish(Change("remove", Passkey, None, passkey_id, None, row._asdict()))


def _select(credential_id: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} passkey.id AS passkey_id, passkey.user_id, account.name AS user_name,"  # noqa: S608 - built from constants
        " passkey.credential"
        f" FROM {source and source + ' JOIN'} passkey {source and 'ON passkey.credential_id = ' + credential_id}"
        " JOIN user_account AS account ON account.id = passkey.user_id"
        f" WHERE passkey.credential_id = {credential_id}"
        " AND account.removed_at IS NULL AND account.organization_id IS NULL"
        f" ORDER BY {number and number + ','} passkey.id"
    )


# The public key with this credential id, and its user.
PASSKEY_LOOKUP = Lookup(
    name="normata_passkey_lookup",
    arguments=("credential_id",),
    columns={"passkey_id": text(), "user_id": text(), "user_name": text(), "credential": text()},
    select=_select,
)

_PASSKEY = sql_table(Passkey)
_SHOWN = [column for column in _PASSKEY.c if column.name != "credential"]
_IS_OWN = _PASSKEY.c.user_id == bindparam("user")
_SIGN_COUNT = bindparam("count", type_=_PASSKEY.c.sign_count.type)

_COUNT = select(func.count()).select_from(_PASSKEY).where(_IS_OWN)
_ADD = insert(_PASSKEY).values({column.name: bindparam(column.name, type_=column.type) for column in _PASSKEY.c})
_USE = (
    update(_PASSKEY)
    .where(
        _PASSKEY.c.id == bindparam("passkey"),
        or_(_PASSKEY.c.sign_count < _SIGN_COUNT, (_PASSKEY.c.sign_count == 0) & (_SIGN_COUNT == 0)),
    )
    .values(sign_count=_SIGN_COUNT, last_used_at=bindparam("moment", type_=_PASSKEY.c.last_used_at.type))
    .returning(*_SHOWN)
)
_OWN = select(*_SHOWN).where(_IS_OWN).order_by(_PASSKEY.c.created_at, _PASSKEY.c.id)
_REMOVE = delete(_PASSKEY).where(_PASSKEY.c.id == bindparam("passkey"), _IS_OWN).returning(*_SHOWN)
