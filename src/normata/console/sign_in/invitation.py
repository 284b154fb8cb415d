"""Accepting an invitation."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.page_request import Visit
from normata.console.sign_in.signing_in import START, Proof, signed_in
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import ConstraintViolation
from normata.errors import InvitationOver
from normata.identity.invitations import invitations
from normata.identity.refusals import SignInRefused
from normata.identity.sessions.sessions import Visitor

_LONGEST_NAME = 500


async def show_invitation(visit: Visit) -> Response:
    """Say who is invited to what, and ask whether to accept. Only the button accepts."""
    secret = visit.query.get("secret", "")
    row = await _open_invitation(visit, secret)
    visitor = await visit.visitor()
    return visit.page(
        "invitation.html",
        visitor=visitor,
        invitation=row,
        must_sign_in=_must_sign_in(row, visitor),
        secret=secret,
        is_local=visit.console.settings.local_sign_in,
        provider=visit.console.provider,
    )


async def accept_invitation(visit: Visit) -> Response:
    """Accept it. Raises SignInRefused.

    Somebody who is new is signed in. Somebody who has an account has to sign in to it first. The link proves no more
    than that one knows the link, as whoever has made the invitation does; and it may be somebody else who has accepted
    an earlier one and so has the account with this address.
    """
    visit.require_local_sign_in()
    form = await visit.form()
    secret, name = form.get("secret", ""), form.get("name", "").strip()[:_LONGEST_NAME]
    try:
        return await _accept(visit, await _open_invitation(visit, secret), name)
    except ConstraintViolation:
        # Somebody with this address has accepted another invitation at the same moment: now there is such a user.
        return await _accept(visit, await _open_invitation(visit, secret), name)
    except InvitationOver:
        raise SignInRefused("invitation_unknown") from None


async def _accept(visit: Visit, row: Any, name: str) -> Response:
    visitor = await visit.visitor()
    if _must_sign_in(row, visitor):
        raise SignInRefused("invitation_of_another")
    reach = invitations.reach_of(row)
    user_id = reach.users[0]

    def accept(unit: UnitOfWork) -> None:
        invitations.accept(unit, row, name, user_id=user_id)

    if row.user_id is None:
        proof = Proof(
            "invitation", user_id, name or row.email, accept, invitations.ACCEPTING_WRITES, (row.organization_id,)
        )
        return await signed_in(visit, proof)
    await visit.console.services.changes.make(
        accept,
        actor=visit.actor(user_id, row.user_name),
        scope=reach,
        writes=invitations.ACCEPTING_WRITES,
    )
    return visit.redirect(START)  # or, for whoever has not signed in, to the page to sign in on


def _must_sign_in(row: Any, visitor: Visitor | None) -> bool:
    """Whether the account that an invitation is for is not the one that this browser is signed in to.

    Nobody can sign in to one that was removed, so its invitation brings it back.
    """
    has_account = row.user_id is not None and row.user_removed_at is None
    return has_account and (visitor is None or visitor.user_id != row.user_id)


async def _open_invitation(visit: Visit, secret: str) -> Any:
    """The invitation with this secret. Raises SignInRefused unless it is open."""
    found = await invitations.find_open(visit.console.services.database, secret)
    if found is None:
        raise SignInRefused("invitation_unknown")
    return found
