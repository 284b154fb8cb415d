"""Signing in by the provider that forges."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

from normata.identity.openid.configuration import Configuration
from normata.identity.openid.person import Person
from normata.identity.openid.provider import Provider
from tests.identity.openid.conftest import configured
from tests.identity.openid.forging import Forger

ADA = {"sub": "ada", "email": "ada@example.org", "email_verified": True}


async def attempt(provider: Provider, forger: Forger, *, verifier: str = "", code: str = "") -> Person:
    """Sign in once, with another verifier or code than the right one where that is given."""
    question = await provider.authorization_request()
    back = parse_qs(urlsplit(forger.authorize(question.url)).query)
    return await provider.redeem(code or back["code"][0], nonce=question.nonce, verifier=verifier or question.verifier)


def signed_in(forger: Forger, configuration: Configuration | None = None) -> Person:
    """Who has signed in by a provider that nothing is known of yet."""
    return asyncio.run(attempt(Provider(configuration or configured(forger.issuer)), forger))
