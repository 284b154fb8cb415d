"""Attempts to sign in within a minute, counted in the database: guesses may be spread over processes and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import and_, bindparam, case, delete, select
from sqlalchemy.dialects import postgresql

from normata.core.changes.unit_of_work import UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.identity.sign_in_model import SignInCount

WINDOW = timedelta(minutes=1)
# A row that ends later was counted before a clock was set back. The clocks of hosts differ a little.
_TOLERANCE = timedelta(minutes=5)

COUNT_WRITES = (insert_of(SignInCount), update_of(SignInCount, "count", "expires_at"), delete_of(SignInCount))


class Quota(NamedTuple):
    """The number of attempts per minute for a key, and the cause of the refusal of further ones."""

    cause: str
    key: str
    quota: int

    @property
    def digest(self) -> str:
        """The digest to store for the key, so that no email address is stored."""
        return sha256(self.key.encode()).hexdigest()


def count_attempt(unit: UnitOfWork, quotas: Sequence[Quota]) -> tuple[Quota | None, float]:
    """Count an attempt for each quota. Returns the first exceeded quota and the seconds to wait, or null.

    The quotas after that one are not counted. Others that count the same key wait until this transaction ends, so all
    callers name their quotas in the same order.
    """
    exceeded = next(((quota, wait) for quota in quotas if (wait := _wait(unit, quota)) > 0), (None, 0.0))
    # At the end and without waiting, because others may wait for rows that this transaction has removed.
    unit.rows(_FORGET, {"moment": unit.moment})
    return exceeded


def _wait(unit: UnitOfWork, quota: Quota) -> float:
    """Count an attempt. Returns the seconds until the window ends if the quota is exceeded, else 0."""
    now = datetime.fromisoformat(unit.moment)
    moments = {"moment": now, "end": now + WINDOW, "latest": now + WINDOW + _TOLERANCE}
    texts = {name: format_timestamp(moment) for name, moment in moments.items()}
    [row] = unit.rows(_COUNT, {"digest": quota.digest, **texts})
    if row.count <= quota.quota:
        return 0.0
    return (datetime.fromisoformat(row.expires_at) - now).total_seconds()


_TABLE = sql_table(SignInCount)
_TIME = _TABLE.c.expires_at.type
_MOMENT = bindparam("moment", type_=_TIME)
# SQLite's compiler accepts PostgreSQL's construct.
_NEW = postgresql.insert(_TABLE).values(digest=bindparam("digest"), count=1, expires_at=bindparam("end", type_=_TIME))
_IS_CURRENT = and_(_TABLE.c.expires_at > _MOMENT, _TABLE.c.expires_at <= bindparam("latest", type_=_TIME))
_COUNT = _NEW.on_conflict_do_update(
    index_elements=[_TABLE.c.digest],
    set_={
        "count": case((_IS_CURRENT, _TABLE.c.count + 1), else_=1),
        "expires_at": case((_IS_CURRENT, _TABLE.c.expires_at), else_=_NEW.excluded.expires_at),
    },
).returning(_TABLE.c.count, _TABLE.c.expires_at)
_EXPIRED = select(_TABLE.c.digest).where(_TABLE.c.expires_at <= _MOMENT).with_for_update(skip_locked=True)
_FORGET = delete(_TABLE).where(_TABLE.c.digest.in_(_EXPIRED))
