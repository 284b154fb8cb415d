"""Single sign-on with a provider of OpenID Connect: the redirect to it, and the callback."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import RedirectResponse, Response

from normata.console.account.page import require_fresh
from normata.console.page_request import PageRequest
from normata.console.pages import HEADERS
from normata.console.return_path import safe_path
from normata.console.sign_in.session import START, Proof, start_session
from normata.console.sign_in.typed import LONGEST
from normata.console.texts import text
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import NO_TENANT, ConstraintViolation
from normata.core.log import logger
from normata.errors import InvitationClosed
from normata.identity.errors import SignInRefused
from normata.identity.openid import groups, identities
from normata.identity.openid.errors import ProviderFailed, ProviderUnreachable
from normata.identity.openid.groups import GROUP_WRITES
from normata.identity.openid.identities import CONNECT_WRITES, DISCONNECT_WRITES, IDENTITY_WRITES
from normata.identity.openid.person import Person
from normata.identity.openid.provider import Provider
from normata.identity.secrets import digest_of, is_secret, new_secret
from normata.identity.sign_in import attempts as sign_in_attempts

COOKIE = "normata-oidc"
_KIND = "oidc"
_LONGEST_CODE = 4_000

# The errors that a provider may send (RFC 6749, section 4.1.2.1; OpenID Connect Core 1.0, section 3.1.2.6).
_ERRORS = frozenset(
    {
        *("access_denied", "invalid_request", "invalid_scope", "server_error", "temporarily_unavailable"),
        *("unauthorized_client", "unsupported_response_type", "account_selection_required", "consent_required"),
        *("interaction_required", "login_required"),
    }
)


@dataclass(frozen=True, slots=True)
class SingleSignOn:
    """The pages for single sign-on with a provider."""

    provider: Provider

    async def start_with_form(self, page_request: PageRequest) -> Response:
        """The same with a form that was sent and not saved, which waits here, sealed.

        The answer is a page with a link, as for :meth:`connect`. Raises SignInRefused.
        """
        await page_request.console.throttles.count(page_request.address)
        typed = (await page_request.form()).get("typed", "")
        try:
            url, cookie = await self._begin(page_request, typed=typed)
        except ProviderFailed as error:
            return _failure(page_request, error)
        return page_request.page(
            "provider.html",
            headers={"Set-Cookie": cookie},
            visitor=None,
            url=url,
            heading=text("sign_in.with_provider", provider=page_request.console.provider),
            about=text("typed.carried"),
        )

    async def start(self, page_request: PageRequest) -> Response:
        """Redirect to the provider. Raises SignInRefused."""
        await page_request.console.throttles.count(page_request.address)
        try:
            url, cookie = await self._begin(page_request, return_to=safe_path(page_request.query.get("return_to", "")))
        except ProviderFailed as error:
            return _failure(page_request, error)
        return RedirectResponse(url, 303, {**HEADERS, "Set-Cookie": cookie})

    async def connect(self, page_request: PageRequest) -> Response:
        """Connect the account of a signed-in person with the provider, so that they can sign in with it from now on.

        The answer is a page with a link to the provider, because the policy of pages (``form-action``) forbids
        redirecting a form to another site. Raises SignInRefused.
        """
        visitor = await page_request.required_visitor()
        require_fresh(visitor)
        try:
            url, cookie = await self._begin(page_request, connect=visitor.user_id)
        except ProviderFailed as error:
            return _failure(page_request, error)
        return page_request.page(
            "provider.html",
            headers={"Set-Cookie": cookie},
            visitor=visitor,
            url=url,
            heading=text("provider.title"),
            about=text("provider.explained"),
        )

    async def disconnect(self, page_request: PageRequest) -> Response:
        """Disconnect the visitor's account from the provider. Raises NotFound."""
        visitor = await page_request.required_visitor()
        identity = (await page_request.form()).get("identity", "")
        await page_request.change_own(
            visitor, lambda unit: identities.disconnect(unit, visitor.user_id, identity), DISCONNECT_WRITES
        )
        return page_request.redirect(START)

    async def finish(self, page_request: PageRequest) -> Response:
        """Sign in the person whom the provider names, or connect them. Raises SignInRefused."""
        answer = _answer(page_request)
        attempt = await _attempt_data(page_request, answer)
        try:
            await self.provider.require_issuer(answer.get("iss"))
            person = await self.provider.redeem(_code(answer), nonce=attempt["nonce"], verifier=attempt["verifier"])
        except ProviderFailed as error:
            return _failure(page_request, error)
        if attempt["connect"]:
            response = await self._connect(page_request, person, attempt["connect"])
        else:
            response = await self._sign_in(page_request, person, attempt)
        response.headers.append("Set-Cookie", page_request.console.site.cookie(COOKIE, "", max_age=0))
        return response

    async def _begin(
        self, page_request: PageRequest, *, return_to: str = "", connect: str = "", typed: str = ""
    ) -> tuple[str, str]:
        """The address to go to, and the cookie that goes with it. Raises ProviderFailed.

        The values that the callback must match are stored in the database for ten minutes. The cookie binds the attempt
        to this browser. Otherwise an attacker could make a victim's browser use the attacker's callback, and so sign it
        in as the attacker (RFC 6749, section 10.12).
        """
        request = await self.provider.authorization_request()
        browser = new_secret()
        data = {
            "nonce": request.nonce,
            "verifier": request.verifier,
            "browser": digest_of(browser),
            "return_to": return_to,
            "connect": connect,
            "typed": typed[:LONGEST],
        }
        await page_request.console.services.changes.make(
            lambda unit: sign_in_attempts.begin(unit, _KIND, request.state, data),
            actor=page_request.actor(None),
            scope=NO_TENANT,
            writes=sign_in_attempts.BEGIN_WRITES,
        )
        lifetime = int(sign_in_attempts.LIFETIME.total_seconds())
        return request.url, page_request.console.site.cookie(COOKIE, browser, max_age=lifetime)

    async def _connect(self, page_request: PageRequest, person: Person, user_id: str) -> Response:
        """Connect the user who started the attempt with the provider's person. Raises SignInRefused."""
        visitor = await page_request.required_visitor()
        if visitor.user_id != user_id:
            raise SignInRefused("other_browser")
        await identities.require_unknown(page_request.console.services.database, person)
        try:
            await page_request.change_own(
                visitor, lambda unit: identities.connect(unit, user_id, person), CONNECT_WRITES
            )
        except ConstraintViolation:
            raise SignInRefused("identity_taken") from None
        return page_request.redirect(START)

    async def _sign_in(self, page_request: PageRequest, person: Person, attempt: Mapping[str, Any]) -> Response:
        """Begin the session of the user whom the person is.

        Two first sign-ins at once may collide. The second one then finds the user that the first one has created.
        """
        try:
            return await self._sign_in_once(page_request, person, attempt)
        except (ConstraintViolation, InvitationClosed):
            try:
                return await self._sign_in_once(page_request, person, attempt)
            except InvitationClosed:
                raise SignInRefused("not_invited") from None

    async def _sign_in_once(self, page_request: PageRequest, person: Person, attempt: Mapping[str, Any]) -> Response:
        database = page_request.console.services.database
        configuration = self.provider.configuration
        granted, unknown = list[groups.GroupRoles](), list[str]()
        if person.groups is not None:
            granted, unknown = await groups.roles_of_groups(database, configuration.grants, person.groups)
        joins = configuration.joins_by_groups and any(one.role is not None for one in granted)
        known = await identities.find(database, person, joins=joins)
        if unknown:
            _warn(page_request, "sign_in_organization_unknown", organizations=unknown)
        last_owner_of: list[str] = []

        def work(unit: UnitOfWork) -> None:
            identities.sign_in(unit, known, person)
            last_owner_of[:] = groups.apply_roles(unit, known.user_id, granted)

        proof = Proof(
            means="oidc",
            user_id=known.user_id,
            user_name=known.user_name,
            work=work,
            writes=(*IDENTITY_WRITES, *GROUP_WRITES),
            organizations=tuple(sorted({*known.organizations, *(one.organization_id for one in granted)})),
        )
        response = await start_session(page_request, proof, attempt["return_to"], attempt.get("typed", ""))
        if last_owner_of:
            _warn(page_request, "sign_in_last_owner_not_demoted", organizations=last_owner_of)
        return response


