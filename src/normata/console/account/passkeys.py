"""Adding and removing one's passkeys."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.account.page import require_fresh
from normata.console.page_request import PageRequest
from normata.console.pages import HEADERS
from normata.console.sign_in.passkey import answer_of, begin_challenge, finish_challenge, relying_party
from normata.console.texts import text
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import ConstraintViolation, TenantScope
from normata.core.http.responses import JsonResponse
from normata.identity.errors import SignInRefused
from normata.identity.sign_in import passkeys

_LONGEST_NAME = 100


async def creation_options(page_request: PageRequest) -> Response:
    """The options with which the script creates a passkey, with a new challenge. Raises SignInRefused."""
    party = relying_party(page_request)
    visitor = await page_request.required_visitor()
    require_fresh(visitor)
    known = await page_request.console.services.database.read(
        lambda transaction: passkeys.own(transaction, visitor.user_id), TenantScope(users=(visitor.user_id,))
    )
    challenge = await begin_challenge(page_request, visitor.user_id)
    options = party.creation_options(
        challenge, visitor.user_id, visitor.user_name, [row.credential_id for row in known]
    )
    return JsonResponse(options, headers=dict(HEADERS))


async def add_passkey(page_request: PageRequest) -> Response:
    """Store the passkey that the browser has created. Raises SignInRefused."""
    party = relying_party(page_request)
    visitor = await page_request.required_visitor()
    require_fresh(visitor)
    form = await page_request.form()
    answer = answer_of(form)
    made = party.created(await finish_challenge(page_request, answer, visitor.user_id), answer)
    name = form.get("name", "").strip()[:_LONGEST_NAME] or text("account.passkey_default_name")

    def work(unit: UnitOfWork) -> None:
        passkeys.add(unit, visitor.user_id, made, name)

    try:
        await page_request.change_own(visitor, work, passkeys.ADD_WRITES)
    except ConstraintViolation:
        raise SignInRefused("passkey_taken") from None
    return page_request.redirect("/account/")


async def remove_passkey(page_request: PageRequest) -> Response:
    """Remove one of the person's passkeys. Raises NotFound."""
    visitor = await page_request.required_visitor()
    form = await page_request.form()
    removed = form.get("passkey", "")
    await page_request.change_own(
        visitor, lambda unit: passkeys.remove(unit, visitor.user_id, removed), passkeys.REMOVE_WRITES
    )
    return page_request.redirect("/account/")
