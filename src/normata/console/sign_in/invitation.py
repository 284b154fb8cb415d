"""Accepting an invitation."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.changes.unit_of_work import UnitOfWork
from normata.console.sign_in.signing_in import START, Proof, signed_in
from normata.console.visit import Visit
from normata.db.transaction import ConstraintViolation
from normata.errors import InvitationOver
from normata.identity import invitations
from normata.identity.refusals import SignInRefused

_LONGEST_NAME = 500


async def show_invitation(visit: Visit) -> Response:
    """Say who is invited to what, and ask whether to accept. Only the button accepts."""
    secret = visit.query.get("secret", "")
    row = await _open_invitation(visit, secret)
    return visit.page(
        "invitation.html",
        visitor=await visit.visitor(),
        invitation=row,
        secret=secret,
        is_local=visit.console.settings.local_sign_in,
        provider=visit.console.provider,
    )


async def accept_invitation(visit: Visit) -> Response:
    """Accept it. Raises SignInRefused.

    Somebody who is new is signed in. Somebody who has an account has to sign in to it: the link proves that one knows
    the link, and whoever has made the invitation does so, too.
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
    reach = invitations.reach_of(row)
    user_id = reach.users[0]

    def accept(unit: UnitOfWork) -> None:
        invitations.accept(unit, row, name)

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


async def _open_invitation(visit: Visit, secret: str) -> Any:
    """The invitation with this secret. Raises SignInRefused unless it is open."""
    found = await invitations.find_open(visit.console.services.database, secret)
    if found is None:
        raise SignInRefused("invitation_unknown")
    return found
