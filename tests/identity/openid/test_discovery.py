"""The provider's metadata and keys: what is kept of them, and what of them cannot be used."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from normata.identity.errors import SignInRefused
from normata.identity.openid import cache, client
from normata.identity.openid.errors import ProviderFailed, ProviderUnreachable
from normata.identity.openid.provider import Provider
from tests.identity.openid.conftest import configured
from tests.identity.openid.forging import Forger, rsa_key
from tests.identity.openid.signing_in import attempt, signed_in

# --- Keys that change


def test_new_keys_are_fetched_when_a_token_names_one(forger: Forger, monkeypatch: pytest.MonkeyPatch) -> None:
    async def rotated() -> None:
        provider = Provider(configured(forger.issuer))
        await attempt(provider, forger)
        forger.key, forger.keys = rsa_key("second"), [rsa_key("second")]
        with pytest.raises(SignInRefused):  # they were fetched just now: nobody can have them fetched again and again
            await attempt(provider, forger)
        assert forger.asked.count("/keys") == 1
        monkeypatch.setattr(cache, "PAUSE", 0.0)
        await attempt(provider, forger)
        await attempt(provider, forger)
        assert forger.asked.count("/keys") == 2
        assert forger.asked.count("/.well-known/openid-configuration") == 1

    asyncio.run(rotated())


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "RSA", "kid": "first", "use": "enc", "n": "AQAB", "e": "AQAB"},
        {"kty": "RSA", "kid": "bad", "n": "!", "e": "AQAB"},
        {"kty": "RSA", "kid": "bad", "n": "A" * 400, "e": "AQAB"},
        {"kty": "EC", "kid": "bad", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "oct", "kid": "bad", "k": "c2VjcmV0"},
        {"kty": "AKP", "kid": "bad"},
        "nonsense",
    ],
)
def test_a_key_that_is_of_no_use_does_not_spoil_the_others(forger: Forger, entry: Any) -> None:
    forger.answers["/keys"] = 200, json.dumps({"keys": [entry, rsa_key("first").as_dict(private=False)]}).encode()
    assert signed_in(forger).subject == "ada"


# --- What the provider says of itself

_TOKENS = b'{"access_token": "opaque", "token_type": "Bearer", "id_token": "a.b.c"}'


@pytest.mark.parametrize(
    ("metadata", "cause"),
    [
        ({"issuer": "https://elsewhere.example"}, "metadata_issuer"),
        ({"issuer": None}, "metadata_issuer"),
        ({"token_endpoint": "http://elsewhere.example/token"}, "metadata_token_endpoint"),
        ({"jwks_uri": "file:///etc/passwd"}, "metadata_jwks_uri"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "metadata_authorization_endpoint"),
        ({"authorization_endpoint": "https://user@elsewhere.example/"}, "metadata_authorization_endpoint"),
        ({"id_token_signing_alg_values_supported": ["HS256"]}, "no_algorithm"),
        ({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}, "client_authentication"),
    ],
)
def test_metadata_that_cannot_be_used(forger: Forger, metadata: dict[str, Any], cause: str) -> None:
    forger.metadata = metadata
    with pytest.raises(ProviderFailed) as failed:
        signed_in(forger)
    assert failed.value.cause == cause


@pytest.mark.parametrize(
    ("path", "answer", "cause"),
    [
        ("/.well-known/openid-configuration", (404, b"{}"), "status_404"),
        ("/.well-known/openid-configuration", (302, b""), "status_302"),
        ("/.well-known/openid-configuration", (200, b"<html>"), "no_json"),
        ("/.well-known/openid-configuration", (200, b"[" * 100_000), "no_json"),
        ("/.well-known/openid-configuration", (200, b"[]"), "no_json"),
        ("/.well-known/openid-configuration", (503, b""), "status_503"),
        ("/keys", (200, b"{}"), "no_keys"),
        ("/keys", (200, b" " * 1_100_000), "too_large"),
        ("/token", (200, b"[]"), "token_endpoint"),
        ("/token", (200, b"<html>"), "token_endpoint"),
        ("/token", (200, b"{}"), "tokens"),
        ("/token", (200, b'{"error": {"a": 1}}'), "token_endpoint"),
        ("/token", (404, b"<html>"), "token_endpoint"),
        ("/token", (302, b"{}"), "token_endpoint"),
        ("/token", (400, _TOKENS), "token_endpoint"),
        ("/token", (400, b'{"error": "invalid_scope"}'), "token_endpoint_invalid_scope"),
        ("/token", (400, b'{"error": "Ada was here"}'), "token_endpoint"),
        ("/token", (200, _TOKENS.replace(b"Bearer", b"mac")), "tokens"),
        ("/token", (200, _TOKENS.replace(b"opaque", b"a\\nb")), "tokens"),
        ("/token", (200, _TOKENS.replace(b"opaque", "ä".encode())), "tokens"),
        ("/token", (500, b""), "status_500"),
        ("/userinfo", (200, b"a.b.c"), "no_json"),
    ],
)
def test_answers_that_cannot_be_used(forger: Forger, path: str, answer: tuple[int, bytes], cause: str) -> None:
    forger.answers[path] = answer
    forger.userinfo = {}
    forger.person = {"sub": "ada"}
    with pytest.raises(ProviderFailed) as failed:
        signed_in(forger)
    assert failed.value.cause == cause
    assert isinstance(failed.value, ProviderUnreachable) == (answer[0] >= 500)
    assert "/elsewhere" not in forger.asked


def test_a_provider_that_does_not_answer_is_given_up(forger: Forger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT", 0.1)
    forger.delay = 0.5
    with pytest.raises(ProviderUnreachable) as failed:
        signed_in(forger)
    assert failed.value.cause == "timeout"


def test_a_provider_that_is_not_there() -> None:
    with pytest.raises(ProviderUnreachable) as failed:
        asyncio.run(Provider(configured("http://127.0.0.1:9")).authorization_request())
    assert failed.value.cause == "unreachable"


def test_many_at_once_cost_a_provider_that_is_down_one_request(forger: Forger) -> None:
    forger.answers["/.well-known/openid-configuration"] = 503, b""

    async def all_at_once() -> list[object]:
        provider = Provider(configured(forger.issuer))
        first = await asyncio.gather(*(provider.authorization_request() for _ in range(20)), return_exceptions=True)
        return [
            *first,
            *await asyncio.gather(*(provider.authorization_request() for _ in range(20)), return_exceptions=True),
        ]

    assert {type(outcome) for outcome in asyncio.run(all_at_once())} == {ProviderUnreachable}
    assert forger.asked == ["/.well-known/openid-configuration"]
