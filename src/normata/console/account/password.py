"""Setting, changing and removing one's password."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.account.page import account_page, is_fresh, require_fresh
from normata.console.page_request import NotSignedIn, PageRequest
from normata.console.sign_in.password import proves
from normata.console.texts import refusal, text
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import TenantScope
from normata.identity.errors import SignInRefused
from normata.identity.sessions import sessions
from normata.identity.sessions.sessions import Visitor
from normata.identity.sign_in import passwords


async def change_password(page_request: PageRequest) -> Response:
    """Set a new password, and end the person's other sessions.

    The form must contain the current password. If there is none, or if the person signed in with a link, a recent
    sign-in is enough. Raises SignInRefused.
    """
    page_request.require_local_sign_in()
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    found = await page_request.console.services.database.look_up(passwords.PASSWORD_OF_USER, visitor.user_id)
    if not found:
        raise NotSignedIn  # the account was removed a moment ago
    account, hashing = found[0], page_request.console.hashing
    if account.hash is None or await _is_by_link(page_request, visitor):
        require_fresh(visitor)
    elif not await proves(page_request, account.email, form.get("current", ""), account):
        page_request.note_refusal(SignInRefused("password_wrong"))
        return await account_page(page_request, visitor, status=403, message=refusal("current_wrong"))
    chosen = form.get("password", "")
    try:
        passwords.require_fit(chosen, account.email, account.user_name)
    except passwords.UnfitPassword as error:
        message = text(f"password.{error.fault}", shortest=passwords.SHORTEST)
        return await account_page(page_request, visitor, status=400, message=message)
    async with hashing.turn(page_request.address):
        hashed = await hashing.hashed(chosen)

    def work(unit: UnitOfWork) -> None:
        passwords.store(unit, visitor.user_id, hashed)
        sessions.end_others(unit, visitor.user_id, but=visitor.session_id)

    await page_request.change_own(visitor, work, (*passwords.SET_WRITES, *sessions.END_WRITES))
    return page_request.redirect("/account/")


async def _is_by_link(page_request: PageRequest, visitor: Visitor) -> bool:
    """Whether the person signed in with a link recently, as people do who have forgotten their password."""
    if not is_fresh(visitor):
        return False
    means = await page_request.console.services.database.read(
        lambda transaction: sessions.means_of(transaction, visitor.session_id), TenantScope(users=(visitor.user_id,))
    )
    return means == "link"
