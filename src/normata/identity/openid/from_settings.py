"""Single sign-on, as the settings have it. Nothing here imports the client of a provider: that takes a while."""

from __future__ import annotations

from normata.identity.openid.configuration import Configuration, read_configuration
from normata.settings import Settings


def single_sign_on(settings: Settings) -> Configuration | None:
    """The provider that the settings name; null where they name none. Raises BadSetting.

    To be told at the start, once, and not by each worker.
    """
    return read_configuration(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        name=settings.oidc_name,
        groups_claim=settings.oidc_groups_claim,
        roles=settings.oidc_roles,
        public_url=settings.public_url,
    )
