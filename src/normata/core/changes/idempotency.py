"""Idempotency keys: a request with a key is carried out once, and repetitions get the first answer.

This follows the IETF draft "The Idempotency-Key HTTP Header Field". The key is stored in the transaction of the change
itself, so that a crash leaves both or neither. No extra transaction stays open to mark a request as in progress. On
PostgreSQL the transaction holds a lock of the key. SQLite lets one transaction at a time write, so a second one finds
what the first has stored.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Index, bindparam, delete, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.changes.periodic import repeat
from normata.core.changes.unit_of_work import UnitOfWork, delete_of, insert_of
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import UtcTimestamp, format_timestamp, now, text
from normata.core.schema.fields import Count, Identifier, Json, Timestamp
from normata.core.schema.table import CODED, Table, erased_to, foreign_key, sql_table
from normata.core.schema.wire import encode
from normata.errors import AnswerNotStored, KeyReused, RequestInProgress

STORED_FOR = timedelta(hours=24)
MAX_ANSWER = 5 * 2**20  # characters; enough for any record. Of a longer answer only the key is stored


class IdempotencyKey(Table):
    """A key that a user has sent, with its request and the answer; null if the answer was not stored.

    The row belongs to the user. It names the changed organization, if there is one, so that a user who has left it does
    not get the answer again.
    """

    __tablename__ = "idempotency_key"
    published = False

    user_id: Mapped[Identifier] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(text(255), primary_key=True)
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    method: Mapped[str] = mapped_column(text(16), info=CODED)
    path: Mapped[str] = mapped_column(text())
    fingerprint: Mapped[str] = mapped_column(text(64), info=CODED)
    status: Mapped[Count]
    headers: Mapped[Json]
    body: Mapped[str | None] = mapped_column(text(), info=erased_to(None))
    created_at: Mapped[Timestamp]

    __table_args__ = (Index(None, "created_at"), {"info": {"owned_by": "user_id"}})


KEY_WRITES = (insert_of(IdempotencyKey), delete_of(IdempotencyKey))


class KeyedRequest(NamedTuple):
    """A request with a key, with its user and content. ``fingerprint`` differs if query or body do."""

    user_id: str
    key: str
    method: str
    path: str
    fingerprint: str


@dataclass
class Answer:
    """An answer to a change.

    ``content`` is in wire form, before it is made JSON; ``headers`` are those that not every answer has. ``result`` is
    the change's return value; null if the answer ``is_stored``: then the earlier answer is sent again as ``encoded``.
    """

    status: int
    headers: dict[str, str]
    content: Any
    result: Any = None
    encoded: bytes | None = None
    is_stored: bool = False

    @property
    def body(self) -> bytes:
        """The content as JSON."""
        if self.encoded is None:
            self.encoded = encode(self.content)
        return self.encoded


class InProgress:
    """The keyed requests that this process is carrying out."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, str]] = set()

    @contextmanager
    def begin(self, request: KeyedRequest) -> Iterator[None]:
        """Hold a key while a block runs. Raises RequestInProgress if another request holds it."""
        key = request.user_id, request.key
        if key in self._keys:
            raise RequestInProgress
        self._keys.add(key)
        try:
            yield
        finally:
            self._keys.remove(key)


def once(
    unit: UnitOfWork, request: KeyedRequest, work: Callable[[UnitOfWork], Answer], *, store: bool = True
) -> Answer:
    """The answer of ``work``, which is then stored for the key; or the stored answer, without running ``work``.

    Without ``store``, for an answer with a secret, only the key is stored. Raises RequestInProgress while another
    process carries out a request with the same key, KeyReused if the key came with another request, AnswerNotStored,
    and the errors of ``work``, after which the key can be used again.
    """
    if not unit.try_lock(f"idempotency_key {request.user_id} {request.key}"):
        raise RequestInProgress
    key_values = {"user": request.user_id, "name": request.key}
    # Someone who has left the organization must not see the answer.
    readable = list(unit.scope.readable) if unit.scope is not None else []
    stored = unit.row(_FIND, key_values | {"organizations": readable})
    if stored is not None and stored.created_at > _expired_before(unit.moment):
        return _first_answer(stored, request, store=store)
    if stored is not None:
        unit.rows(_FORGET, key_values)
    answer = work(unit)
    body = answer.body.decode()
    row = request._asdict() | {
        "organization_id": unit.reached if store else None,
        "status": answer.status,
        "headers": answer.headers,
        "body": body if store and len(body) <= MAX_ANSWER else None,
        "created_at": unit.moment,
    }
    if not unit.rows(_STORE, row):
        raise KeyReused  # the key was used in an organization that the caller has left
    return answer


