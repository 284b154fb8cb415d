"""Signing in by a provider that others have written."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from normata.identity.errors import SignInRefused
from normata.identity.openid.person import Person
from normata.identity.openid.provider import AuthorizationRequest, Provider
from tests.identity.openid.conftest import configured
from tests.identity.openid.mock import Mock, running_mock


async def signed_in(provider: Provider, mock: Mock, subject: str) -> Person:
    """Who has signed in, as our client of the provider takes it."""
    request = await provider.authorization_request()
    code = await answered(mock, request, subject)
    return await provider.redeem(code, nonce=request.nonce, verifier=request.verifier)


async def answered(mock: Mock, request: AuthorizationRequest, subject: str) -> str:
    """The code that answers a request."""
    back = await asyncio.to_thread(mock.sign_in, request.url, subject)
    assert back.startswith("http://localhost:8000/sign-in/oidc/callback/?")
    answer = parse_qs(urlsplit(back).query)
    assert answer["state"] == [request.state]
    return answer["code"][0]


def test_it_tells_who_has_signed_in(mock: Mock) -> None:
    mock.know("ada", email="ada@example.org", email_verified=True, name="Ada", groups=["staff", "admins"])
    provider = Provider(configured(mock.issuer, "admins=alpha:admin"))
    assert asyncio.run(signed_in(provider, mock, "ada")) == Person(
        mock.issuer, "ada", "ada@example.org", "Ada", frozenset({"staff", "admins"})
    )


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_it_has_not_verified_is_none(mock: Mock, verified: object) -> None:
    mock.know("eve", email="eve@example.org", email_verified=verified)
    assert asyncio.run(signed_in(Provider(configured(mock.issuer)), mock, "eve")) == Person(
        mock.issuer, "eve", None, None, None
    )


def test_a_code_is_good_once(mock: Mock) -> None:
    async def twice() -> None:
        provider = Provider(configured(mock.issuer))
        request = await provider.authorization_request()
        code = await answered(mock, request, "ada")
        await provider.redeem(code, nonce=request.nonce, verifier=request.verifier)
        await provider.redeem(code, nonce=request.nonce, verifier=request.verifier)

    with pytest.raises(SignInRefused) as refused:
        asyncio.run(twice())
    assert refused.value.cause == "oidc_code"


def test_an_answer_to_another_request_is_refused(mock: Mock) -> None:
    async def crossed() -> None:
        provider = Provider(configured(mock.issuer))
        theirs, ours = await provider.authorization_request(), await provider.authorization_request()
        code = await answered(mock, theirs, "eve")
        await provider.redeem(code, nonce=ours.nonce, verifier=theirs.verifier)

    with pytest.raises(SignInRefused) as refused:
        asyncio.run(crossed())
    assert refused.value.cause == "id_token_nonce"


def test_a_token_that_has_expired_is_refused() -> None:
    with running_mock("--token-max-age", "-120") as mock, pytest.raises(SignInRefused) as refused:
        asyncio.run(signed_in(Provider(configured(mock.issuer)), mock, "ada"))
    assert refused.value.cause == "id_token_expired"
