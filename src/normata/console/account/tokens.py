"""Creating and revoking one's own access tokens: this is how a person gets their first token."""

from __future__ import annotations

from datetime import timedelta

from starlette.responses import Response

from normata.console.account.page import account_page, chosen_organization, require_fresh
from normata.console.page_request import PageRequest
from normata.console.texts import text
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.roles import SCOPES
from normata.errors import Forbidden
from normata.identity.tokens import commands, tokens

LIFETIMES = {"30": timedelta(days=30), "90": timedelta(days=90), "365": timedelta(days=365)}  # the form sends days
_LONGEST_NAME = 100


async def make_token(page_request: PageRequest) -> Response:
    """Create a token, and show it once. It outlives the session, so the sign-in must be recent.

    Raises SignInRefused, and NotFound for an organization that the person is not a member of.
    """
    visitor = await page_request.required_visitor()
    require_fresh(visitor)
    form = await page_request.form()
    name, scope = form.get("name", "").strip()[:_LONGEST_NAME], form.get("scope", "")
    lifetime = LIFETIMES.get(form.get("days", ""))
    if not name or scope not in SCOPES or lifetime is None:
        return await account_page(page_request, visitor, status=400, message=text("account.token_fault"))
    organization_id = chosen_organization(visitor, form.get("organization", ""))

    def work(unit: UnitOfWork) -> str:
        return tokens.issue(
            unit,
            visitor.user_id,
            scope=scope,
            name=name,
            organization_id=organization_id,
            expires_at=tokens.later(unit.moment, lifetime),
        ).token

    try:
        made = await page_request.change_own(visitor, work, tokens.CREATION_WRITES)
    except Forbidden as error:  # an auditor's tokens only read
        return await account_page(page_request, visitor, status=403, message=str(error))
    return await account_page(page_request, visitor, new_token=made)


async def revoke_token(page_request: PageRequest) -> Response:
    """Revoke one of the person's own tokens. Revoking it again changes nothing. Raises NotFound."""
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    token_id = form.get("token", "")
    await page_request.change_own(
        visitor, lambda unit: commands.revoke_own(unit, visitor.user_id, token_id), tokens.REVOCATION_WRITES
    )
    return page_request.redirect("/account/#tokens")
