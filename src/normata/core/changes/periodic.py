"""Periodic work of the service, besides requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from normata.core.log import logger
from normata.errors import Unavailable


async def repeat(work: Callable[[], Awaitable[object]], *, pause: Callable[[], float], failure: str) -> NoReturn:
    """Run ``work`` after each ``pause`` (seconds), until cancelled.

    If the database cannot be reached, the next round does it. Any other exception is logged as ``failure``.
    """
    while True:
        await asyncio.sleep(pause())
        try:
            await work()
        except Unavailable:
            continue
        except Exception:  # whatever went wrong, the next round may succeed
            with suppress(OSError, ValueError):  # the task must go on without a log
                logger.exception(failure)
