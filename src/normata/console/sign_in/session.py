"""Starting a session after a sign-in of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from starlette.responses import Response

from normata.console.page_request import SESSION_COOKIE, PageRequest
from normata.console.return_path import safe_path
from normata.console.sign_in.typed import PERSON_COOKIE, PERSON_LIFETIME, person_mark, typed_page, unsealed
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import Write
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope
from normata.identity.sessions import sessions
from normata.identity.sign_in_model import Means

START = "/account/"  # ways to sign in are managed here
HOME = "/app/"  # the default after signing in


def _nothing(_unit: UnitOfWork) -> None:
    """The default of ``Proof.work``."""


class Proof(NamedTuple):
    """Who a person has proved to be, and by what means.

    ``work`` runs in the same unit of work as the session: it uses up the proof, and may raise SignInRefused. ``writes``
    declares what it writes, and ``organizations`` where. The id of a new user is chosen before.
    """

    means: Means
    user_id: str
    user_name: str
    work: Callable[[UnitOfWork], object] = _nothing
    writes: tuple[Write, ...] = ()
    organizations: tuple[str, ...] = ()


async def start_session(page_request: PageRequest, proof: Proof, return_to: str = "", typed: str = "") -> Response:
    """Begin a session, and send the browser on to ``return_to`` where that is safe, or to a form that was ``typed``.

    The session has a new secret, and the previous session of the browser ends, so that nobody can have prepared it
    (session fixation). Raises the errors of ``proof.work``.
    """
    before = await page_request.visitor()

    def work(unit: UnitOfWork) -> str:
        proof.work(unit)
        return sessions.begin(
            unit,
            proof.user_id,
            proof.means,
            address=page_request.address,
            user_agent=page_request.user_agent,
            replaces=before and before.session_id,
        )

    users = {proof.user_id, before.user_id if before else proof.user_id}
    secret = await page_request.console.services.changes.make(
        work,
        actor=page_request.actor(proof.user_id, proof.user_name),
        scope=TenantScope(
            readable=proof.organizations, writable=(NO_ORGANIZATION, *proof.organizations), users=tuple(sorted(users))
        ),
        writes=(*sessions.BEGIN_WRITES, *proof.writes),
    )
    cookie = page_request.console.site.cookie
    cookies = [
        cookie(SESSION_COOKIE, secret, max_age=int(sessions.LONGEST.total_seconds())),
        cookie(PERSON_COOKIE, person_mark(proof.user_id), max_age=int(PERSON_LIFETIME.total_seconds())),
    ]
    found = unsealed(page_request, typed, proof.user_id)
    response = page_request.redirect(safe_path(return_to) or HOME) if found is None else typed_page(page_request, found)
    for one in cookies:
        response.headers.append("Set-Cookie", one)
    return response


async def sign_out(page_request: PageRequest) -> Response:
    """End the session of this browser, if any, and delete its cookie."""
    visitor = await page_request.visitor()
    if visitor is not None:
        await page_request.change_own(visitor, lambda unit: sessions.end(unit, visitor.session_id), sessions.END_WRITES)
    cookie = page_request.console.site.cookie(SESSION_COOKIE, "", max_age=0)
    return page_request.redirect("/sign-in/", {"Set-Cookie": cookie})
