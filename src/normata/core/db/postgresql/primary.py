"""The primary, found once: for a command, which has no heartbeat."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from normata.core.db.postgresql.errors import CONNECT_ERRORS, words
from normata.core.db.postgresql.hosts import Hosts
from normata.core.db.postgresql.standing import Standing, standing_of
from normata.errors import Unavailable


async def open_to_primary(hosts: Hosts) -> asyncpg.Connection[Any]:
    """A new connection to the primary among the hosts, or to the only host, whatever it is. Raises Unavailable.

    All are asked at once, so that one whose machine is gone takes its share of the time-out only.
    """
    if len(hosts.addresses) == 1:
        return await hosts.open(hosts.addresses[0], within=hosts.timeout)
    share = hosts.timeout / 2
    found = await asyncio.gather(*(_ask(hosts, address, share) for address in hosts.addresses), return_exceptions=True)
    answers = [answer for answer in found if not isinstance(answer, BaseException)]
    primary = max((answer for answer in answers if answer[1].is_primary), key=lambda one: one[1].rank, default=None)
    for connection, _ in answers:
        if primary is None or connection is not primary[0]:
            connection.terminate()
    if primary is not None:
        return primary[0]
    reasons = [error for error in found if isinstance(error, Exception)]
    unexpected = [error for error in reasons if not isinstance(error, Unavailable)]
    if unexpected:
        raise unexpected[0]
    raise Unavailable("; ".join(map(str, reasons)) if not answers else "no host of the database URL is a primary")


async def _ask(hosts: Hosts, address: str, within: float) -> tuple[asyncpg.Connection[Any], Standing]:
    connection = await hosts.open(address, within=within)
    try:
        return connection, await standing_of(connection, within=within)
    except CONNECT_ERRORS as error:
        with suppress(*CONNECT_ERRORS):
            connection.terminate()
        raise Unavailable(words(error)) from error
