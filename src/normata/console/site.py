"""The public address of the service, from one setting, for links, cookies and passkeys.

Nothing here comes from a request, because clients can send any ``Host``.
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
    """The address of the service as people see it, at ``public_url``."""

    public_url: str
    is_chosen: bool = False  # whether the setting is set

    @cached_property
    def host(self) -> str:
        """The host name or IP address, without the port."""
        return urlsplit(self.public_url).hostname or ""

    @cached_property
    def origin(self) -> str:
        """Scheme, host and port (RFC 6454, section 6.2)."""
        parts = urlsplit(self.public_url)
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = None if parts.port == {"http": 80, "https": 443}[parts.scheme] else parts.port
        return f"{parts.scheme}://{host}" + (f":{port}" if port else "")

    def is_at(self, host: str) -> bool:
        """Whether a ``Host`` header names this host. Its port is ignored, because many proxies omit it."""
        return without_port(host) == without_port(urlsplit(self.origin).netloc)

    @cached_property
    def is_encrypted(self) -> bool:
        """Whether browsers use TLS."""
        return self.origin.startswith("https:")

    @cached_property
    def is_safe(self) -> bool:
        """Whether nobody on the network can read cookies: with TLS, or on localhost."""
        return self.is_encrypted or self.host == "localhost" or (_is_address(self.host) and _is_loopback(self.host))

    def warnings(self) -> Iterator[str]:
        """Warnings for those who run the service, one sentence each."""
        if not self.is_safe:
            yield f"nobody can sign in: NORMATA_PUBLIC_URL is {self.public_url}, and cookies need https, or localhost"

    @cached_property
    def passkey_host(self) -> str | None:
        """The id of the relying party for passkeys (WebAuthn, level 3, section 5.1.2); null if there can be none.

        It must be a domain, because browsers make no passkeys for IP addresses.
        """
        return self.host if self.is_safe and not _is_address(self.host) else None

    def url(self, path: str) -> str:
        """The absolute URL of a path of the application."""
        return f"{self.public_url}{path}"

    def cookie_name(self, name: str, *, is_bound: bool = False) -> str:
        """The name that a cookie has in headers.

        With TLS it begins with ``__Host-``: browsers then accept the cookie only from this host and only over TLS, so
        that nobody on the network and no other host of the domain can set it. One that ``is_bound`` to a path begins
        with ``__Secure-``, which guards against the network alone.
        """
        prefix = "__Secure-" if is_bound else "__Host-"
        return f"{prefix}{name}" if self.is_encrypted else name

    def cookie(self, name: str, value: str, *, max_age: int, path: str = "/") -> str:
        """The ``Set-Cookie`` header of a cookie. A ``max_age`` of 0 deletes it.

        Unless it is bound to a ``path``, that is ``/`` even behind a prefix, because ``__Host-`` requires it.
        """
        secure = "; Secure" if self.is_encrypted else ""
        full_name = self.cookie_name(name, is_bound=path != "/")
        return f"{full_name}={value}; Path={path}; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return ip_address(host).is_loopback
