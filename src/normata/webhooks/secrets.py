"""The secrets of webhooks: made, encrypted for the database, and used to sign (Standard Webhooks)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence

from normata.events.keys import KeyUnusable, Signer

_PREFIX = "whsec_"
_SIZE = 32  # bytes
_PURPOSE = "secrets of webhooks"
_NONCE = 12  # bytes


class SecretUnreadable(Exception):
    """A stored secret was encrypted with another key, or was changed, or the key cannot be used."""


def new_secret() -> bytes:
    """A new secret."""
    return secrets.token_bytes(_SIZE)


def as_text(secret: bytes) -> str:
    """A secret as receivers get it."""
    return _PREFIX + b64encode(secret).decode()


def signatures(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The signatures of a message by all these secrets, as in its header."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}" for key in keys)


class SecretBox:
    """Encrypts the secrets with a key that is derived from that of the events, which is not in the database."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._key: bytes | None = None

    def seal(self, webhook_id: str, secret: bytes) -> str:
        """A secret as it is stored for this webhook. Raises KeyUnusable."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - few processes need it

        nonce = secrets.token_bytes(_NONCE)
        return b64encode(nonce + AESGCM(self._loaded()).encrypt(nonce, secret, webhook_id.encode())).decode()

    def open(self, webhook_id: str, sealed: str) -> bytes:
        """The secret that was stored for this webhook. Raises SecretUnreadable."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        try:
            content = b64decode(sealed, validate=True)
            return AESGCM(self._loaded()).decrypt(content[:_NONCE], content[_NONCE:], webhook_id.encode())
        except (KeyUnusable, InvalidTag, ValueError):
            raise SecretUnreadable from None

    def _loaded(self) -> bytes:
        if self._key is None:
            self._key = self._signer.derived(_PURPOSE)
        return self._key
