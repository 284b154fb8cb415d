"""How many requests a minute a token may make, and how many bad tokens an address may send."""

from __future__ import annotations

import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter


class RateLimit:
    """A fixed window of a minute for each key, kept in the process; 0 a minute is no limit.

    Each process counts for itself: the limit guards it against a client that runs wild. It is no quota to bill by.
    """

    def __init__(self, per_minute: int) -> None:
        self._item = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._storage = MemoryStorage()
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._latest = 0.0  # the time of the request before

    def seconds_to_wait(self, key: str) -> int:
        """Count a request; 0 where it is within the limit, else the seconds until the next one may be."""
        if self._item is None:
            return 0
        moment = time.time()
        if moment < self._latest - 1:
            # The clock was set back, and every window would last until it gets there again.
            self._storage.reset()
        self._latest = moment
        if self._limiter.hit(self._item, key):
            return 0
        reset = self._limiter.get_window_stats(self._item, key).reset_time
        return max(1, math.ceil(reset - moment))
