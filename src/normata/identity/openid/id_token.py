"""Whether an ID token is the provider's, for us, for this sign-in, and for now (OpenID Connect Core 1.0, 3.1.3.7)."""

from __future__ import annotations

import hashlib
from typing import Any

from joserfc import jwt
from joserfc.errors import (
    BadSignatureError,
    ClaimError,
    ExpiredTokenError,
    InvalidClaimError,
    InvalidKeyIdError,
    JoseError,
    MissingAlgorithmError,
    MissingClaimError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64encode
from pydantic import TypeAdapter, ValidationError

from normata.core.schema.fields import Identifier
from normata.identity.errors import SignInRefused
from normata.identity.openid.errors import ProviderFailed

LEEWAY = 60  # seconds of allowed clock difference

# Signatures with key pairs. HS* would use the client's secret, and `none` has no signature.
ALGORITHMS = frozenset(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512))

_SUBJECT: TypeAdapter[str] = TypeAdapter(Identifier)


class UnknownKey(SignInRefused):
    """The token names an unknown key."""

    def __init__(self) -> None:
        super().__init__("id_token_key")


def verify(
    token: str,
    keys: KeySet,
    *,
    algorithms: tuple[str, ...],
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str,
) -> dict[str, Any]:
    """The claims of a valid ID token. ``algorithms`` are those that the provider announces.

    Raises UnknownKey, so that the caller can fetch newer keys, SignInRefused with the reason as its cause, and
    ProviderFailed if the provider announces no accepted algorithm.
    """
    acceptable = ALGORITHMS.intersection(algorithms)
    if not acceptable:
        raise ProviderFailed("no_algorithm", "The sign-in service signs in no way that is taken here.")
    try:
        registry = JWSRegistry(algorithms=acceptable, strict_check_header=False)
        decoded = jwt.decode(token, keys, registry=registry)
        claims = decoded.claims
        jwt.JWTClaimsRegistry(
            leeway=LEEWAY,
            iss={"essential": True, "value": issuer},
            sub={"essential": True},
            aud={"essential": True, "value": client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True},
        ).validate(claims)
        _require_same_sign_in(claims, client_id, nonce, _half_hash(access_token, decoded.header["alg"]))
        _SUBJECT.validate_python(claims["sub"])
    except InvalidKeyIdError as error:
        raise UnknownKey from error
    except (JoseError, ValidationError, ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise SignInRefused(_cause(error)) from error
    return claims


def _require_same_sign_in(claims: dict[str, Any], client_id: str, nonce: str, at_hash: str) -> None:
    """Check the claims that OpenID Connect adds to those of a JWT. Raises ClaimError."""
    # Strict equality, because the claims registry would also accept a list that contains the value.
    if claims["nonce"] != nonce:
        raise InvalidClaimError("nonce")
    if claims["aud"] not in (client_id, [client_id]) and "azp" not in claims:
        raise MissingClaimError("azp")
    if claims.get("azp", client_id) != client_id:
        raise InvalidClaimError("azp")
    if claims.get("at_hash", at_hash) != at_hash:
        raise InvalidClaimError("at_hash")
    # Not used, but a provider that gets these wrong cannot be trusted with the others.
    if not isinstance(claims.get("auth_time") or 0, int | float):
        raise InvalidClaimError("auth_time")
    if not isinstance(claims.get("amr") or [], list):
        raise InvalidClaimError("amr")


def _half_hash(access_token: str, algorithm: str) -> str:
    """The ``at_hash`` of an access token, for a signature by ``algorithm`` (section 3.1.3.6)."""
    digest = hashlib.new(f"sha{algorithm[2:]}", access_token.encode("ascii")).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).decode()


def _cause(error: Exception) -> str:
    match error:
        case ExpiredTokenError():
            return "id_token_expired"
        case ClaimError():
            return f"id_token_{error.claim.partition(',')[0]}"  # a claim of the standard, never one of the token
        case BadSignatureError():
            return "id_token_signature"
        case UnsupportedAlgorithmError() | MissingAlgorithmError():
            return "id_token_algorithm"
        case ValidationError():
            return "id_token_sub"
    return "id_token_malformed"
