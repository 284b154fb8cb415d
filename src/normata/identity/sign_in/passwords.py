"""Passwords: how they are chosen, stored and compared."""

from __future__ import annotations

import asyncio
import os
import re
import unicodedata
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import bindparam, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, text
from normata.core.http.fair_queue import FairQueue, QueueFull
from normata.core.http.rate_limit import network_of
from normata.core.schema.table import sql_table
from normata.core.schema.text import fold
from normata.errors import DomainError
from normata.identity.errors import SignInRefused
from normata.identity.sign_in_model import Password

SHORTEST = 15  # characters; NIST SP 800-63B-4, section 3.1.1.2, for a password as the only factor
LONGEST = 1_000  # bytes
_MOST_WAITING = 3  # for a thread that hashes, from one address; hashing takes some tenths of a second

SET_WRITES = (insert_of(Password), update_of(Password, "hash", "changed_at"))
REHASH_WRITES = (update_of(Password, "hash"),)


class UnfitPassword(DomainError):
    """A password that is not allowed. ``fault`` is a code for the reason."""

    message = "This password must not be chosen."

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault


def normal(password: str) -> str:
    """The password in the form that is hashed (NFC), however a keyboard composes its letters."""
    return unicodedata.normalize("NFC", password)


def require_fit(password: str, *about: str | None) -> None:
    """Raise UnfitPassword for a password that is not allowed; ``about`` has the person's name and address.

    Length is what matters. Otherwise only obvious passwords are refused; no mixture of characters is required.
    """
    password = normal(password)
    if len(password) < SHORTEST:
        raise UnfitPassword("short")
    if len(password.encode()) > LONGEST:
        raise UnfitPassword("long")
    plain = fold(password)
    if _repeats(plain) or _counts(plain) or _is_keyboard(plain) or len(_without_known(plain, about)) < SHORTEST // 2:
        raise UnfitPassword("obvious")


