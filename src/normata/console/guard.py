"""Before a page is served: cookies must be safe on their way, and what changes something must come from our pages."""

from __future__ import annotations

from normata.console.site import Site
from normata.core.http.negotiation import Headers
from normata.identity.errors import SignInRefused

SAFE_METHODS = frozenset({"GET", "HEAD"})


def require_safe_site(site: Site) -> None:
    """Raise SignInRefused where whoever is on the way could read cookies: no page is served there."""
    if not site.is_safe:
        raise SignInRefused("not_encrypted")


def require_own_page(headers: Headers, site: Site) -> None:
    """Raise SignInRefused unless a request comes from a page of ours, or the person has typed the address.

    Every browser of today says so in ``Sec-Fetch-Site`` (W3C Fetch Metadata), which no page can set. Older ones, and
    all where neither TLS nor localhost is, send ``Origin`` with every POST; it has to be ours: that of the setting, or
    the host that the request was sent to. What sends neither is no browser with a form of ours.
    """
    fetched = headers.get(b"sec-fetch-site")
    if fetched is not None:
        if fetched not in (b"same-origin", b"none"):
            raise SignInRefused("cross_site")
        return
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin:
        raise SignInRefused("origin_missing")
    scheme, _, host = origin.partition("://")
    is_sent_there = bool(host) and host == headers.get(b"host", b"").decode("latin-1").lower()
    if origin != site.origin and not (scheme in ("http", "https") and is_sent_there):
        raise SignInRefused("cross_site")
