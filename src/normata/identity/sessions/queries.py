"""A caller's own sessions, in wire form."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.core.http.caller import Caller
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import Found, OwnPageQuery, envelope, fetch_page
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.identity.sessions import sessions
from normata.identity.sign_in_model import Means


class BrowserSession(Wire):
    """A browser in which you have signed in."""

    id: str
    means: Means = Field(description="What you signed in with.")
    address: str = Field(description="The address that you signed in from.")
    user_agent: str = Field(description="What the browser calls itself.")
    created_at: Timestamp = Field(description="When you signed in.")
    last_used_at: Timestamp = Field(description="When the session was last used, to the minute.")
    expires_at: Timestamp = Field(description="When it ends at the latest. It also ends after 12 hours without use.")
    ended_at: Timestamp | None = Field(description="When it was ended; null if it goes on.")


def list_own(transaction: Transaction, caller: Caller, query: OwnPageQuery) -> dict[str, Any]:
    """A page of a caller's open sessions, the one last used first.

    Sessions reach all organizations of their user, so a narrowed token sees none of them.
    """
    if caller.narrowed_to is not None:
        return envelope([], Found(), query)
    parameters = sessions.when_open(caller.user_id, now())
    found = fetch_page(transaction, sessions.OPEN, sessions.ORDER, query, parameters)
    return envelope([as_wire(row._asdict()) for row in found.rows], found, query)


def end_own(unit: UnitOfWork, caller: Caller, session_id: str) -> dict[str, Any]:
    """End one of a caller's sessions, and return it as it is now. Raises NotFound."""
    if caller.narrowed_to is not None:
        raise NotFound
    return as_wire(sessions.end_own(unit, caller.user_id, session_id))


def as_wire(row: dict[str, Any]) -> dict[str, Any]:
    """A session in wire form."""
    return {
        "id": row["id"],
        "means": row["means"],
        "address": row["address"],
        "userAgent": row["user_agent"],
        "createdAt": row["created_at"],
        "lastUsedAt": row["last_used_at"],
        "expiresAt": row["expires_at"],
        "endedAt": row["ended_at"],
    }
