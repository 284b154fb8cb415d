"""Secrets of sessions, links and invitations: 256 random bits in base64url, of which only the SHA-256 is stored."""

from __future__ import annotations

import hashlib
import re
import secrets

_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def new_secret() -> str:
    """A new secret. It is never stored."""
    return secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """The digest of a secret to store. For 256 random bits a plain hash is sufficient."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret(text: str) -> bool:
    """Whether ``text`` has the form of a secret; other texts need no query."""
    return _SHAPE.fullmatch(text) is not None
