"""The settings of single sign-on. Nothing here imports the client of a provider, which takes a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from normata.core.http.roles import ROLES, Role
from normata.errors import BadSetting
from normata.loopback import is_loopback
from normata.settings import Settings

CALLBACK = "/sign-in/oidc/callback/"

# The name of a group may contain any character, such as the equals signs and commas of a DN. So the end of an entry
# tells where it ends.
_ENTRY = re.compile(rf"\s*(?P<group>.+?)=(?P<organization>[^\s/:=,]+):(?P<role>{'|'.join(ROLES)})\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Grant:
    """The role in an organization (id or slug) that a provider's ``group`` gives."""

    group: str
    organization: str
    role: Role


@dataclass(frozen=True, slots=True)
class Configuration:
    """The provider, and Normata's account there. ``client_secret`` is empty for a public client (RFC 6749, 2.1).

    If it ``joins_by_groups``, people without an account become members by a group that gives a role.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect_uri: str
    name: str
    groups_claim: str
    grants: tuple[Grant, ...]
    joins_by_groups: bool = False


def read_configuration(
    *,
    issuer: str,
    client_id: str,
    client_secret: str,
    name: str,
    groups_claim: str,
    roles: str,
    public_url: str,
    join: str = "invitation",
) -> Configuration | None:
    """The configuration in the settings; null if they name no provider. Raises BadSetting."""
    if not issuer:
        for setting, value in (("CLIENT_ID", client_id), ("CLIENT_SECRET", client_secret), ("ROLES", roles)):
            if value:
                raise BadSetting(f"NORMATA_OIDC_{setting} is set, but NORMATA_OIDC_ISSUER is not")
        if join == "groups":
            raise BadSetting("NORMATA_OIDC_JOIN is groups, but NORMATA_OIDC_ISSUER is not set")
        return None
    if join == "groups" and not roles.strip():
        raise BadSetting("NORMATA_OIDC_JOIN is groups, but NORMATA_OIDC_ROLES names no group")
    if not is_safe_address(issuer) or "?" in issuer:
        raise BadSetting("NORMATA_OIDC_ISSUER is an https:// address without a query (http:// on a loopback address)")
    if not client_id:
        raise BadSetting("NORMATA_OIDC_ISSUER is set, but NORMATA_OIDC_CLIENT_ID is not")
    return Configuration(
        issuer=issuer,
        client_id=client_id,
        client_secret=client_secret,
        redirect_uri=public_url.rstrip("/") + CALLBACK,
        name=name or urlsplit(issuer).hostname or issuer,
        groups_claim=groups_claim,
        grants=tuple(_grants(roles)),
        joins_by_groups=join == "groups",
    )


def single_sign_on(settings: Settings) -> Configuration | None:
    """The provider that the settings name; null if they name none. Raises BadSetting.

    Called once at the start, so that not each worker reports a bad setting.
    """
    return read_configuration(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        name=settings.oidc_name,
        groups_claim=settings.oidc_groups_claim,
        roles=settings.oidc_roles,
        public_url=settings.public_url,
        join=settings.oidc_join,
    )


def is_safe_address(url: str) -> bool:
    """Whether secrets may be sent to this address: over TLS, or to this very machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc or parts.fragment or re.search(r"[\s\x00-\x20\x7f\\]", url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def _grants(roles: str) -> Iterator[Grant]:
    rest = roles.strip()
    while rest:
        entry = _ENTRY.match(rest)
        if entry is None:
            raise BadSetting(
                f"NORMATA_OIDC_ROLES is a list of group=organization:role, separated by commas, with a role of"
                f" {', '.join(ROLES)}; this is none: {rest[:100]}"
            )
        role = next(role for role in ROLES if role == entry["role"])
        yield Grant(entry["group"], entry["organization"], role)
        rest = rest[entry.end() :].strip()
