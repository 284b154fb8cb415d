"""Access tokens: how they look, how they are kept, and their life from creation to revocation.

A token is ``nrm_``, 32 random bytes in base62 (43 digits) and a CRC-32 of all that in base62 (6 digits). The prefix
lets secret scanners find leaked tokens. The checksum tells a token from noise without a look-up.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from normata.changes.unit_of_work import Change, UnitOfWork
from normata.db.transaction import Transaction
from normata.db.types import format_timestamp
from normata.identity.model import AccessToken, User
from normata.schema.table import new_id, sql_table
from normata.schema.text import fold

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_SHAPE = re.compile(r"nrm_[0-9A-Za-z]{49}", re.ASCII)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), 6)


def generate() -> str:
    """A new token. It is kept nowhere: whoever does not note it has lost it."""
    body = "nrm_" + _base62(int.from_bytes(secrets.token_bytes(32)), 43)
    return body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """Whether ``token`` has the form and the checksum of a token."""
    if _SHAPE.fullmatch(token) is None:
        return False
    stated = 0
    for digit in token[-6:]:
        stated = stated * 62 + _VALUES[digit]
    return stated == zlib.crc32(token[:-6].encode())


def digest(token: str) -> str:
    """What is kept of a token. With 256 random bits a plain hash is enough: nobody can try them all."""
    return hashlib.sha256(token.encode()).hexdigest()


class NoSuchUser(LookupError):
    """No user has this email address."""


def create(unit: UnitOfWork, *, email: str, scope: str, lifetime: timedelta | None) -> str:
    """A new token of the user with ``email``, good for ``lifetime`` (null: until revoked). Raises NoSuchUser."""
    user_id = unit.scalar(_USER, {"email": fold(email)})
    if user_id is None:
        raise NoSuchUser(email)
    token = generate()
    row = {
        "id": new_id(),
        "user_id": user_id,
        "organization_id": None,
        "name": None,
        "scope": scope,
        "created_at": unit.moment,
        "expires_at": None if lifetime is None else format_timestamp(datetime.fromisoformat(unit.moment) + lifetime),
        "last_used_at": None,
        "revoked_at": None,
    }
    unit.rows(_CREATE, {**row, "digest": digest(token)})
    unit.publish(Change("create", AccessToken, None, row["id"], row))
    return token


def listing(transaction: Transaction, *, email: str | None = None) -> Sequence[Any]:
    """All tokens, or those of one user, oldest first: everything about them but the tokens and their digests."""
    return transaction.rows(_LIST) if email is None else transaction.rows(_LIST_OF_USER, {"email": fold(email)})


def revoke(unit: UnitOfWork, token_id: str) -> bool:
    """End a token for good, from the next request on. False where there is no such token; twice is harmless."""
    found = unit.row(_FIND, {"token": token_id})
    if found is None:
        return False
    if found.revoked_at is None:
        row = unit.row(_REVOKE, {"token": token_id, "moment": unit.moment})
        after = row and row._asdict()
        before = after and {**after, "revoked_at": None}
        unit.publish(Change("revoke", AccessToken, None, token_id, after, before))
    return True


_TOKEN, _ACCOUNT = sql_table(AccessToken), sql_table(User)
_SHOWN = [column for column in _TOKEN.c if column.name != "digest"]
_IS_USER = _ACCOUNT.c.email_folded == bindparam("email")

_USER = select(_ACCOUNT.c.id).where(_IS_USER)
_CREATE = insert(_TOKEN).values({column.name: bindparam(column.name, type_=column.type) for column in _TOKEN.c})
_LIST = (
    select(
        _TOKEN.c.id,
        _ACCOUNT.c.email,
        _TOKEN.c.scope,
        _TOKEN.c.created_at,
        _TOKEN.c.expires_at,
        _TOKEN.c.last_used_at,
        _TOKEN.c.revoked_at,
    )
    .join(_ACCOUNT, _ACCOUNT.c.id == _TOKEN.c.user_id)
    .order_by(_TOKEN.c.created_at, _TOKEN.c.id)
)
_LIST_OF_USER = _LIST.where(_IS_USER)
_FIND = select(_TOKEN.c.revoked_at).where(_TOKEN.c.id == bindparam("token"))
_REVOKE = (
    update(_TOKEN)
    .where(_TOKEN.c.id == bindparam("token"))
    # Where two revoke it at once, the first moment stays.
    .values(revoked_at=func.coalesce(_TOKEN.c.revoked_at, bindparam("moment", type_=_TOKEN.c.revoked_at.type)))
    .returning(*_SHOWN)
)
