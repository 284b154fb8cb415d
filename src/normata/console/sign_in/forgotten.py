"""Mailing a sign-in link to somebody who has forgotten their password."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.sign_in.session import START
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope
from normata.core.log import logger
from normata.core.schema.addresses import email_key
from normata.errors import Unavailable
from normata.identity.errors import SignInRefused
from normata.identity.mail import Mailer, sign_in_mail
from normata.identity.sign_in import links
from normata.identity.sign_in.passwords import PASSWORD_BY_EMAIL

_sending: set[asyncio.Task[None]] = set()  # the event loop holds only weak references to tasks


async def show_forgotten(page_request: PageRequest) -> Response:
    """Show the form for the email address, and after sending it what happens next."""
    _require_mail(page_request)
    is_sent = page_request.query.get("sent") == "true"
    return page_request.page("forgotten.html", visitor=await page_request.visitor(), is_sent=is_sent)


async def mail_link(page_request: PageRequest) -> Response:
    """Mail a link to an address if it belongs to an account. Raises SignInRefused.

    The answer and its time are the same without an account, so that nobody can find out who has one.
    """
    _require_mail(page_request)
    form = await page_request.form()
    await page_request.console.throttles.count(page_request.address)
    task = asyncio.create_task(_mail(page_request, form.get("email", "").strip()))
    _sending.add(task)
    task.add_done_callback(_sending.discard)
    return page_request.redirect("/sign-in/forgotten/?sent=true")


def _require_mail(page_request: PageRequest) -> None:
    page_request.require_local_sign_in()
    if not page_request.console.settings.smtp_url:
        raise SignInRefused("mail_off")


async def _mail(page_request: PageRequest, email: str) -> None:
    services = page_request.console.services
    try:
        found = await services.database.look_up(PASSWORD_BY_EMAIL, email_key(email))
        if not found:
            return
        account = found[0]

        def work(unit: UnitOfWork) -> str | None:
            return links.create_again(unit, account.user_id)

        secret = await services.changes.make(
            work,
            actor=page_request.actor(None),
            scope=TenantScope(writable=(NO_ORGANIZATION,), users=(account.user_id,)),
            writes=links.CREATE_WRITES,
        )
    except Unavailable as error:
        logger.warning("database_unavailable", request_id=page_request.context.request_id, reason=str(error))
        return
    if secret is not None:
        address = links.link(page_request.console.settings.public_url, secret, return_to=START)
        await services.means[Mailer].send(account.email, *sign_in_mail(address))
