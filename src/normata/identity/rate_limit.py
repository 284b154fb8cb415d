"""How many requests a minute a token may make."""

from __future__ import annotations

import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter


class RateLimit:
    """A fixed window of a minute for each token, kept in the process; 0 is no limit.

    Each process counts for itself: the limit guards it against a client that runs wild, it is no quota to bill by.
    """

    def __init__(self, per_minute: int) -> None:
        self._item = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._limiter = FixedWindowRateLimiter(MemoryStorage()) if per_minute else None

    def seconds_to_wait(self, token_id: str) -> int:
        """0 where the token may go on, and the request is counted; else the seconds until it may."""
        if self._item is None or self._limiter is None or self._limiter.hit(self._item, token_id):
            return 0
        reset = self._limiter.get_window_stats(self._item, token_id).reset_time
        return max(1, math.ceil(reset - time.time()))
