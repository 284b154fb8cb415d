"""Confirmations: what a tool that changes something gives first, and needs before it does it.

A confirmation is a text that nobody but this service can make, so nothing is stored for it, and every process knows
it. It holds for one caller with one token, one tool, its arguments, and the state in which the record was. The key that
it gives for ``Idempotency-Key`` makes sure that it is used once.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from normata.events.keys import Signer

LIFETIME = 600  # seconds
_HASH = 12  # bytes of each hash, which only tells one thing from another
_BODY = 8 + 8 + 3 * _HASH  # the end, what makes it unique, and the hashes
_MAC = 20  # bytes
_TEXT = re.compile(r"[A-Za-z0-9_-]{96}", re.ASCII)  # in Base64, without anything that fills up


class Confirmed(NamedTuple):
    """What a confirmation holds for: who calls, what they call, and the state of the record; empty if there is none."""

    caller: str
    call: str
    state: str


class Refusal(Exception):
    """A confirmation does not hold; the message is the reason, as a sentence."""


class Confirmations:
    """Gives and checks confirmations, with a key that follows from that of the service."""

    def __init__(self, signer: Signer, clock: Callable[[], float] = time.time) -> None:
        self._signer = signer
        self._clock = clock

    def give(self, confirmed: Confirmed) -> tuple[str, float]:
        """A new confirmation, and when it ends, in seconds since the epoch. Raises KeyUnusable."""
        end = int(self._clock()) + LIFETIME
        body = end.to_bytes(8, "big") + os.urandom(8) + b"".join(map(_hash, confirmed))
        return urlsafe_b64encode(body + self._mac(body)).decode(), end

    def require(self, text: str, confirmed: Confirmed) -> str:
        """The key of the change that a confirmation was given for. Raises Refusal if it does not hold; KeyUnusable."""
        content = urlsafe_b64decode(text) if _TEXT.fullmatch(text) else b""
        body, mac = content[:_BODY], content[_BODY:]
        if not content or not hmac.compare_digest(mac, self._mac(body)):
            raise Refusal("It is none that this service has given.")
        end = int.from_bytes(body[:8], "big")
        caller, call, state = (body[start : start + _HASH] for start in range(16, _BODY, _HASH))
        if caller != _hash(confirmed.caller):
            raise Refusal("It was given to another caller, or for another token.")
        if call != _hash(confirmed.call):
            raise Refusal("It was given for another tool, or for other arguments.")
        if end <= self._clock():
            raise Refusal(f"It has expired: it holds for {LIFETIME // 60} minutes.")
        if state != _hash(confirmed.state):
            raise Refusal("The record has changed since it was given, or it has been used.")
        return f"confirmation-{sha256(body).hexdigest()}"

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._signer.key_for("confirmations"), body, "sha256")[:_MAC]


def call_of(tool: str, arguments: dict[str, Any]) -> str:
    """A text that is the same for the same tool and arguments, and for no others."""
    return json.dumps([tool, arguments], sort_keys=True)


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:_HASH]
