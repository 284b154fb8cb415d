"""Access tokens: their form, their storage, and their life from creation to revocation.

A token is ``nrm_``, 32 random bytes in base62 (43 digits) and a CRC-32 of all that in base62 (6 digits). The prefix
lets secret scanners find leaked tokens. The checksum rejects invalid tokens without a lookup.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.http.roles import AUDITOR, SCIM, role_suffices
from normata.core.schema.addresses import email_key
from normata.core.schema.table import new_id, sql_table
from normata.errors import CommandError, Forbidden, NotFound
from normata.identity import organization_lookup as organizations
from normata.identity.authority import lock_members
from normata.identity.memberships import is_in
from normata.identity.model import AccessToken, Membership, Organization, User
from normata.identity.operators import runs_instance

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_SHAPE = re.compile(r"nrm_[0-9A-Za-z]{49}", re.ASCII)

CREATION_WRITES = (insert_of(AccessToken),)
REVOCATION_WRITES = (update_of(AccessToken, "revoked_at"),)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), 6)


def generate() -> str:
    """A new token. It is never stored."""
    body = "nrm_" + _base62(int.from_bytes(secrets.token_bytes(32)), 43)
    return body + _checksum(body)


def is_well_formed(token: str) -> bool:
    """Whether ``token`` has the form and the checksum of a token."""
    if _SHAPE.fullmatch(token) is None:
        return False
    checksum = 0
    for digit in token[-6:]:
        checksum = checksum * 62 + _VALUES[digit]
    return checksum == zlib.crc32(token[:-6].encode())


def digest(token: str) -> str:
    """The digest of a token to store. For 256 random bits a plain hash is sufficient."""
    return hashlib.sha256(token.encode()).hexdigest()


class NoSuchUser(LookupError):
    """No user has this email address or id."""


class NoMember(CommandError):
    """The user is not a member of the organization to which the token is to be narrowed."""


class Issued(NamedTuple):
    """A new token: its row without the digest, and the token itself."""

    row: Any
    token: str


def issue(
    unit: UnitOfWork,
    user_id: str,
    *,
    scope: str,
    name: str | None,
    organization_id: str | None,
    expires_at: str | None,
    log_of: str | None = None,
) -> Issued:
    """A new token of a user, narrowed to an organization unless that is null. One of a service account always is.

    ``log_of`` is the organization in whose log the event is, null for the operator's. One that reaches nothing but what
    its user is an auditor of has the scope ``read``, unless a command makes it. Raises NotFound if there is no such
    user, or none any more, or they are no member of the organization, and Forbidden.
    """
    user = unit.row(_USER, {"user": user_id})
    if user is None or user.removed_at is not None:
        raise NotFound
    narrowed_to = user.organization_id or organization_id
    if narrowed_to is not None:
        # If the member is removed at this moment, either this token is revoked, too, or it is not created.
        lock_members(unit, narrowed_to)
        if not unit.scalar(_MEMBERSHIP, {"user": user_id, "organization": narrowed_to, "moment": unit.moment}):
            raise NotFound
    if scope != "read" and unit.scope is not None and _only_audits(unit, user_id, narrowed_to):
        raise Forbidden("An auditor changes nothing, so the token has the scope read.")
    if scope == SCIM and not _may_provision(unit, user_id, narrowed_to):
        raise Forbidden("A token of the scope scim is narrowed to an organization of which its user is an admin.")
    token = generate()
    row = {
        "id": new_id(),
        "user_id": user_id,
        "organization_id": narrowed_to,
        "name": name,
        "scope": scope,
        "created_at": unit.moment,
        "expires_at": expires_at,
        "last_used_at": None,
        "revoked_at": None,
    }
    unit.rows(_CREATE, {**row, "digest": digest(token)})
    unit.publish(Change("create", AccessToken, log_of, row["id"], row))
    return Issued(unit.row(_FIND, {"token": row["id"]}), token)


def _only_audits(unit: UnitOfWork, user_id: str, narrowed_to: str | None) -> bool:
    """Whether a token, of a user who runs no instance, would reach organizations only as an auditor."""
    if narrowed_to is None and runs_instance(unit, user_id):
        return False
    rows = unit.rows(_ROLES, {"user": user_id, "moment": unit.moment})
    roles = {row.role for row in rows if narrowed_to in (None, row.organization_id)}
    return roles == {AUDITOR}


def _may_provision(unit: UnitOfWork, user_id: str, narrowed_to: str | None) -> bool:
    """Whether a user may maintain the people of the organization to which a token is to be narrowed."""
    rows = unit.rows(_ROLES, {"user": user_id, "moment": unit.moment})
    return any(row.organization_id == narrowed_to and role_suffices(row.role, "admin") for row in rows)


def end(unit: UnitOfWork, row: Any, log_of: str | None = None) -> Any:
    """Revoke a token, from the next request on, and return its new row. Repeating it is harmless."""
    if row.revoked_at is not None:
        return row
    ended = unit.row(_REVOKE, {"token": row.id, "moment": unit.moment})
    if ended is None:
        raise NotFound  # it is gone, or the actor cannot see it
    after = ended._asdict()
    unit.publish(Change("revoke", AccessToken, log_of, row.id, after, {**after, "revoked_at": None}))
    return ended


def open_tokens(transaction: Transaction, user_id: str, moment: str) -> Sequence[Any]:
    """A user's tokens that are valid at ``moment``, the newest first."""
    return transaction.rows(_OPEN, {"user": user_id, "moment": moment})


