"""The client of a provider: the authorization request, the exchange of the code, and the person who has signed in."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

import httpx2
from joserfc.util import urlsafe_b64encode
from pydantic import TypeAdapter, ValidationError

from normata.core.http.outgoing import trust
from normata.core.schema.fields import Name, VisibleEmail
from normata.identity.errors import SignInRefused
from normata.identity.openid import id_token
from normata.identity.openid.cache import CachedFetch
from normata.identity.openid.client import ProviderClient, json_object
from normata.identity.openid.configuration import Configuration
from normata.identity.openid.discovery import Metadata, fetch_keys, fetch_metadata
from normata.identity.openid.errors import ProviderFailed
from normata.identity.openid.person import Person


class AuthorizationRequest(NamedTuple):
    """The URL for the browser, and the values that the answer must match.

    The ``state`` comes back with the browser, the ``nonce`` in the ID token; the ``verifier`` (RFC 7636) redeems the
    code. Each is 256 random bits.
    """

    url: str
    state: str
    nonce: str
    verifier: str


class Provider:
    """The client of one provider, for all sign-ins of a process. It is made before requests are served."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        trust()  # load the certificates at the start, not during a request
        self._metadata = CachedFetch(lambda: fetch_metadata(configuration))
        self._keys = CachedFetch(self._fetch_keys)

    async def authorization_request(self) -> AuthorizationRequest:
        """A new request to sign in. Raises ProviderFailed, ProviderUnreachable."""
        metadata = await self._metadata.get()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        query = {
            "response_type": "code",
            "client_id": self.configuration.client_id,
            "redirect_uri": self.configuration.redirect_uri,
            "scope": " ".join(self._scopes(metadata)),
            "state": state,
            "nonce": nonce,
            "code_challenge": urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode(),
            "code_challenge_method": "S256",
        }
        # Keep a query that the endpoint already has (RFC 6749, section 3.1).
        separator = "&" if "?" in metadata.authorization_endpoint else "?"
        url = f"{metadata.authorization_endpoint}{separator}{urlencode(query)}"
        return AuthorizationRequest(url, state, nonce, verifier)

    async def require_issuer(self, named: str | None) -> None:
        """Raise SignInRefused if an answer names another issuer, or none although the provider must (RFC 9207)."""
        if named is None:
            metadata = await self._metadata.get()
            if not metadata.authorization_response_iss_parameter_supported:
                return
        if named != self.configuration.issuer:
            raise SignInRefused("oidc_issuer")

    async def redeem(self, code: str, *, nonce: str, verifier: str) -> Person:
        """The person who has signed in. Raises SignInRefused, ProviderFailed, ProviderUnreachable."""
        metadata = await self._metadata.get()
        async with ProviderClient() as client:
            access_token, token = await self._tokens(client, metadata, code, verifier)
            claims = await self._verified(metadata, token, nonce=nonce, access_token=access_token)
            more: Mapping[str, Any] = {}
            if metadata.userinfo_endpoint is not None and not self._is_enough(claims):
                more = await client.json(metadata.userinfo_endpoint, bearer=access_token)
                if more.get("sub") != claims["sub"]:  # OpenID Connect Core 1.0, section 5.3.2
                    raise SignInRefused("userinfo_sub")
        return Person(
            issuer=self.configuration.issuer,
            subject=claims["sub"],
            email=_verified_email(claims) or _verified_email(more),
            name=_valid(_NAME, claims.get("name") or more.get("name")),
            groups=self._groups(claims, more),
        )

    async def _fetch_keys(self) -> Any:
        return await fetch_keys(await self._metadata.get())

    async def _tokens(self, client: ProviderClient, metadata: Metadata, code: str, verifier: str) -> tuple[str, str]:
        """The access token and the ID token for a code (RFC 6749, section 4.1.3)."""
        client_id, client_secret = self.configuration.client_id, self.configuration.client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": self.configuration.redirect_uri,
        }
        authentication, auth = metadata.authentication(self.configuration), httpx2.Auth()
        if authentication == "client_secret_basic":
            # Both are form-encoded first (section 2.3.1).
            auth = httpx2.BasicAuth(quote_plus(client_id), quote_plus(client_secret))
        else:
            form["client_id"] = client_id
        if authentication == "client_secret_post":
            form["client_secret"] = client_secret
        response = await client.post(metadata.token_endpoint, data=form, auth=auth)
        return _read_tokens(response)

    async def _verified(self, metadata: Metadata, token: str, *, nonce: str, access_token: str) -> dict[str, Any]:
        """The ID token's claims; if it names an unknown key, the keys are fetched again."""
        for anew in (False, True):
            try:
                return id_token.verify(
                    token,
                    await self._keys.get(anew=anew),
                    algorithms=metadata.id_token_signing_alg_values_supported,
                    issuer=self.configuration.issuer,
                    client_id=self.configuration.client_id,
                    nonce=nonce,
                    access_token=access_token,
                )
            except id_token.UnknownKey:
                if anew:
                    raise
        raise AssertionError("it has returned or raised")

    def _scopes(self, metadata: Metadata) -> list[str]:
        claim = self.configuration.groups_claim
        # Some providers send groups only if a scope with the name of the claim is requested.
        wants_groups = self.configuration.grants and claim in metadata.scopes_supported
        return ["openid", "email", "profile", *([claim] if wants_groups else [])]

    def _is_enough(self, claims: Mapping[str, Any]) -> bool:
        """Whether the ID token has all needed claims, so that userinfo is not requested (see section 5.4)."""
        has_groups = not self.configuration.grants or self.configuration.groups_claim in claims
        return "email" in claims and "email_verified" in claims and has_groups

    def _groups(self, *sources: Mapping[str, Any]) -> frozenset[str] | None:
        if not self.configuration.grants:
            return None
        claim = self.configuration.groups_claim
        for source in sources:
            if claim in source:
                value = source[claim]
                return frozenset(
                    group for group in (value if isinstance(value, list) else [value]) if isinstance(group, str)
                )
        # Section 5.6.2: the claim is elsewhere. Treating it as missing would remove people's roles.
        if any(claim in (names if isinstance(names := source.get("_claim_names"), dict) else ()) for source in sources):
            raise SignInRefused("groups_elsewhere")
        return frozenset()


