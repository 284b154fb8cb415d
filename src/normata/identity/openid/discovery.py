"""The provider's metadata (OpenID Connect Discovery 1.0), and the keys that it signs with."""

from __future__ import annotations

from typing import Annotated, Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, KeySet, RSAKey
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from normata.identity.openid.client import ProviderClient
from normata.identity.openid.configuration import Configuration, is_safe_address
from normata.identity.openid.errors import ProviderFailed

_LEAST_RSA_BITS = 2_048  # RFC 7518, section 3.3


def _safe(url: str) -> str:
    if not is_safe_address(url):
        raise ValueError("must be an https:// address")
    return url


_Endpoint = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_safe)]


class Metadata(BaseModel):
    """The metadata that Normata uses, with the standard's names and defaults."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    issuer: str
    authorization_endpoint: _Endpoint
    token_endpoint: _Endpoint
    jwks_uri: _Endpoint
    userinfo_endpoint: _Endpoint | None = None
    scopes_supported: tuple[str, ...] = ()
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False  # RFC 9207

    def authentication(self, configuration: Configuration) -> str:
        """How the client authenticates at the token endpoint. Raises ProviderFailed."""
        if not configuration.client_secret:
            return "none"
        for method in ("client_secret_basic", "client_secret_post"):
            if method in self.token_endpoint_auth_methods_supported:
                return method
        raise ProviderFailed("client_authentication", "The sign-in service takes no client secret.")


async def fetch_metadata(configuration: Configuration) -> Metadata:
    """The provider's metadata. Raises ProviderFailed, ProviderUnreachable."""
    async with ProviderClient() as client:
        document = await client.json(configuration.issuer.rstrip("/") + "/.well-known/openid-configuration")
    try:
        metadata = Metadata.model_validate(document)
    except ValidationError as error:
        raise ProviderFailed(f"metadata_{error.errors()[0]['loc'][0]}") from error
    if metadata.issuer != configuration.issuer:
        raise ProviderFailed("metadata_issuer", "The sign-in service names itself otherwise than the settings do.")
    return metadata


async def fetch_keys(metadata: Metadata) -> KeySet:
    """The provider's public keys for signatures. Raises ProviderFailed, ProviderUnreachable."""
    async with ProviderClient() as client:
        document = await client.json(metadata.jwks_uri)
    entries = document.get("keys")
    keys: list[Key] = [key for entry in entries if (key := _key(entry))] if isinstance(entries, list) else []
    if not keys:
        raise ProviderFailed("no_keys")
    return KeySet(keys)


def _key(entry: Any) -> RSAKey | ECKey | None:
    """A key that can verify signatures; null for other values. An unreadable key does not affect the others."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    public = {name: value for name, value in entry.items() if name in _PUBLIC}
    try:
        if entry.get("kty") == "RSA":
            # Checked before the import, because the library only warns. The modulus is base64, with six bits a
            # character.
            if len(str(entry.get("n"))) * 6 < _LEAST_RSA_BITS:
                return None
            return RSAKey.import_key(public)
        return ECKey.import_key(public) if entry.get("kty") == "EC" else None
    except (JoseError, ValueError, TypeError, KeyError):
        return None


# The members of a public key (RFC 7517 and 7518). A private part, or `key_ops` that contradict `use`, must not make it
# unusable.
_PUBLIC = frozenset({"kty", "use", "alg", "kid", "n", "e", "crv", "x", "y"})
