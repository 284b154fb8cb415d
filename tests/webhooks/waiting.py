"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(is_done: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is done. Raises AssertionError if it takes too long."""
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.02)
