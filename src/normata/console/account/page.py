"""The account page: the person, their organizations, their ways to sign in, and their sessions."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import bindparam, select
from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import format_timestamp, now
from normata.core.http.roles import AUDITOR, SCOPES
from normata.core.schema.table import sql_table
from normata.errors import NotFound
from normata.identity import calendar
from normata.identity.errors import SignInRefused
from normata.identity.mail_choices import MAIL_CHOICES, NOTIFICATION_TYPES
from normata.identity.model import User, time_zones
from normata.identity.openid import identities
from normata.identity.operators import runs_instance
from normata.identity.sessions import sessions
from normata.identity.sessions.sessions import Visitor
from normata.identity.sign_in import passkeys, passwords
from normata.identity.tokens import tokens

_FRESH = timedelta(hours=1)


async def show_account(page_request: PageRequest) -> Response:
    """Show the account page."""
    return await account_page(page_request, await page_request.required_visitor())


async def account_page(
    page_request: PageRequest,
    visitor: Visitor,
    *,
    status: int = 200,
    message: str = "",
    new_token: str = "",
    new_calendar: str = "",
) -> Response:
    """The account page, with the faults of the last form.

    It also has the token, or the address of the calendar, that was just made; each is shown this once.
    """
    found = await page_request.console.services.database.read(
        lambda transaction: _read(transaction, visitor), TenantScope(users=(visitor.user_id,))
    )
    is_local = page_request.console.settings.local_sign_in
    return page_request.page(
        "account.html",
        status=status,
        visitor=visitor,
        message=message,
        done=page_request.query.get("done", ""),
        new_token=new_token,
        new_calendar=new_calendar,
        token_scopes=SCOPES[:1] if only_audits(visitor) and not found["is_operator"] else SCOPES,
        organizations={membership.organization_id: membership.organization_name for membership in visitor.memberships},
        is_local=is_local,
        has_passkeys=is_local and page_request.console.passkeys is not None,
        shortest=passwords.SHORTEST,
        zones=_zones(),
        is_mail_on=bool(page_request.console.settings.smtp_url),
        mail_choices=MAIL_CHOICES,
        notification_types=NOTIFICATION_TYPES,
        provider=page_request.console.provider,
        **found,
    )


def only_audits(visitor: Visitor) -> bool:
    """Whether the person is an auditor wherever they are a member: then their tokens only read."""
    return {membership.role for membership in visitor.memberships} == {AUDITOR}


@cache
def _zones() -> tuple[str, ...]:
    """The time zones to choose from: UTC and those that are named after places, without abbreviations such as EST."""
    return ("UTC", *sorted(name for name in time_zones() if "/" in name and not name.startswith("Etc/")))


def _read(transaction: Transaction, visitor: Visitor) -> dict[str, Any]:
    user = transaction.row(_OWN, {"user": visitor.user_id})
    assert user is not None  # noqa: S101 - narrows the type; a visitor is a user
    return {
        "email": user.email,
        "mail": user.mail,
        "mail_by_type": user.mail_by_type or {},
        "is_mail_refused": user.email is not None and user.refused_email == user.email,
        "is_operator": runs_instance(transaction, visitor.user_id),
        "password_since": passwords.changed_at(transaction, visitor.user_id),
        "is_by_link": is_fresh(visitor) and sessions.means_of(transaction, visitor.session_id) == "link",
        "passkeys": passkeys.own(transaction, visitor.user_id),
        "identities": identities.own(transaction, visitor.user_id),
        "calendar": calendar.own(transaction, visitor.user_id),
        "tokens": tokens.open_tokens(transaction, visitor.user_id, now()),
        "sessions": sessions.open_sessions(transaction, visitor.user_id, now()),
    }


async def end_session(page_request: PageRequest) -> Response:
    """End one of the person's own sessions. Raises NotFound."""
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    ended = form.get("session", "")
    await page_request.change_own(
        visitor, lambda unit: sessions.end_own(unit, visitor.user_id, ended), sessions.END_WRITES
    )
    return page_request.redirect("/account/")


def require_fresh(visitor: Visitor) -> None:
    """Raise SignInRefused unless the person has signed in recently.

    A password, a passkey or a token outlives the session: whoever finds an open browser must not be able to add one.
    """
    if not is_fresh(visitor):
        raise SignInRefused("not_fresh")


def is_fresh(visitor: Visitor) -> bool:
    """Whether the person has signed in recently enough to change how they sign in."""
    return visitor.signed_in_at >= format_timestamp(datetime.fromisoformat(now()) - _FRESH)


def chosen_organization(visitor: Visitor, wanted: str) -> str | None:
    """The id of the organization that something is restricted to; null for all of them. Raises NotFound."""
    if not wanted:
        return None
    if wanted not in {membership.organization_id for membership in visitor.memberships}:
        raise NotFound
    return wanted


_USER = sql_table(User)
_OWN = select(*(_USER.c[name] for name in ("email", "mail", "mail_by_type", "refused_email"))).where(
    _USER.c.id == bindparam("user")
)
