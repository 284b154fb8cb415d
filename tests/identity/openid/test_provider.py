"""What the provider tells of people, and how it is asked."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from normata.identity.errors import SignInRefused
from normata.identity.openid.errors import ProviderFailed
from normata.identity.openid.person import Person
from normata.identity.openid.provider import Provider
from tests.identity.openid.conftest import configured
from tests.identity.openid.forging import SECRET, Forger
from tests.identity.openid.signing_in import ADA, signed_in

# --- The way to the provider


def test_the_address_to_sign_in_at(forger: Forger) -> None:
    forger.metadata = {"authorization_endpoint": "https://id.example/authorize?tenant=a+b"}
    question = asyncio.run(Provider(configured(forger.issuer)).authorization_request())
    assert question.url.startswith("https://id.example/authorize?tenant=a+b&")
    digest = hashlib.sha256(question.verifier.encode()).digest()
    assert parse_qs(urlsplit(question.url).query) == {
        "tenant": ["a b"],
        "response_type": ["code"],
        "client_id": ["normata"],
        "redirect_uri": ["http://localhost:8000/sign-in/oidc/callback/"],
        "scope": ["openid email profile"],
        "state": [question.state],
        "nonce": [question.nonce],
        "code_challenge": [base64.urlsafe_b64encode(digest).rstrip(b"=").decode()],
        "code_challenge_method": ["S256"],
    }
    assert all(len(secret) == 43 for secret in (question.state, question.nonce, question.verifier))


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
        with pytest.raises(SignInRefused) as refused:
            asyncio.run(asked)
        assert refused.value.cause == "oidc_issuer"


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
    with pytest.raises(SignInRefused) as refused:
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
    with pytest.raises(SignInRefused) as refused:
        signed_in(forger, configured(forger.issuer, "staff=alpha:editor"))
    assert refused.value.cause == "groups_elsewhere"


def test_groups_are_asked_for_where_the_provider_has_a_scope_for_them(forger: Forger) -> None:
    forger.metadata = {"scopes_supported": ["openid", "groups"]}

    def scopes(roles: str) -> list[str]:
        url = asyncio.run(Provider(configured(forger.issuer, roles)).authorization_request()).url
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
        with pytest.raises((ProviderFailed, SignInRefused)):  # it wants Basic all the same
            signed_in(forger, configured(forger.issuer, **settings))
    posted = [parse_qs(body) for body in seen if body]
    assert [form.get("client_secret") for form in posted] == [[SECRET], None]
    assert [form["client_id"] for form in posted] == [["normata"], ["normata"]]