# --- For commands


def create(
    unit: UnitOfWork,
    *,
    email: str,
    scope: str,
    lifetime: timedelta | None,
    organization: str | None = None,
    name: str | None = None,
) -> str:
    """Create a token of the user with this email address or id, valid for ``lifetime`` (null: until revoked).

    ``organization`` is the id or slug of the one that it is narrowed to. Raises NoSuchUser, NoSuchOrganization and
    NoMember.
    """
    user = _user_named(unit, email)
    organization_id = None if organization is None else organizations.find(unit, organization)
    parameters = {"user": user.id, "organization": organization_id, "moment": unit.moment}
    if organization_id and not unit.scalar(_MEMBERSHIP, parameters):
        raise NoMember(f"{email} is no member of {organization}")
    return issue(
        unit,
        user.id,
        scope=scope,
        name=name,
        organization_id=organization_id,
        expires_at=None if lifetime is None else later(unit.moment, lifetime),
        log_of=user.organization_id or organization_id,
    ).token


def later(moment: str, lifetime: timedelta) -> str:
    """The moment after a duration."""
    return format_timestamp(datetime.fromisoformat(moment) + lifetime)


def listing(transaction: Transaction, *, email: str | None = None, organization: str | None = None) -> Sequence[Any]:
    """All tokens, or those of one user, or those that reach an organization, oldest first, without their digests.

    Raises NoSuchUser and NoSuchOrganization.
    """
    statement, parameters = _LIST, {}
    if email is not None:
        statement = statement.where(_TOKEN.c.user_id == bindparam("user"))
        parameters["user"] = _user_named(transaction, email, removed=True).id
    if organization is not None:
        statement = statement.where(reaches(bindparam("organization")))
        parameters["organization"] = organizations.find(transaction, organization)
    return transaction.rows(statement, parameters)


def revoke(unit: UnitOfWork, token_id: str) -> bool:
    """Revoke a token, from the next request on. Returns false if there is no such token. Repeating it is harmless."""
    found = unit.row(_FIND, {"token": token_id})
    if found is None:
        return False
    end(unit, found, found.organization_id)
    return True


def _user_named(transaction: Transaction, name: str, *, removed: bool = False) -> Any:
    """The user with this email address or id; with ``removed`` also one who was removed. Raises NoSuchUser."""
    found = transaction.row(_BY_EMAIL, {"email": email_key(name)}) or transaction.row(_USER, {"user": name})
    if found is None or (found.removed_at is not None and not removed):
        raise NoSuchUser(name)
    return found


# --- Statements


def reaches(organization: Any) -> Any:
    """The condition that a token of ``access_token`` reaches an organization.

    It is narrowed to it, or to none while its user is a member.
    """
    members = select(_MEMBER.c.user_id).where(_MEMBER.c.organization_id == organization)
    return _TOKEN.c.user_id.in_(members) & (
        (_TOKEN.c.organization_id == organization)
        | (_TOKEN.c.organization_id.is_(None) & _TOKEN.c.user_id.in_(members.where(_MEMBER.c.removed_at.is_(None))))
    )


_TOKEN, _ACCOUNT, _MEMBER, _ORGANIZATION = (sql_table(one) for one in (AccessToken, User, Membership, Organization))
SHOWN = [column for column in _TOKEN.c if column.name != "digest"]

_USERS = select(_ACCOUNT.c.id, _ACCOUNT.c.organization_id, _ACCOUNT.c.removed_at)
_USER = _USERS.where(_ACCOUNT.c.id == bindparam("user"))
_BY_EMAIL = _USERS.where(_ACCOUNT.c.email_folded == bindparam("email"))
_IS_MEMBER = is_in(bindparam("moment", type_=_MEMBER.c.expires_at.type))
_MEMBERSHIP = select(_MEMBER.c.id).where(
    _MEMBER.c.user_id == bindparam("user"), _MEMBER.c.organization_id == bindparam("organization"), _IS_MEMBER
)
_ROLES = select(_MEMBER.c.organization_id, _MEMBER.c.role).where(_MEMBER.c.user_id == bindparam("user"), _IS_MEMBER)
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
        _ORGANIZATION.c.slug.label("organization"),
        _TOKEN.c.name,
        _TOKEN.c.user_id,
    )
    .join(_ACCOUNT, _ACCOUNT.c.id == _TOKEN.c.user_id)
    .join(_ORGANIZATION, _ORGANIZATION.c.id == _TOKEN.c.organization_id, isouter=True)
    .order_by(_TOKEN.c.created_at, _TOKEN.c.id)
)
_FIND = select(*SHOWN).where(_TOKEN.c.id == bindparam("token"))
_OPEN = (
    select(*SHOWN)
    .where(
        _TOKEN.c.user_id == bindparam("user"),
        _TOKEN.c.revoked_at.is_(None),
        _TOKEN.c.expires_at.is_(None) | (_TOKEN.c.expires_at > bindparam("moment", type_=_TOKEN.c.expires_at.type)),
    )
    .order_by(_TOKEN.c.created_at.desc(), _TOKEN.c.id)
)
_REVOKE = (
    update(_TOKEN)
    .where(_TOKEN.c.id == bindparam("token"))
    # If two requests revoke it at once, the earlier time stays.
    .values(revoked_at=func.coalesce(_TOKEN.c.revoked_at, bindparam("moment", type_=_TOKEN.c.revoked_at.type)))
    .returning(*SHOWN)
)
