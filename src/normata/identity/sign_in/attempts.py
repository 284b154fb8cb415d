"""The state between two requests of a sign-in: stored for ten minutes, and used once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import bindparam, delete, insert, update

from normata.core.changes.unit_of_work import UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.types import format_timestamp
from normata.core.schema.table import new_id, sql_table
from normata.identity.errors import SignInRefused
from normata.identity.secrets import digest_of
from normata.identity.sign_in_model import SignInAttempt

LIFETIME = timedelta(minutes=10)

BEGIN_WRITES = (insert_of(SignInAttempt), delete_of(SignInAttempt))
FINISH_WRITES = (update_of(SignInAttempt, "used_at"),)


def begin(unit: UnitOfWork, kind: str, secret: str, data: Mapping[str, Any]) -> None:
    """Store ``data``, and return a secret that comes back with the next request. Expired rows are removed."""
    unit.rows(_FORGET, {"moment": unit.moment})
    row = {
        "id": new_id(),
        "kind": kind,
        "digest": digest_of(secret),
        "data": orjson.dumps(data).decode(),
        "created_at": unit.moment,
        "expires_at": format_timestamp(datetime.fromisoformat(unit.moment) + LIFETIME),
        "used_at": None,
    }
    unit.rows(_BEGIN, row)


def finish(unit: UnitOfWork, kind: str, secret: str) -> dict[str, Any]:
    """The data of a secret, which cannot be used again.

    Raises SignInRefused if there is no such attempt, it was finished before, or ten minutes have passed. Run it in a
    unit of work of its own: a later refusal must not roll this back.
    """
    data = unit.scalar(_FINISH, {"kind": kind, "digest": digest_of(secret), "moment": unit.moment})
    if data is None:
        raise SignInRefused("attempt_unknown")
    found: dict[str, Any] = orjson.loads(data)
    return found


_ATTEMPT = sql_table(SignInAttempt)
_MOMENT = bindparam("moment", type_=_ATTEMPT.c.expires_at.type)
_FORGET = delete(_ATTEMPT).where(_ATTEMPT.c.expires_at <= _MOMENT)
_BEGIN = insert(_ATTEMPT).values({column.name: bindparam(column.name, type_=column.type) for column in _ATTEMPT.c})
_FINISH = (
    update(_ATTEMPT)
    .where(
        _ATTEMPT.c.kind == bindparam("kind"),
        _ATTEMPT.c.digest == bindparam("digest"),
        _ATTEMPT.c.used_at.is_(None),
        _ATTEMPT.c.expires_at > _MOMENT,
    )
    .values(used_at=_MOMENT)
    .returning(_ATTEMPT.c.data)
)
