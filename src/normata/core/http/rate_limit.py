"""Rate limits: requests per minute by token or by address. Each process counts separately.

The answer reports the limit, in the fields of draft-ietf-httpapi-ratelimit-headers (11):

    RateLimit-Policy: "token";q=600;w=60
    RateLimit: "token";r=599;t=60
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from heapq import nlargest
from ipaddress import IPv6Address
from math import ceil
from time import monotonic

_MAX_KEYS = 20_000  # that are counted at the same time
_LONGEST_KEY = 255  # characters; a longer one is stored as its digest


class Limit:
    """At most ``quota`` requests in a window of some seconds, for each key; 0 is no limit.

    A window is fixed: it begins with the first counted request, and the quota is available again when it ends. Each of
    several ``workers`` allows its share of the quota, rounded up.
    """

    def __init__(self, name: str, quota: int, window: int = 60, *, workers: int = 1) -> None:
        self.quota = ceil(quota / workers)
        self._window = window
        self._policy = (b"ratelimit-policy", b'"%s";q=%d;w=%d' % (name.encode(), self.quota, window))
        self._header_format = b'"%s";r=%%d;t=%%d' % name.encode()
        self._counts: dict[str, tuple[float, int]] = {}  # by key: the end of its window, and its requests so far

    def seconds_to_wait(self, key: str, response_headers: list[tuple[bytes, bytes]] | None = None) -> int:
        """Count a request. Returns 0 if it is within the limit, else the whole seconds until the next one is allowed.

        The state of the limit is added to ``response_headers``.
        """
        quota = self.quota
        if not quota:
            return 0
        if len(key) > _LONGEST_KEY:
            key = sha256(key.encode(errors="surrogatepass")).hexdigest()
        now = monotonic()
        end, count = self._counts.get(key, (now, 0))
        if now >= end:
            end, count = now + self._window, 0
            if len(self._counts) >= _MAX_KEYS:
                self._forget(now)
        count += 1
        self._counts[key] = end, count
        seconds = ceil(end - now)
        if response_headers is not None:
            response_headers.append(self._policy)
            remaining = max(quota - count, 0)
            response_headers.append((b"ratelimit", self._header_format % (remaining, seconds)))
        return 0 if count <= quota else seconds

    def _forget(self, now: float) -> None:
        """Make room: remove expired windows, and then the keys with the fewest requests."""
        current = [entry for entry in self._counts.items() if now < entry[1][0]]
        self._counts = dict(nlargest(_MAX_KEYS // 2, current, key=lambda entry: entry[1][1]))


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """The network that counts as one address: for IPv6 the /64, which is what one customer has."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