def _answer(page_request: PageRequest) -> Mapping[str, str]:
    """The parameters of the callback. Raises SignInRefused if one is repeated, since it would be ambiguous."""
    pairs = parse_qsl(page_request.request.url.query, keep_blank_values=True)
    answer = dict(pairs)
    if len(answer) != len(pairs):
        raise SignInRefused("oidc_answer")
    return answer


async def _attempt_data(page_request: PageRequest, answer: Mapping[str, str]) -> dict[str, Any]:
    """The stored data of the attempt, which can be used once. Raises SignInRefused."""
    state = answer.get("state", "")
    if not is_secret(state):
        raise SignInRefused("oidc_answer")
    attempt = await page_request.console.services.changes.make(
        lambda unit: sign_in_attempts.finish(unit, _KIND, state),
        actor=page_request.actor(None),
        scope=NO_TENANT,
        writes=sign_in_attempts.FINISH_WRITES,
    )
    if not hmac.compare_digest(str(attempt["browser"]), digest_of(page_request.cookie(COOKIE))):
        raise SignInRefused("other_browser")
    return attempt


def _code(answer: Mapping[str, str]) -> str:
    """The authorization code of the callback. Raises SignInRefused if it has an error instead."""
    error = answer.get("error")
    if error is not None:
        raise SignInRefused(f"provider_{error}" if error in _ERRORS else "provider_error")
    code = answer.get("code", "")
    if not code or len(code) > _LONGEST_CODE or not code.isprintable():
        raise SignInRefused("oidc_answer")
    return code


def _failure(page_request: PageRequest, error: ProviderFailed) -> Response:
    """The page that reports a failure of the provider, with the id of the request."""
    is_down = isinstance(error, ProviderUnreachable)
    page_request.context.problem, page_request.context.reason = "provider_failed", error.cause
    _warn(page_request, "sign_in_provider_failed", cause=error.cause)
    return page_request.page(
        "message.html",
        status=503 if is_down else 502,
        headers={"Retry-After": "10"} if is_down else None,
        title=text("refused.title"),
        message=text("provider.unreachable" if is_down else "provider.failed"),
        visitor=None,
    )


def _warn(page_request: PageRequest, event: str, **more: object) -> None:
    logger.warning(event, request_id=page_request.context.request_id, **more)
