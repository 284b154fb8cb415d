"""Addresses that users may have the service connect to: public ones, and those in networks of the operator's list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL = 2_000  # characters
_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*", re.IGNORECASE)
# The resolver of the system takes such names for IPv4 addresses in decimal, octal or hexadecimal.
_ENDS_IN_NUMBER = re.compile(r"(\A|\.)(0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
# Whatever else there is, such as digits after a bracket, each program takes for another host or port.
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(:[0-9]*)?", re.IGNORECASE)
_PORTS = frozenset({80, 443})
_FIRST_FREE_PORT = 1_024  # below are mail servers and others that obey lines of text

# Of the registries of special-purpose addresses (RFC 6890), with multicast and what is reserved.
_NOT_PUBLIC_V4 = tuple(
    ip_network(one)
    for one in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
# All public addresses of IPv6. So NAT64 (64:ff9b::/96), addresses that contain one of IPv4, local ones and multicast
# are none of them, and what will be assigned to other purposes neither.
_PUBLIC_V6 = ip_network("2000::/3")
_TRANSLATED = ip_network("64:ff9b::/96")  # NAT64
# Teredo and other protocols, documentation, and 6to4.
_NOT_PUBLIC_V6 = tuple(ip_network(one) for one in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


def networks_of(setting: str) -> tuple[Network, ...]:
    """The networks in the value of a setting, which are separated by commas."""
    return tuple(ip_network(one) for one in setting.split(",")) if setting else ()


def is_allowed(address: Address, networks: Sequence[Network], *, is_encrypted: bool = True) -> bool:
    """Whether a user may have the service connect to ``address``; without encryption only within ``networks``.

    If it leads to an address of IPv4, that one must be allowed, too: who lists the network of a translator has not
    listed all private networks behind it.
    """
    if not _is_in(address, networks):
        return is_encrypted and is_public(address)
    inner = _inner(address)
    return inner is None or is_allowed(inner, networks, is_encrypted=is_encrypted)


def is_public(address: Address) -> bool:
    """Whether an address is one of the Internet's, and leads to no other address."""
    if isinstance(address, IPv4Address):
        return not _is_in(address, _NOT_PUBLIC_V4)
    return address in _PUBLIC_V6 and address.scope_id is None and not _is_in(address, _NOT_PUBLIC_V6)


def _inner(address: Address) -> Address | None:
    """The address of IPv4 that one of IPv6 leads to; null if it leads to none."""
    if isinstance(address, IPv6Address) and address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped if isinstance(address, IPv6Address) else None


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def url_fault(url: str, networks: Sequence[Network]) -> str | None:
    """What is wrong with a URL that a user enters, as a phrase after its name; null if nothing is.

    Names are not resolved here: they may lead elsewhere when they are connected to.
    """
    parts = _parts(url)
    if parts is None:
        return "must be a URL like https://receiver.example.org/normata"
    if parts.scheme != "https" and not (parts.scheme == "http" and networks):
        return "must begin with https://"
    if "@" in parts.netloc:
        return "must have no user or password"
    if parts.fragment or url.endswith("#"):
        return "must have no fragment"
    port = parts.port
    if port is not None and port not in _PORTS and port < _FIRST_FREE_PORT:
        return f"must have the port 80 or 443, or one from {_FIRST_FREE_PORT} on"
    return _host_fault(parts, networks)


def _host_fault(parts: SplitResult, networks: Sequence[Network]) -> str | None:
    host = str(parts.hostname)
    is_host = _AUTHORITY.fullmatch(parts.netloc) is not None
    if is_host and (address := literal(host)) is not None:
        allowed = is_allowed(address, networks, is_encrypted=parts.scheme == "https")
        return None if allowed else "must be a public address, or one that the operator allows"
    if not is_host or ":" in host or not _NAME.fullmatch(host) or _ENDS_IN_NUMBER.search(host):
        return "must have the name of a host in ASCII, or an address in its usual form"
    return None


def literal(host: str) -> Address | None:
    """The address that a host is, in its usual form; null for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL with a host and a possible port; null if it is none."""
    if len(url) > LONGEST_URL or not re.fullmatch(r"[!-\[\]-~]+", url):
        return None
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_whole and parts.scheme in ("http", "https") else None


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL: what is no secret of it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"
