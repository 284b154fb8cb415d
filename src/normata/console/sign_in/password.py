"""Signing in with a password."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.sign_in.session import Proof, start_session
from normata.console.sign_in.start import start_page
from normata.console.texts import refusal
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.addresses import email_key
from normata.identity.errors import SignInRefused
from normata.identity.sign_in import passwords
from normata.identity.sign_in.passwords import PASSWORD_BY_EMAIL


async def use_password(page_request: PageRequest) -> Response:
    """Sign in with an email address and a password. Raises SignInRefused.

    Without an account or a password, the answer and its time are those of a wrong password.
    """
    page_request.require_local_sign_in()
    form = await page_request.form()
    email, password = form.get("email", "").strip(), form.get("password", "")
    return_to, typed = form.get("return_to", ""), form.get("typed", "")
    found = await _account(page_request, email)
    is_right = await proves(page_request, email, password, found)  # also without an account, to take the same time
    if found is None or not is_right:
        page_request.note_refusal(SignInRefused("password_wrong"))
        message = refusal("password_wrong")
        return await start_page(
            page_request, return_to=return_to, status=403, email=email, message=message, typed=typed
        )
    hashing = page_request.console.hashing
    renewed = None
    if hashing.is_outdated(found.hash):
        async with hashing.turn(page_request.address):
            renewed = await hashing.hashed(password)

    def work(unit: UnitOfWork) -> None:
        if renewed is not None:
            passwords.rehash(unit, found.user_id, renewed, found.changed_at)

    proof = Proof("password", found.user_id, found.user_name, work, passwords.REHASH_WRITES)
    return await start_session(page_request, proof, return_to, typed)


async def proves(page_request: PageRequest, email: str, password: str, found: Any | None) -> bool:
    """Whether a password is that of the account ``found``. False for null. Counts as an attempt.

    Raises SignInRefused, also if too many passwords from this address wait to be compared; that is no attempt.
    """
    hashing = page_request.console.hashing
    async with hashing.turn(page_request.address):
        await page_request.console.throttles.count(page_request.address, email)
        return await hashing.is_right(password, None if found is None else found.hash)


async def _account(page_request: PageRequest, email: str) -> Any | None:
    found = await page_request.console.services.database.look_up(PASSWORD_BY_EMAIL, email_key(email))
    return found[0] if found else None
