"""Access tokens: how they look, how they are kept, and their life from creation to revocation.

A token is ``nrm_``, 32 random bytes in base62 (43 digits) and a CRC-32 of all that in base62 (6 digits). The prefix
lets secret scanners find leaked ones, the checksum lets them, and us, tell a token from noise without a look-up.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, RowMapping, func, insert, literal, select, update

from normata.database import format_timestamp, now
from normata.identity.model import AccessToken, User
from normata.vocabulary import fold, new_id

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
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
    """A new token. It exists nowhere else: who does not keep it has lost it."""
    body = "nrm_" + _base62(int.from_bytes(secrets.token_bytes(32)), 43)
    return body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """Whether ``token`` can be one of ours at all."""
    return _SHAPE.fullmatch(token) is not None and _checksum(token[:-6]) == token[-6:]


def digest(token: str) -> str:
    """What is kept of a token. It is random enough (256 bits) for a plain hash; nothing could be tried out."""
    return hashlib.sha256(token.encode()).hexdigest()


class NoSuchUser(LookupError):
    """No user has this email address."""


def create(connection: Connection, *, email: str, scope: str, lifetime: timedelta | None) -> str:
    """A new token of the user with ``email``, good for ``lifetime`` (null: until revoked). Raises NoSuchUser."""
    user_id = connection.scalar(select(User.id).where(User.email_folded == fold(email)))
    if user_id is None:
        raise NoSuchUser(email)
    token = generate()
    connection.execute(
        insert(AccessToken).values(
            id=new_id(),
            user_id=user_id,
            digest=digest(token),
            scope=scope,
            created_at=now(),
            expires_at=None if lifetime is None else format_timestamp(datetime.now(UTC) + lifetime),
        )
    )
    return token


def listing(connection: Connection, *, email: str | None = None) -> Sequence[RowMapping]:
    """All tokens, or those of one user, oldest first: everything about them but themselves."""
    statement = (
        select(
            AccessToken.id,
            User.email,
            AccessToken.scope,
            AccessToken.created_at,
            AccessToken.expires_at,
            AccessToken.last_used_at,
            AccessToken.revoked_at,
        )
        .join(User, User.id == AccessToken.user_id)
        .order_by(AccessToken.created_at, AccessToken.id)
    )
    if email is not None:
        statement = statement.where(User.email_folded == fold(email))
    return connection.execute(statement).mappings().all()


def revoke(connection: Connection, token_id: str) -> bool:
    """End a token for good, from the next request on. False where there is no such token; twice is harmless."""
    found = connection.execute(
        update(AccessToken)
        .where(AccessToken.id == token_id)
        .values(revoked_at=func.coalesce(AccessToken.revoked_at, literal(now(), AccessToken.revoked_at.type)))
    )
    return found.rowcount == 1
