"""Somebody in the provider's place who forges one thing: nobody is signed in, and the cause is told."""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import OctKey

from normata.identity.errors import SignInRefused
from normata.identity.openid.errors import ProviderFailed
from normata.identity.openid.person import Person
from normata.identity.openid.provider import Provider
from tests.identity.openid.conftest import configured
from tests.identity.openid.forging import SECRET, Forger, ec_key, rsa_key, unsigned
from tests.identity.openid.signing_in import attempt, signed_in


def test_nothing_forged_signs_in(forger: Forger) -> None:
    assert signed_in(forger) == Person(forger.issuer, "ada", "ada@example.org", None, None)


class FromNow(int):
    """Seconds from when the token is made, which is long after the tests are collected."""

    def time(self) -> int:
        return int(time.time()) + self


def stated(claims: dict[str, Any]) -> dict[str, Any]:
    return {name: value.time() if isinstance(value, FromNow) else value for name, value in claims.items()}


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
        ({"azp": ""}, "id_token_azp"),
        ({"azp": ["normata"]}, "id_token_azp"),
        ({"nonce": "another"}, "id_token_nonce"),
        ({"nonce": None}, "id_token_nonce"),
        ({"nonce": ""}, "id_token_nonce"),
        ({"nonce": ["another"]}, "id_token_nonce"),
        ({"exp": FromNow(-120)}, "id_token_expired"),
        ({"exp": None}, "id_token_exp"),
        ({"exp": "never"}, "id_token_exp"),
        ({"exp": True}, "id_token_exp"),
        ({"iat": FromNow(3_600)}, "id_token_iat"),
        ({"iat": None}, "id_token_iat"),
        ({"nbf": FromNow(3_600)}, "id_token_nbf"),
        ({"at_hash": "AAAA"}, "id_token_at_hash"),
        ({"at_hash": ""}, "id_token_at_hash"),
        ({"at_hash": 7}, "id_token_at_hash"),
        ({"auth_time": "today"}, "id_token_auth_time"),
        ({"amr": "pwd"}, "id_token_amr"),
        ({"sub": None}, "id_token_sub"),
        ({"sub": ""}, "id_token_sub"),
        ({"sub": 7}, "id_token_sub"),
        ({"sub": "s" * 256}, "id_token_sub"),
    ],
)
def test_a_forged_claim_is_refused(forger: Forger, forged: dict[str, Any], cause: str) -> None:
    forger.claims = stated(forged)
    with pytest.raises(SignInRefused) as refused:
        signed_in(forger)
    assert refused.value.cause == cause


@pytest.mark.parametrize(
    "right",
    [
        {"aud": ["normata"]},
        {"aud": ["normata", "another"], "azp": "normata"},
        {"at_hash": None},
        {"exp": FromNow(-5)},  # within what clocks may differ
        {"iat": FromNow(30)},
    ],
)
def test_claims_that_the_standard_allows_sign_in(forger: Forger, right: dict[str, Any]) -> None:
    forger.claims = stated(right)
    assert signed_in(forger).subject == "ada"


def test_a_nonce_in_a_list_is_not_the_nonce(forger: Forger) -> None:
    sign = forger.signed
    forger.sign = lambda header, claims: sign(header, {**claims, "nonce": [claims["nonce"]]})
    with pytest.raises(SignInRefused) as refused:
        signed_in(forger)
    assert refused.value.cause == "id_token_nonce"


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
    right = forger.signed

    def sign(header: dict[str, Any], claims: dict[str, Any]) -> str:
        theirs, ours = right(header, claims), right(header, {**claims, "sub": "eve"})
        return ".".join([theirs.split(".")[0], ours.split(".")[1], theirs.split(".")[2]])

    forger.sign = sign


def no_token(forger: Forger) -> None:
    forger.sign = lambda _header, _claims: "no.token"


def no_object(forger: Forger) -> None:
    forger.sign = lambda header, _claims: forger.signed(header, ["ada"])  # type: ignore[arg-type]


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
    with pytest.raises(SignInRefused) as refused:
        signed_in(forger)
    assert refused.value.cause == cause


def test_keys_of_elliptic_curves_sign_where_they_are_announced(forger: Forger) -> None:
    not_announced(forger)
    forger.metadata = {"id_token_signing_alg_values_supported": ["RS256", "ES256"]}
    assert signed_in(forger).subject == "ada"


@pytest.mark.parametrize("forged", [{"verifier": "v" * 43}, {"code": "made-up"}], ids=["verifier", "code"])
def test_a_code_is_redeemed_by_its_own_verifier_only(forger: Forger, forged: dict[str, str]) -> None:
    with pytest.raises(SignInRefused) as refused:
        asyncio.run(attempt(Provider(configured(forger.issuer)), forger, **forged))
    assert refused.value.cause == "oidc_code"


def test_a_wrong_client_secret_is_the_operators_matter(forger: Forger) -> None:
    with pytest.raises(ProviderFailed) as failed:
        signed_in(forger, configured(forger.issuer, client_secret="another"))
    assert failed.value.cause == "token_endpoint_invalid_client"
