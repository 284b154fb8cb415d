"""A person's own page: who they are, where, and their sessions."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.visit import Visit
from normata.db.transaction import NO_ORGANIZATION, TenantScope, Transaction
from normata.db.types import now
from normata.identity import sessions
from normata.identity.sessions import Visitor


async def show_account(visit: Visit) -> Response:
    """The page."""
    visitor = await visit.required_visitor()
    return await account_page(visit, visitor)


async def account_page(visit: Visit, visitor: Visitor, *, status: int = 200, message: str = "") -> Response:
    """The page, and what was wrong with what was last sent from it."""
    found = await visit.console.services.database.read(
        lambda transaction: _read(transaction, visitor), TenantScope(users=(visitor.user_id,))
    )
    return visit.page("account.html", status=status, visitor=visitor, message=message, **found)


def _read(transaction: Transaction, visitor: Visitor) -> dict[str, Any]:
    return {"sessions": sessions.open_sessions(transaction, visitor.user_id, now())}


async def end_session(visit: Visit) -> Response:
    """End one of the person's own sessions. Raises NotFound."""
    visitor = await visit.required_visitor()
    form = await visit.form()
    await visit.console.services.changes.make(
        lambda unit: sessions.end_own(unit, visitor.user_id, form.get("session", "")),
        actor=visit.actor(visitor.user_id, visitor.user_name),
        scope=TenantScope(writable=(NO_ORGANIZATION,), users=(visitor.user_id,)),
        writes=sessions.END_WRITES,
    )
    return visit.redirect("/account/")
