"""Accepting an invitation."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.sign_in.session import HOME, Proof, start_session
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import ConstraintViolation
from normata.errors import InvitationClosed
from normata.identity.errors import SignInRefused
from normata.identity.invitations import invitations
from normata.identity.sessions.sessions import Visitor

_LONGEST_NAME = 500


async def show_invitation(page_request: PageRequest) -> Response:
    """Show who is invited to which organization. Only the button accepts, since mail scanners open links."""
    secret = page_request.query.get("secret", "")
    row = await _open_invitation(page_request, secret)
    visitor = await page_request.visitor()
    return page_request.page(
        "invitation.html",
        visitor=visitor,
        invitation=row,
        must_sign_in=_must_sign_in(row, visitor),
        secret=secret,
        is_local=page_request.console.settings.local_sign_in,
        provider=page_request.console.provider,
    )


async def accept_invitation(page_request: PageRequest) -> Response:
    """Accept an invitation. Raises SignInRefused.

    A new person is signed in. Somebody who has an account must sign in first, because the link proves no more than
    knowing it: whoever made the invitation knows it, too, and the account with this address may belong to somebody
    else, who accepted an earlier invitation.
    """
    page_request.require_local_sign_in()
    form = await page_request.form()
    secret, name = form.get("secret", ""), form.get("name", "").strip()[:_LONGEST_NAME]
    try:
        return await _accept(page_request, await _open_invitation(page_request, secret), name)
    except ConstraintViolation:
        # Another invitation to this address was accepted at the same moment. The user exists now, so try again.
        return await _accept(page_request, await _open_invitation(page_request, secret), name)
    except InvitationClosed:
        raise SignInRefused("invitation_unknown") from None


async def _accept(page_request: PageRequest, row: Any, name: str) -> Response:
    visitor = await page_request.visitor()
    if _must_sign_in(row, visitor):
        raise SignInRefused("invitation_of_another")
    reach = invitations.reach_of(row)
    user_id = reach.users[0]
    joined = f"{HOME}?joined={quote(row.organization_id, safe='')}"

    def accept(unit: UnitOfWork) -> None:
        invitations.accept(unit, row, name, user_id=user_id)

    if row.user_id is None:
        proof = Proof(
            "invitation", user_id, name or row.email, accept, invitations.ACCEPTING_WRITES, (row.organization_id,)
        )
        return await start_session(page_request, proof, f"{joined}&new=true")
    await page_request.console.services.changes.make(
        accept,
        actor=page_request.actor(user_id, row.user_name),
        scope=reach,
        writes=invitations.ACCEPTING_WRITES,
    )
    return page_request.redirect(joined)  # whoever is not signed in gets to the sign-in page from there


def _must_sign_in(row: Any, visitor: Visitor | None) -> bool:
    """Whether the invitation is for an account that this browser is not signed in to.

    Nobody can sign in to a removed account. The invitation restores it.
    """
    has_account = row.user_id is not None and row.user_removed_at is None
    return has_account and (visitor is None or visitor.user_id != row.user_id)


async def _open_invitation(page_request: PageRequest, secret: str) -> Any:
    """The open invitation with this secret. Raises SignInRefused if there is none."""
    found = await invitations.find_open(page_request.console.services.database, secret)
    if found is None:
        raise SignInRefused("invitation_unknown")
    return found
