"""Passkeys on the wire: options for the browser, and the verification of its answers (WebAuthn, level 3).

A key is discoverable, so that nobody has to type a name, and its authenticator must verify the person, which is
possession and a second factor in one step. Attestation is not required: any authenticator is accepted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from normata.identity.errors import SignInRefused

if TYPE_CHECKING:
    from fido2.server import Fido2Server


class NewCredential(NamedTuple):
    """The data to store of a new key; all texts are base64url without padding."""

    credential_id: str
    credential: str
    sign_count: int


class RelyingParty:
    """The site, as authenticators know it: ``host`` is its id, ``origin`` the only allowed origin of pages."""

    def __init__(self, host: str, origin: str) -> None:
        self._host = host
        self._origin = origin

    @cached_property
    def _server(self) -> Fido2Server:
        from fido2.server import Fido2Server  # noqa: PLC0415 - slow to import, and not everybody has passkeys
        from fido2.webauthn import PublicKeyCredentialRpEntity  # noqa: PLC0415

        party = PublicKeyCredentialRpEntity(id=self._host, name="Normata")
        return Fido2Server(party, verify_origin=lambda origin: origin == self._origin)

    def creation_options(self, challenge: str, user_id: str, user_name: str, known: Iterable[str]) -> dict[str, Any]:
        """The options for creating a key. ``known`` are the ids of the user's existing keys."""
        from fido2 import webauthn  # noqa: PLC0415

        options, _ = self._server.register_begin(
            webauthn.PublicKeyCredentialUserEntity(id=user_handle(user_id), name=user_name, display_name=user_name),
            [
                webauthn.PublicKeyCredentialDescriptor(
                    type=webauthn.PublicKeyCredentialType.PUBLIC_KEY, id=_decoded(credential_id)
                )
                for credential_id in known
            ],
            resident_key_requirement=webauthn.ResidentKeyRequirement.REQUIRED,
            user_verification=webauthn.UserVerificationRequirement.REQUIRED,
            challenge=_decoded(challenge),
        )
        return dict(options.public_key)

    def created(self, challenge: str, response: Mapping[str, Any]) -> NewCredential:
        """The key that a browser has made for this challenge. Raises SignInRefused."""
        try:
            made = self._server.register_complete(self._state(challenge), response)
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError, LookupError):
            # The library raises these for input that is no answer of an authenticator.
            raise SignInRefused("passkey_wrong") from None
        credential = made.credential_data
        if credential is None:
            raise SignInRefused("passkey_wrong")
        return NewCredential(_encoded(credential.credential_id), _encoded(credential), made.counter)

    def request_options(self, challenge: str) -> dict[str, Any]:
        """The options for signing in with any key that the person selects."""
        from fido2.webauthn import UserVerificationRequirement  # noqa: PLC0415

        options, _ = self._server.authenticate_begin(
            user_verification=UserVerificationRequirement.REQUIRED, challenge=_decoded(challenge)
        )
        return dict(options.public_key)

    def proved(self, challenge: str, credential: str, user_id: str, response: Mapping[str, Any]) -> int:
        """The counter of an authenticator that has signed this challenge with the user's ``credential``.

        Raises SignInRefused.
        """
        from fido2.webauthn import AttestedCredentialData, AuthenticationResponse  # noqa: PLC0415

        try:
            self._server.authenticate_complete(
                self._state(challenge), [AttestedCredentialData(_decoded(credential))], response
            )
            answer = AuthenticationResponse.from_dict(response).response
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError, LookupError):
            raise SignInRefused("passkey_wrong") from None
        if answer.user_handle is not None and answer.user_handle != user_handle(user_id):
            raise SignInRefused("passkey_wrong")
        return int(answer.authenticator_data.counter)

    @staticmethod
    def _state(challenge: str) -> dict[str, Any]:
        return {"challenge": challenge, "user_verification": "required"}


def user_handle(user_id: str) -> bytes:
    """The user handle that an authenticator stores; it must reveal nothing about the person (section 14.6.1)."""
    return hashlib.sha256(user_id.encode()).digest()


def challenge_of(response: Mapping[str, Any]) -> str:
    """The challenge that the browser's answer names. Raises SignInRefused."""
    try:
        challenge = orjson.loads(_decoded(response["response"]["clientDataJSON"]))["challenge"]
    except (ValueError, TypeError, LookupError):
        raise SignInRefused("passkey_wrong") from None
    if not isinstance(challenge, str):
        raise SignInRefused("passkey_wrong")
    return challenge


def _decoded(text: str) -> bytes:
    from fido2.utils import websafe_decode  # noqa: PLC0415

    return bytes(websafe_decode(text))


def _encoded(data: bytes) -> str:
    from fido2.utils import websafe_encode  # noqa: PLC0415

    return str(websafe_encode(data))
