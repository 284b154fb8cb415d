"""The person to be erased: their account, and all their names and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.addresses import email_key, email_spellings
from normata.core.schema.table import sql_table, tables
from normata.core.schema.text import fold
from normata.erasure.columns import person_members, uses
from normata.erasure.personal_data_scan import Called, PersonalDataScan, is_ambiguous
from normata.errors import CommandError
from normata.identity.model import Membership, User

_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_FEWEST = 2  # letters of a name


class NoSuchPerson(CommandError):
    """There is no user with this id, the user is a service account, or a name or an address is not valid."""


class LastOwner(CommandError):
    """The person is the only owner of an organization."""


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """The person to be erased: the id or the email address of a user, or an address that no user has.

    ``also`` has other names and addresses of theirs. With ``keep_name``, their name stays in texts, where it may mean
    somebody or something else. With ``also_documents``, files that name them are removed, too; ``also_files`` has the
    ids of further uploaded files to remove, such as those that cannot be searched.
    """

    who: str
    also: Sequence[str] = ()
    keep_name: bool = False
    also_documents: bool = False
    also_files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Person:
    """A person to be erased; ``user_id`` is null if no user has their address.

    ``namesakes`` counts the other users of the same name. ``is_erased`` is true if they were erased before.
    """

    user_id: str | None
    scan: PersonalDataScan
    has_ambiguous_name: bool
    namesakes: int
    is_erased: bool


def find_person(transaction: Transaction, erasure_request: ErasureRequest) -> Person:
    """The person of a request. Raises NoSuchPerson and LastOwner."""
    _require_clear(erasure_request)
    user = _user(transaction, erasure_request.who)
    if user is None and "@" not in erasure_request.who:
        raise NoSuchPerson(f"there is no user with the id {erasure_request.who}; name an email address, or an id")
    if user is not None and user.organization_id is not None:
        raise NoSuchPerson(f"{erasure_request.who} is a service account, and no person")
    if user is not None:
        _require_other_owners(transaction, erasure_request.who, user.id)
    is_erased = user is not None and user.email is None and user.removed_at is not None
    called = _called(transaction, erasure_request, user, is_erased=is_erased)
    return Person(
        user_id=None if user is None else user.id,
        scan=PersonalDataScan(called, person_members()),
        has_ambiguous_name=bool(called.ambiguous),
        namesakes=0 if user is None or is_erased else _namesakes(transaction, user),
        is_erased=is_erased,
    )


def _require_clear(erasure_request: ErasureRequest) -> None:
    """Raise NoSuchPerson for names and addresses that are empty, not valid or too short."""
    if not erasure_request.who.strip():
        raise NoSuchPerson("name the person, by an email address or an id")
    for one in (erasure_request.who, *erasure_request.also):
        if "@" in one and not _is_address(one):
            raise NoSuchPerson(f"{one} is no email address")
    for name in erasure_request.also:
        if sum(map(str.isalnum, name)) < _FEWEST:
            raise NoSuchPerson(f"--also {name}: a name has at least {_FEWEST} letters")


def _user(transaction: Transaction, who: str) -> Any | None:
    # An id takes precedence over an address with the same spelling.
    found = transaction.rows(_FIND, {"id": who, "key": email_key(who)})
    return min(found, key=lambda user: user.id != who, default=None)


def _require_other_owners(transaction: Transaction, who: str, user_id: str) -> None:
    alone = transaction.scalars(_OWNED_ALONE, {"user": user_id})
    if alone:
        organizations = f"the organization{'s' if len(alone) > 1 else ''} {', '.join(alone)}"
        raise LastOwner(f"{who} is the last owner of {organizations}; make somebody else an owner there first")


def _called(transaction: Transaction, erasure_request: ErasureRequest, user: Any, *, is_erased: bool) -> Called:
    addresses = {one for one in (erasure_request.who, *erasure_request.also) if "@" in one}
    names = {one.strip() for one in erasure_request.also if "@" not in one and one.strip()}
    known: set[str] = set()
    if user is not None:
        known = set(_former_names(transaction, user.id))
        if not is_erased:
            known.add(user.name)
            addresses |= {user.email} if user.email else set()
    addresses |= {name for name in known if _is_address(name)}
    addresses = {spelling for address in addresses for spelling in email_spellings(address)}
    # A user without a name is shown by address or id.
    others = {fold(one) for one in (*addresses, erasure_request.who if user is None else user.id)}
    known = {name for name in known - names if fold(name) not in others and not _is_address(name) and name.strip()}
    ambiguous = {name for name in known if erasure_request.keep_name or is_ambiguous(name)}
    return Called(sorted(addresses), sorted(names | (known - ambiguous)), sorted(ambiguous))


def _is_address(name: str) -> bool:
    return _ADDRESS.fullmatch(name) is not None


def _former_names(transaction: Transaction, user_id: str) -> Iterator[str]:
    """The person's former names, from rows that have both their name and their id."""
    for table in tables():
        columns = sql_table(table).c
        if "user_id" in columns:
            for name in (name for name, use in uses(table).items() if use == "person"):
                statement = (
                    select(columns[name]).distinct().where(columns.user_id == user_id, columns[name].is_not(None))
                )
                yield from transaction.scalars(statement)


def _namesakes(transaction: Transaction, user: Any) -> int:
    name = fold(user.name)
    return sum(fold(other) == name for other in transaction.scalars(_OTHER_NAMES, {"user": user.id}))


_USER, _MEMBER = sql_table(User), sql_table(Membership)
_OTHER = _MEMBER.alias()
_OTHER_USER = _USER.alias()

_FIND = select(*_USER.c).where((_USER.c.id == bindparam("id")) | (_USER.c.email_folded == bindparam("key")))
_OTHER_NAMES = select(_USER.c.name).where(_USER.c.id != bindparam("user"), _USER.c.removed_at.is_(None))
_OTHER_OWNERS = (
    select(func.count())
    .select_from(_OTHER.join(_OTHER_USER, _OTHER_USER.c.id == _OTHER.c.user_id))
    .where(
        _OTHER.c.organization_id == _MEMBER.c.organization_id,
        _OTHER.c.user_id != _MEMBER.c.user_id,
        _OTHER.c.role == "owner",
        _OTHER.c.removed_at.is_(None),
        _OTHER_USER.c.removed_at.is_(None),
    )
    .scalar_subquery()
)
_OWNED_ALONE = (
    select(_MEMBER.c.organization_id)
    .where(
        _MEMBER.c.user_id == bindparam("user"),
        _MEMBER.c.role == "owner",
        _MEMBER.c.removed_at.is_(None),
        _OTHER_OWNERS == 0,
    )
    .order_by(_MEMBER.c.organization_id)
)
