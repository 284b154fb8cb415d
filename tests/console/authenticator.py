"""An authenticator in software: it makes passkeys and signs with them (WebAuthn, level 3), rightly or not."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


def encoded(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Authenticator:
    """One authenticator, with at most one key. Its fields are what it gets wrong when a test changes them."""

    host: str = "localhost"
    origin: str = "http://localhost:8000"
    verifies: bool = True
    count: int = 0
    kind: str = ""  # instead of what the browser would write into the client data
    handle: bytes = b""
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def create(self, options: dict[str, Any]) -> str:
        """What the script sends for a new key."""
        self.handle = base64.urlsafe_b64decode(options["user"]["id"] + "==")
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}  # COSE: EC2, ES256
        attested = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + cbor.encode(public)
        attestation = {"fmt": "none", "attStmt": {}, "authData": self._data(_ATTESTED) + attested}
        return self._credential(
            {
                "clientDataJSON": encoded(self._client_data("webauthn.create", options["challenge"])),
                "attestationObject": encoded(cbor.encode(attestation)),
            }
        )

    def sign(self, options: dict[str, Any]) -> str:
        """What the script sends to sign in."""
        client_data, data = self._client_data("webauthn.get", options["challenge"]), self._data()
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        return self._credential(
            {
                "clientDataJSON": encoded(client_data),
                "authenticatorData": encoded(data),
                "signature": encoded(signature),
                "userHandle": encoded(self.handle),
            }
        )

    def _data(self, flags: int = 0) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verifies else 0)
        return hashlib.sha256(self.host.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        told = {"type": self.kind or kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(told).encode()

    def _credential(self, response: dict[str, str]) -> str:
        identifier = encoded(self.credential_id)
        return json.dumps(
            {
                "id": identifier,
                "rawId": identifier,
                "type": "public-key",
                "clientExtensionResults": {},
                "response": response,
            }
        )
