"""Which processor a thread runs on. On Linux a program can ask, and choose; elsewhere nothing happens here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

_getcpu: Callable[[], int] | None = None
with suppress(OSError, AttributeError):
    _getcpu = ctypes.CDLL(None).sched_getcpu


def current_processor() -> int | None:
    """The number of the processor that runs this thread; null where that cannot be known."""
    number = -1 if _getcpu is None else _getcpu()
    return None if number < 0 else number


def stay_on(processor: int) -> None:
    """Have this thread alone run on a processor from now on, if that is allowed."""
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, {processor})