# The codes of RFC 6749, section 5.2. Nothing else of a provider's error gets into the log.
_CODES = ("invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope")


def _read_tokens(response: httpx2.Response) -> tuple[str, str]:
    """The access token and the ID token in an answer of the token endpoint. Raises SignInRefused, ProviderFailed."""
    try:
        document = json_object(response)
    except ProviderFailed as failure:
        raise ProviderFailed("token_endpoint") from failure
    error = document.get("error")
    if error == "invalid_grant":  # section 5.2
        raise SignInRefused("oidc_code")
    if error is not None or response.status_code != 200:
        raise ProviderFailed(f"token_endpoint_{error}" if error in _CODES else "token_endpoint")
    access_token, token, kind = (document.get(name) for name in ("access_token", "id_token", "token_type"))
    if not (isinstance(token, str) and isinstance(access_token, str) and str(kind).lower() == "bearer"):
        raise ProviderFailed("tokens")
    if not _ACCESS_TOKEN.fullmatch(access_token):
        raise ProviderFailed("tokens")
    return access_token, token


_ACCESS_TOKEN = re.compile(r"[\x21-\x7e]+")  # RFC 6750, section 2.1: it must fit into a header
_EMAIL: TypeAdapter[str] = TypeAdapter(VisibleEmail)
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def _verified_email(claims: Mapping[str, Any]) -> str | None:
    """The address that these claims say to be verified: both of the same source, and `true` and nothing like it."""
    return _valid(_EMAIL, claims.get("email")) if claims.get("email_verified") is True else None


def _valid(kind: TypeAdapter[str], value: Any) -> str | None:
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError:
        return None
