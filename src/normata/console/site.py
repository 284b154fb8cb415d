"""The public address of the service, from one setting, for links, cookies and passkeys.

Nothing here comes from a request, because its sender can choose any Host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from urllib.parse import urlsplit

from normata.core.http.negotiation import without_port


@dataclass(frozen=True)
class Site:
    """The service as people see it, at ``public_url``."""

    public_url: str
    is_chosen: bool = False  # whether that is a setting, and not just the default

    @cached_property
    def host(self) -> str:
        """The name or address of the host, without a port."""
        return urlsplit(self.public_url).hostname or ""

    @cached_property
    def origin(self) -> str:
        """Scheme, host and port, as browsers name them (RFC 6454, section 6.2)."""
        parts = urlsplit(self.public_url)
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = None if parts.port == {"http": 80, "https": 443}[parts.scheme] else parts.port
        return f"{parts.scheme}://{host}" + (f":{port}" if port else "")

    def is_at(self, host: str) -> bool:
        """Whether a ``Host`` header names it. Its port counts for nothing: many proxies leave it out."""
        return without_port(host) == without_port(urlsplit(self.origin).netloc)

    @cached_property
    def is_encrypted(self) -> bool:
        """Whether browsers come over TLS."""
        return self.origin.startswith("https:")

    @cached_property
    def is_safe(self) -> bool:
        """Whether a cookie can travel there unread: over TLS, or within this machine."""
        return self.is_encrypted or self.host == "localhost" or (_is_address(self.host) and _is_loopback(self.host))

    def warnings(self) -> Iterator[str]:
        """What those who run the service should know, a sentence each."""
        if not self.is_safe:
            yield f"nobody can sign in: NORMATA_PUBLIC_URL is {self.public_url}, and cookies need https, or localhost"

    @cached_property
    def passkey_host(self) -> str | None:
        """The relying party of passkeys (WebAuthn, level 3, section 5.1.2); null if none is possible.

        That is a domain: browsers make no passkeys for an address.
        """
        return self.host if self.is_safe and not _is_address(self.host) else None

    def url(self, path: str) -> str:
        """The whole address of a path of the application."""
        return f"{self.public_url}{path}"

    def cookie_name(self, name: str) -> str:
        """The name under which a cookie travels.

        A browser takes one that begins with ``__Host-`` over TLS only, and from this host alone, so that nobody on the
        way, and no other host of the domain, can set one.
        """
        return f"__Host-{name}" if self.is_encrypted else name

    def cookie(self, name: str, value: str, *, max_age: int) -> str:
        """A ``Set-Cookie`` header; with a ``max_age`` of 0 the browser forgets the cookie.

        Its path is ``/`` also behind a prefix: ``__Host-`` needs that.
        """
        secure = "; Secure" if self.is_encrypted else ""
        return f"{self.cookie_name(name)}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return ip_address(host).is_loopback
