"""Limits on how often something is done, by whom or from where; one count for all processes of the machine.

The answer says how a limit stands, in the fields of draft-ietf-httpapi-ratelimit-headers (11):

    RateLimit-Policy: "token";q=600;w=60
    RateLimit: "token";r=599;t=60
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address

from normata.core.http.counters import LONGEST_WINDOW, TICKS, Counters

_REMEMBERED = 10_000  # keys whose windows are known
_LONGEST_KEY = 255  # characters; of longer ones a digest is remembered
_MAX_QUOTA = 10_000_000


class Limit:
    """So many in a window of so many seconds, for each key; 0 is no limit.

    A window is fixed: it begins with the first that is counted, and who has used up the quota can go on when it ends.
    """

    def __init__(self, counters: Counters, name: str, quota: int, window: int = 60) -> None:
        if not (0 <= quota <= _MAX_QUOTA and 0 < window <= LONGEST_WINDOW):
            raise ValueError(f"{quota} in {window} seconds cannot be counted")
        self.quota = quota
        self._counters = counters
        self._name = name
        self._length = window * TICKS
        self._policy = (b"ratelimit-policy", b'"%s";q=%d;w=%d' % (name.encode(), quota, window))
        self._header_format = b'"%s";r=%%d;t=%%d' % name.encode()
        self._windows = counters.windows()

    def seconds_to_wait(self, key: str, marks: list[tuple[bytes, bytes]] | None = None) -> int:
        """Count one; 0 where it is within the limit, else the whole seconds until the next one may be.

        How the limit stands is added to ``marks``, the headers that the answer will have.
        """
        quota, windows = self.quota, self._windows
        if not quota:
            return 0
        if len(key) > _LONGEST_KEY:
            key = sha256(key.encode(errors="surrogatepass")).hexdigest()
        if len(windows) > _REMEMBERED:
            windows.clear()
        count, left = self._counters.count(windows, self._name, key, self._length)
        seconds = -(-left // TICKS)
        if marks is not None:
            marks.append(self._policy)
            marks.append((b"ratelimit", self._header_format % (quota - count if count < quota else 0, seconds)))
        return 0 if count <= quota else seconds


@lru_cache(maxsize=10_000)
def network_of(address: str) -> str:
    """What counts as one address: of IPv6 the /64, which is what one customer has, so that nobody has many."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