def _first_answer(stored: Any, request: KeyedRequest, *, store: bool) -> Answer:
    if (stored.method, stored.path, stored.fingerprint) != (request.method, request.path, request.fingerprint):
        raise KeyReused
    if stored.body is None:
        raise AnswerNotStored(None if store else _NOT_TO_STORE)
    return Answer(stored.status, stored.headers, json.loads(stored.body), encoded=stored.body.encode(), is_stored=True)


def _expired_before(moment: str) -> str:
    return format_timestamp(datetime.fromisoformat(moment) - STORED_FOR)


_NOT_TO_STORE = "The request with this Idempotency-Key was carried out; its answer had a secret, so it was not stored."
_TABLE = sql_table(IdempotencyKey)
_IS_TARGET = (_TABLE.c.user_id == bindparam("user")) & (_TABLE.c.key == bindparam("name"))
_FIND = select(*_TABLE.c).where(
    _IS_TARGET,
    _TABLE.c.organization_id.is_(None) | _TABLE.c.organization_id.in_(bindparam("organizations", expanding=True)),
)
_FORGET = delete(_TABLE).where(_IS_TARGET)
# SQLite's compiler accepts PostgreSQL's construct.
_STORE = (
    postgresql.insert(_TABLE)
    .values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
    .on_conflict_do_nothing(index_elements=[_TABLE.c.user_id, _TABLE.c.key])
    .returning(_TABLE.c.key)
)


# --- Expired keys

_STEP = 100  # keys removed in one transaction
_REST = 600.0  # seconds between two removals
_PAUSE = 0.1  # seconds between two transactions of a removal


def _oldest(user: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} oldest.user_id, oldest.created_at"  # noqa: S608 - built from constants
        f" FROM {source and source + ' CROSS JOIN'}"
        f" (SELECT user_id, created_at FROM idempotency_key ORDER BY created_at LIMIT {_STEP}) AS oldest"
        f" WHERE {user} IS NULL OR oldest.user_id = {user}"
        f" ORDER BY {number and number + ','} oldest.created_at"
    )


# The users with the oldest keys. The service could not find them otherwise, since it only reads rows in the scope of a
# request.
OLDEST_KEYS = Lookup(
    name="normata_oldest_keys_2",  # the previous version calls the first one, which returns organizations
    arguments=("of_user",),
    columns={"user_id": text(), "created_at": UtcTimestamp()},
    select=_oldest,
)


class ForgetKeys:
    """Removes keys that are older than 24 hours, a few at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def purge_periodically(self) -> None:
        """Remove them periodically, until cancelled."""
        await repeat(
            self.forget_all,
            # Spread out, so that processes that start together do not remove at the same time.
            pause=lambda: _REST * random.uniform(0.5, 1.5),  # noqa: S311 - not for security
            failure="keys_not_removed",
        )

    async def forget_all(self) -> None:
        """Remove all current ones, with pauses in which others can write. Raises Unavailable."""
        more = await self.forget()
        while more:
            await asyncio.sleep(_PAUSE)
            more = await self.forget()

    async def forget(self) -> bool:
        """Do one step, and return whether there may be more to remove. Raises Unavailable."""
        limit = _expired_before(now())
        oldest = await self._database.look_up(OLDEST_KEYS, None)
        expired = [row for row in oldest if row.created_at <= limit]
        if not expired:
            return False
        users = tuple(sorted({row.user_id for row in expired}))
        until = expired[-1].created_at
        scope = TenantScope(users=users)
        is_done = await self._database.write(lambda transaction: _forget(transaction, users, until), scope)
        return is_done and len(expired) == _STEP


def _forget(transaction: Transaction, users: Sequence[str], until: str) -> bool:
    """Remove keys created ``until`` a moment; returns false if another process is removing them."""
    if not transaction.try_lock("idempotency_key"):
        return False
    transaction.rows(_FORGET_EXPIRED, {"users": list(users), "until": until})
    return True


_FORGET_EXPIRED = delete(_TABLE).where(
    _TABLE.c.user_id.in_(bindparam("users", expanding=True)),
    _TABLE.c.created_at <= bindparam("until", type_=_TABLE.c.created_at.type),
)
