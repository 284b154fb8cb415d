"""The secrets of links: how they look, and what is kept of them."""

from __future__ import annotations

import hashlib
import secrets


def new_secret() -> str:
    """A new secret, fit for an address: 256 random bits. It is kept nowhere."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of a secret. With 256 random bits a plain hash is enough: nobody can try them all."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