def _repeats(plain: str) -> bool:
    """Whether it repeats a short text, such as passwordpassword, or has hardly more than one character."""
    return len(set(plain)) < 5 or any(plain[unit:] == plain[:-unit] for unit in range(1, len(plain) * 2 // 3 + 1))


def _counts(plain: str) -> bool:
    """Whether each character follows the one before: 123456789012345, abcdef…"""
    steps = {ord(after) - ord(before) for before, after in pairwise(plain)}
    return steps <= {1, -9} or steps <= {-1, 9}


def _is_keyboard(plain: str) -> bool:
    rows = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
    columns = map("".join, zip(*(row[:7] for row in rows), strict=True))
    ways = ("".join(rows), "".join(rows[1:]), "".join(row[::-1] for row in rows[1:]), "".join(columns))
    return any(plain in run * 3 for way in ways for run in (way, way[::-1]))


def _without_known(plain: str, about: Sequence[str | None]) -> str:
    """The rest of it without obvious parts: the person's name and address, and common words."""
    known = [
        part for text in about if text for part in (fold(text), *re.split(r"[\s@.]+", fold(text))) if len(part) > 2
    ]
    for word in (*sorted(known, key=len, reverse=True), "password", "passwort", "normata", "letmein", "welcome"):
        plain = plain.replace(word, "")
    return plain


class Hashing:
    """Hashes and compares passwords with Argon2id, by the second recommended option of RFC 9106 (section 4).

    Each hash takes 64 MiB and a tenth of a second, so threads compute it, at most one per processor in all ``workers``
    together. Addresses take turns, and only a few attempts of each wait; otherwise a flood of guesses would take all
    memory, or all time.
    """

    def __init__(self, *, workers: int = 1) -> None:
        self._hasher = PasswordHasher()  # the defaults are this option
        self._queue = FairQueue(max(1, min(4, os.cpu_count() or 1) // workers), waiting=_MOST_WAITING)
        self._nobodys = ""

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for the turn of an address, which may hash and compare within the block. Raises SignInRefused."""
        try:
            async with self._queue.turn(network_of(address)):
                yield
        except QueueFull:
            raise SignInRefused("too_many_waiting", wait=1) from None

    async def hashed(self, password: str) -> str:
        """The hash of a password to store. Call it within :meth:`turn`."""
        return await asyncio.to_thread(self._hasher.hash, normal(password))

    async def is_right(self, password: str, stored: str | None) -> bool:
        """Whether a password matches ``stored``. Call it within :meth:`turn`.

        It takes as long without a stored hash (null), so that the time does not show who has a password.
        """
        return await asyncio.to_thread(self._matches, password, stored)

    def is_outdated(self, stored: str) -> bool:
        """Whether ``stored`` was made with other parameters than the current ones."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, password: str, stored: str | None) -> bool:
        if stored is None:
            self._nobodys = self._nobodys or self._hasher.hash("the password of nobody")
        with suppress(VerificationError, InvalidHashError):
            self._hasher.verify(stored or self._nobodys, normal(password))
            return stored is not None
        return False


def store(unit: UnitOfWork, user_id: str, hashed: str) -> None:
    """Store a hash as the user's password."""
    row = {"user": user_id, "hash": hashed, "changed_at": unit.moment}
    before = unit.row(_FIND, {"user": user_id})
    unit.rows(_CREATE if before is None else _CHANGE, row)
    row_of_event = {"user_id": user_id, "changed_at": unit.moment}
    action = "create" if before is None else "update"
    unit.publish(Change(action, Password, None, user_id, row_of_event, before and before._asdict()))


def rehash(unit: UnitOfWork, user_id: str, hashed: str, changed: str) -> None:
    """Store the same password with the current parameters, unless it was changed after ``changed``."""
    row = unit.row(_REHASH, {"user": user_id, "hash": hashed, "changed": changed})
    if row is not None:
        unit.publish(Change("rehash", Password, None, user_id, row._asdict(), row._asdict()))


def changed_at(transaction: Transaction, user_id: str) -> str | None:
    """When the user's password was set; null if there is none."""
    found = transaction.row(_FIND, {"user": user_id})
    return None if found is None else str(found.changed_at)


def _lookup(name: str, column: str) -> Lookup:
    """The lookup of the person whose ``column`` is the argument, with the hash of their password or null.

    Removed users and service accounts are not found.
    """

    def question(value: str, *, source: str, number: str) -> str:
        first = number and f"{number},"
        return (
            f"SELECT {first} account.id AS user_id, account.name AS user_name, account.email, password.hash,"  # noqa: S608 - built from constants
            " password.changed_at"
            f" FROM {source and source + ' JOIN'} user_account AS account {source and f'ON account.{column} = {value}'}"
            " LEFT JOIN password ON password.user_id = account.id"
            f" WHERE account.{column} = {value} AND account.removed_at IS NULL AND account.organization_id IS NULL"
            f" ORDER BY {first} account.id"
        )

    columns = ("user_id", "user_name", "email", "hash", "changed_at")
    return Lookup(
        name=name,
        arguments=("wanted",),
        columns={column: UtcTimestamp() if column == "changed_at" else text() for column in columns},
        select=question,
    )


PASSWORD_BY_EMAIL = _lookup("normata_password_by_email", "email_folded")  # in the form of `email_key`
PASSWORD_OF_USER = _lookup("normata_password_of_user", "id")

_PASSWORD = sql_table(Password)
_IS_OWN = _PASSWORD.c.user_id == bindparam("user")
_SHOWN = [_PASSWORD.c.user_id, _PASSWORD.c.changed_at]
_NEW = {name: bindparam(name, type_=_PASSWORD.c[name].type) for name in ("hash", "changed_at")}

_FIND = select(*_SHOWN).where(_IS_OWN)
_CREATE = insert(_PASSWORD).values(user_id=bindparam("user"), **_NEW)
_CHANGE = update(_PASSWORD).where(_IS_OWN).values(_NEW)
_REHASH = (
    update(_PASSWORD)
    .where(_IS_OWN, _PASSWORD.c.changed_at == bindparam("changed", type_=_PASSWORD.c.changed_at.type))
    .values(hash=bindparam("hash"))
    .returning(*_SHOWN)
)
