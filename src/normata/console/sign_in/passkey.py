"""Signing in with a passkey. Only this way to sign in needs the script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.pages import HEADERS
from normata.console.sign_in.session import Proof, start_session
from normata.core.db.transaction import NO_TENANT
from normata.core.http.responses import JsonResponse
from normata.identity.errors import SignInRefused
from normata.identity.secrets import new_secret
from normata.identity.sign_in import attempts as sign_in_attempts
from normata.identity.sign_in import passkeys
from normata.identity.sign_in.webauthn import RelyingParty, challenge_of

_KIND = "passkey"
_SIGN_IN = ""  # a challenge to sign in is for no user yet


async def sign_in_options(page_request: PageRequest) -> Response:
    """The options with which the script asks the browser for a signature, with a new challenge."""
    party = relying_party(page_request)
    challenge = await begin_challenge(page_request, _SIGN_IN)
    return JsonResponse(party.request_options(challenge), headers=dict(HEADERS))


async def use_passkey(page_request: PageRequest) -> Response:
    """Sign in with the signature of the browser. Raises SignInRefused."""
    party = relying_party(page_request)
    form = await page_request.form()
    answer = answer_of(form)
    challenge = await finish_challenge(page_request, answer, _SIGN_IN)
    credential_id = answer.get("id")
    found = await page_request.console.services.database.look_up(passkeys.PASSKEY_LOOKUP, str(credential_id))
    if not found:
        raise SignInRefused("passkey_unknown")
    row = found[0]
    count = party.proved(challenge, row.credential, row.user_id, answer)
    proof = Proof(
        means="passkey",
        user_id=row.user_id,
        user_name=row.user_name,
        work=lambda unit: passkeys.note_use(unit, row.passkey_id, count),
        writes=passkeys.USE_WRITES,
    )
    return await start_session(page_request, proof, form.get("return_to", ""), form.get("typed", ""))


def relying_party(page_request: PageRequest) -> RelyingParty:
    """The relying party. Raises SignInRefused if passkeys are not possible."""
    page_request.require_local_sign_in()
    if page_request.console.passkeys is None:
        raise SignInRefused("passkeys_impossible")
    return page_request.console.passkeys


async def begin_challenge(page_request: PageRequest, user_id: str) -> str:
    """A new challenge for a user, or, with an empty id, to sign in. Counts as an attempt. Raises SignInRefused."""
    await page_request.console.throttles.count(page_request.address)
    challenge = new_secret()
    await page_request.console.services.changes.make(
        lambda unit: sign_in_attempts.begin(unit, _KIND, challenge, {"user": user_id}),
        actor=page_request.actor(None),
        scope=NO_TENANT,
        writes=sign_in_attempts.BEGIN_WRITES,
    )
    return challenge


def answer_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The credential that the script has sent as JSON. Raises SignInRefused."""
    try:
        answer = orjson.loads(form.get("credential", ""))
    except ValueError:
        raise SignInRefused("passkey_wrong") from None
    if not isinstance(answer, dict):
        raise SignInRefused("passkey_wrong")
    return answer


async def finish_challenge(page_request: PageRequest, answer: Mapping[str, Any], user_id: str) -> str:
    """The challenge of an answer, which must be for this user. It cannot be used again. Raises SignInRefused."""
    challenge = challenge_of(answer)
    # In a transaction of its own: if the sign-in is refused later, the challenge must stay used up.
    data = await page_request.console.services.changes.make(
        lambda unit: sign_in_attempts.finish(unit, _KIND, challenge),
        actor=page_request.actor(None),
        scope=NO_TENANT,
        writes=sign_in_attempts.FINISH_WRITES,
    )
    if data["user"] != user_id:
        raise SignInRefused("attempt_unknown")
    return challenge
