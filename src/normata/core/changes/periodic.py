"""Periodic work of the service, besides requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from normata.core.log import logger
from normata.errors import Unavailable

_LONGEST_PAUSE = 60.0  # seconds, after several failures in a row


async def repeat(work: Callable[[], Awaitable[object]], *, pause: Callable[[], float], failure: str) -> NoReturn:
    """Run ``work`` after each ``pause`` (seconds), until cancelled.

    If the database cannot be reached, the next round does it. Any other exception is logged as ``failure``, and each in
    a row doubles the pause, up to a minute: what fails for days, such as with a schema that is too old, must not fill
    the log.
    """
    failures = 0
    while True:
        usual = pause()
        await asyncio.sleep(max(usual, min(usual * (1 << min(failures, 20)), _LONGEST_PAUSE)))
        try:
            await work()
        except Unavailable:
            continue
        except Exception:  # whatever went wrong, the next round may succeed
            failures += 1
            with suppress(OSError, ValueError):  # the task must go on without a log
                logger.exception(failure)
        else:
            failures = 0
