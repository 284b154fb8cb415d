"""A provider, or somebody in its place, that forges one thing: nobody is signed in, and the cause is told."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import OctKey

from normata.identity.openid import exchange, kept
from normata.identity.openid.configuration import Configuration
from normata.identity.openid.errors import PersonRefused, ProviderFailed, ProviderUnreachable, Refused
from normata.identity.openid.provider import Person, Provider
from tests.identity.openid.conftest import configured
from tests.identity.openid.forging import SECRET, Forger, ec_key, rsa_key, unsigned

ADA = {"sub": "ada", "email": "ada@example.org", "email_verified": True}


@pytest.fixture
def forger(forger: Forger) -> Forger:
    """The provider, which knows a person."""
    forger.person = dict(ADA)
    return forger


async def attempt(provider: Provider, forger: Forger, *, verifier: str = "", code: str = "") -> Person:
    """Sign in once, with another verifier or code than the right one where that is given."""
    question = await provider.ask()
    back = parse_qs(urlsplit(forger.authorize(question.url)).query)
    return await provider.redeem(code or back["code"][0], nonce=question.nonce, verifier=verifier or question.verifier)


def signed_in(forger: Forger, configuration: Configuration | None = None) -> Person:
    """Who has signed in by a provider that nothing is known of yet."""
    return asyncio.run(attempt(Provider(configuration or configured(forger.issuer)), forger))


def test_nothing_forged_signs_in(forger: Forger) -> None:
    assert signed_in(forger) == Person(forger.issuer, "ada", "ada@example.org", None, None)


NOW = int(time.time())


@pytest.mark.parametrize(
    ("forged", "cause"),
    [
        ({"iss": "https://elsewhere.example"}, "id_token_iss"),
        ({"iss": None}, "id_token_iss"),
        ({"aud": "another"}, "id_token_aud"),
        ({"aud": ["another"]}, "id_token_aud"),
        ({"aud": None}, "id_token_aud"),
        ({"aud": ["normata", "another"]}, "id_token_azp"),
        ({"aud": ["normata", "another"], "azp": "another"}, "id_token_azp"),
        ({"azp": "another"}, "id_token_azp"),
        ({"nonce": "another"}, "id_token_nonce"),
        ({"nonce": None}, "id_token_nonce"),
        ({"nonce": ""}, "id_token_nonce"),
        ({"exp": NOW - 120}, "id_token_expired"),
        ({"exp": None}, "id_token_exp"),
        ({"exp": "never"}, "id_token_exp"),
        ({"exp": True}, "id_token_exp"),
        ({"iat": NOW + 3_600}, "id_token_iat"),
        ({"iat": None}, "id_token_iat"),
        ({"nbf": NOW + 3_600}, "id_token_nbf"),
        ({"at_hash": "AAAA"}, "id_token_at_hash"),
        ({"at_hash": ""}, "id_token_at_hash"),
        ({"sub": None}, "id_token_sub"),
        ({"sub": ""}, "id_token_sub"),
        ({"sub": 7}, "id_token_sub"),
        ({"sub": "s" * 256}, "id_token_sub"),
    ],
)
def test_a_forged_claim_is_refused(forger: Forger, forged: dict[str, Any], cause: str) -> None:
    forger.claims = forged
    with pytest.raises(Refused) as refused:
        signed_in(forger)
    assert refused.value.cause == cause


@pytest.mark.parametrize(
    "right",
    [
        {"aud": ["normata"]},
        {"aud": ["normata", "another"], "azp": "normata"},
        {"at_hash": None},
        {"exp": NOW - 5},  # within what clocks may differ
        {"iat": NOW + 30},
    ],
)
def test_claims_that_the_standard_allows_sign_in(forger: Forger, right: dict[str, Any]) -> None:
    forger.claims = right
    assert signed_in(forger).subject == "ada"


def other_key(forger: Forger) -> None:
    forger.key, forger.keys = rsa_key("second"), [rsa_key("first")]
    forger.header = {"kid": "first"}


def unknown_key(forger: Forger) -> None:
    forger.key = rsa_key("second")


def no_key_named(forger: Forger) -> None:
    forger.keys, forger.header = [rsa_key("first"), rsa_key("second")], {"kid": None}


def brought_key(forger: Forger) -> None:
    forger.metadata = {"id_token_signing_alg_values_supported": ["ES256"]}
    forger.key, forger.keys = ec_key("mine"), [ec_key("theirs")]
    forger.header = {"kid": "theirs", "jwk": ec_key("mine").as_dict(private=False)}


def address_of_a_key(forger: Forger) -> None:
    forger.key, forger.header = rsa_key("second"), {"kid": "first", "jku": f"{forger.issuer}/mine"}


def no_algorithm(forger: Forger) -> None:
    forger.sign, forger.header = unsigned, {"alg": "none"}


def no_algorithm_though_announced(forger: Forger) -> None:
    forger.metadata = {"id_token_signing_alg_values_supported": ["none", "HS256", "RS256"]}
    forger.sign, forger.header = unsigned, {"alg": "none"}


def signed_with_the_secret(forger: Forger) -> None:
    forger.metadata = {"id_token_signing_alg_values_supported": ["HS256", "RS256"]}
    forger.key, forger.header = OctKey.import_key(SECRET), {"alg": "HS256", "kid": "first"}


def signed_with_the_public_key(forger: Forger) -> None:
    def sign(header: dict[str, Any], claims: dict[str, Any]) -> str:
        signed = unsigned({**header, "alg": "HS256"}, claims).rstrip(".")
        made = hmac.digest(rsa_key("first").as_pem(private=False), signed.encode(), "sha256")
        return f"{signed}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"

    forger.metadata = {"id_token_signing_alg_values_supported": ["HS256", "RS256"]}
    forger.sign = sign


def not_announced(forger: Forger) -> None:
    forger.key, forger.keys = ec_key("curve"), [ec_key("curve")]


def critical(forger: Forger) -> None:
    forger.header = {"crit": ["https://example.org/unknown"], "https://example.org/unknown": 1}


def altered(forger: Forger) -> None:
    right = forger._sign

    def sign(header: dict[str, Any], claims: dict[str, Any]) -> str:
        theirs, ours = right(header, claims), right(header, {**claims, "sub": "eve"})
        return ".".join([theirs.split(".")[0], ours.split(".")[1], theirs.split(".")[2]])

    forger.sign = sign


def no_token(forger: Forger) -> None:
    forger.sign = lambda _header, _claims: "no.token"


def no_object(forger: Forger) -> None:
    forger.sign = lambda header, _claims: forger._sign(header, ["ada"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("forge", "cause"),
    [
        (other_key, "id_token_signature"),
        (unknown_key, "id_token_key"),
        (no_key_named, "id_token_key"),
        (brought_key, "id_token_signature"),
        (address_of_a_key, "id_token_signature"),
        (altered, "id_token_signature"),
        (no_algorithm, "id_token_algorithm"),
        (no_algorithm_though_announced, "id_token_algorithm"),
        (signed_with_the_secret, "id_token_algorithm"),
        (signed_with_the_public_key, "id_token_algorithm"),
        (not_announced, "id_token_algorithm"),
        (critical, "id_token_malformed"),
        (no_token, "id_token_malformed"),
        (no_object, "id_token_malformed"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_forged_signature_is_refused(forger: Forger, forge: Callable[[Forger], None], cause: str) -> None:
    forge(forger)
    with pytest.raises(Refused) as refused:
        signed_in(forger)
    assert refused.value.cause == cause


def test_keys_of_elliptic_curves_sign_where_they_are_announced(forger: Forger) -> None:
    not_announced(forger)
    forger.metadata = {"id_token_signing_alg_values_supported": ["RS256", "ES256"]}
    assert signed_in(forger).subject == "ada"


@pytest.mark.parametrize("forged", [{"verifier": "v" * 43}, {"code": "made-up"}], ids=["verifier", "code"])
def test_a_code_is_redeemed_by_its_own_verifier_only(forger: Forger, forged: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        asyncio.run(attempt(Provider(configured(forger.issuer)), forger, **forged))
    assert refused.value.cause == "code"


def test_a_wrong_client_secret_is_the_operators_matter(forger: Forger) -> None:
    with pytest.raises(ProviderFailed) as failed:
        signed_in(forger, configured(forger.issuer, client_secret="another"))
    assert failed.value.cause == "token_endpoint_invalid_client"


# --- Keys that change


def test_new_keys_are_fetched_when_a_token_names_one(forger: Forger, monkeypatch: pytest.MonkeyPatch) -> None:
    async def rotated() -> None:
        provider = Provider(configured(forger.issuer))
        await attempt(provider, forger)
        forger.key, forger.keys = rsa_key("second"), [rsa_key("second")]
        with pytest.raises(Refused):  # they were fetched just now: nobody can have them fetched again and again
            await attempt(provider, forger)
        assert forger.asked.count("/keys") == 1
        monkeypatch.setattr(kept, "PAUSE", 0.0)
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
    monkeypatch.setattr(exchange, "TIMEOUT", 0.1)
    forger.delay = 0.5
    with pytest.raises(ProviderUnreachable) as failed:
        signed_in(forger)
    assert failed.value.cause == "timeout"


def test_a_provider_that_is_not_there() -> None:
    with pytest.raises(ProviderUnreachable) as failed:
        asyncio.run(Provider(configured("http://127.0.0.1:9")).ask())
    assert failed.value.cause == "unreachable"


def test_many_at_once_cost_a_provider_that_is_down_one_request(forger: Forger) -> None:
    forger.answers["/.well-known/openid-configuration"] = 503, b""

    async def all_at_once() -> list[object]:
        provider = Provider(configured(forger.issuer))
        first = await asyncio.gather(*(provider.ask() for _ in range(20)), return_exceptions=True)
        return [*first, *await asyncio.gather(*(provider.ask() for _ in range(20)), return_exceptions=True)]

    assert {type(outcome) for outcome in asyncio.run(all_at_once())} == {ProviderUnreachable}
    assert forger.asked == ["/.well-known/openid-configuration"]


# --- The issuer beside the code (RFC 9207)


@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("named", [None, "right", "https://elsewhere.example"])
def test_the_issuer_beside_the_code(forger: Forger, announced: bool, named: str | None) -> None:
    forger.metadata = {"authorization_response_iss_parameter_supported": announced}
    provider = Provider(configured(forger.issuer))
    asked = provider.require_issuer(forger.issuer if named == "right" else named)
    if named == "right" or (named is None and not announced):
        asyncio.run(asked)
    else:
        with pytest.raises(Refused) as refused:
            asyncio.run(asked)
        assert refused.value.cause == "issuer"


# --- What the provider says of people


def test_what_the_token_does_not_tell_is_asked_for(forger: Forger) -> None:
    forger.person = {"sub": "ada"}
    forger.userinfo = {**ADA, "name": "Ada", "groups": ["staff"]}
    assert signed_in(forger, configured(forger.issuer, "staff=alpha:editor")) == Person(
        forger.issuer, "ada", "ada@example.org", "Ada", frozenset({"staff"})
    )


def test_what_is_asked_for_is_about_the_same_person(forger: Forger) -> None:
    forger.person = {"sub": "ada"}
    forger.userinfo = {**ADA, "sub": "eve"}
    with pytest.raises(Refused) as refused:
        signed_in(forger)
    assert refused.value.cause == "userinfo_sub"


def test_an_address_of_one_place_is_not_verified_by_another(forger: Forger) -> None:
    forger.person = {"sub": "ada", "email": "owner@example.org"}
    forger.userinfo = {"sub": "ada", "email_verified": True}
    assert signed_in(forger).email is None


@pytest.mark.parametrize("email", ["no address", "", 7, None, ["ada@example.org"], "a@b\x00", "a@" + "b" * 400])
def test_what_is_no_address_is_none(forger: Forger, email: object) -> None:
    forger.person = {"sub": "ada", "email": email, "email_verified": True}
    assert signed_in(forger).email is None


@pytest.mark.parametrize(
    ("told", "groups"),
    [
        ({"groups": ["staff", 7, None]}, {"staff"}),
        ({"groups": "staff"}, {"staff"}),
        ({"groups": {"staff": True}}, set()),
        ({"groups": []}, set()),
        ({}, set()),
    ],
)
def test_groups_as_providers_tell_them(forger: Forger, told: dict[str, Any], groups: set[str]) -> None:
    forger.person = {**ADA, **told}
    found = signed_in(forger, configured(forger.issuer, "staff=alpha:editor")).groups
    assert found is not None
    assert set(found) == groups


def test_groups_that_are_somewhere_else_are_not_taken_for_none(forger: Forger) -> None:
    forger.person = {**ADA, "_claim_names": {"groups": "src1"}}
    with pytest.raises(PersonRefused) as refused:
        signed_in(forger, configured(forger.issuer, "staff=alpha:editor"))
    assert refused.value.cause == "groups_elsewhere"


def test_groups_are_asked_for_where_the_provider_has_a_scope_for_them(forger: Forger) -> None:
    forger.metadata = {"scopes_supported": ["openid", "groups"]}

    def scopes(roles: str) -> list[str]:
        url = asyncio.run(Provider(configured(forger.issuer, roles)).ask()).url
        return parse_qs(urlsplit(url).query)["scope"][0].split()

    assert scopes("") == ["openid", "email", "profile"]
    assert scopes("staff=alpha:editor") == ["openid", "email", "profile", "groups"]


def test_a_public_client_and_one_that_posts_its_secret(forger: Forger) -> None:
    forger.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    seen: list[str] = []
    honest = forger.answer

    def answer(method: str, path: str, headers: Any, body: str) -> tuple[int, bytes]:
        seen.append(body)
        return honest(method, path, headers, body)

    forger.answer = answer  # type: ignore[method-assign]
    for settings in ({}, {"client_secret": ""}):
        with pytest.raises((ProviderFailed, Refused)):  # it wants Basic all the same
            signed_in(forger, configured(forger.issuer, **settings))
    posted = [parse_qs(body) for body in seen if body]
    assert [form.get("client_secret") for form in posted] == [[SECRET], None]
    assert [form["client_id"] for form in posted] == [["normata"], ["normata"]]
