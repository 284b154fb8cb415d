"""How many restores a second, beside the same statements without Normata."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing

import asyncpg

from benchmarks.scale import moment
from benchmarks.speed import processes
from benchmarks.speed.data import APPROVER, policy_id
from benchmarks.speed.figures import Measured, Sample
from benchmarks.speed.generators import Generator
from benchmarks.speed.processes import Server
from benchmarks.speed.rounds import Contender, Effort, measure, watched
from benchmarks.speed.statements import Statement, capture
from benchmarks.speed.stores import SQLite, Store

_LIVE = "archived_at IS NULL"


class NotRestored(Exception):
    """Fewer records are live than were said to be restored."""


def measure_restores(
    stores: Mapping[str, Store],
    policies: int,
    token: str,
    effort: Effort,
) -> dict[str, Measured]:
    """Normata's restores, and bare transactions, over each store."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            transaction = capture(store.url("small"), token, 0)
            server = stack.enter_context(processes.normata(store.url("small")))
            contenders[f"{prefix}-restore"] = _normata(store, server, policies, token, effort.generator)
            # Made beforehand: to put parameters together is no part of what is measured.
            prepared = [transaction.of(number) for number in range(policies)]
            contenders[f"{prefix}-statements"] = _bare(store, prepared, effort.generator.connections)
        for contender in contenders.values():
            contender.once(1)
        return measure(contenders, effort)


def archive_again(store: Store) -> None:
    """Set the records back, and take away what the restores have left behind."""
    store.run(
        "small",
        f"UPDATE policy SET archived_at = '{moment(1_500)}' WHERE {_LIVE}",  # noqa: S608 - ours
        "DELETE FROM audit_event",
        f"DELETE FROM notification WHERE user_id = '{APPROVER}'",  # noqa: S608 - ours,
    )
    store.settle("small")


def _normata(store: Store, server: Server, policies: int, token: str, generator: Generator) -> Contender:
    paths = [f"/policies/{policy_id(number)}/restore/" for number in range(policies)]

    def once(seconds: int) -> Sample:
        archive_again(store)
        sample = watched(server, store, lambda: generator.post(server, paths, token, seconds))
        # wrk hangs up on what is under way in the end, so there may be more.
        _require(store, round(sample.per_second * seconds * 0.9))
        return sample

    return Contender(f"Normata, {store.name}", once)


def _bare(store: Store, prepared: Sequence[Sequence[Statement]], connections: int) -> Contender:
    if isinstance(store, SQLite):
        path = store.path("small")
        label = "The same statements, one connection of sqlite3"

        def load(seconds: int) -> float:
            return _on_sqlite(str(path), iter(prepared), seconds)
    else:
        url = store.url("small")
        label = f"The same statements, {connections} connections of asyncpg"

        def load(seconds: int) -> float:
            return asyncio.run(_on_postgresql(url, iter(prepared), seconds, connections))

    def once(seconds: int) -> Sample:
        archive_again(store)
        per_second = load(seconds)
        _require(store, min(len(prepared), round(per_second * seconds * 0.9)))
        return Sample(per_second=per_second)

    return Contender(label, once)


def _require(store: Store, restored: int) -> None:
    live = store.count("small", "policy", _LIVE)
    if live < restored:
        raise NotRestored(f"{store.name}: {live} of {restored} policies are live")


def _on_sqlite(path: str, transactions: Iterator[Sequence[Statement]], seconds: int) -> float:
    """Transactions a second, one after the other, as durable as Normata's."""
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -16384"):
            connection.execute(f"PRAGMA {pragma}")

        done, started = 0, time.perf_counter()
        for statements in transactions:
            for text, parameters in statements:
                connection.execute(text, parameters).fetchall()
            done += 1
            if time.perf_counter() - started >= seconds:
                break
        return done / (time.perf_counter() - started)


async def _on_postgresql(
    url: str, transactions: Iterator[Sequence[Statement]], seconds: int, connections: int
) -> float:
    """Transactions a second over so many connections at once."""
    pool = [await asyncpg.connect(url) for _ in range(connections)]
    try:
        done, started = 0, time.perf_counter()

        async def one_after_the_other(connection: asyncpg.Connection[asyncpg.Record]) -> None:
            nonlocal done
            for statements in transactions:  # all take from the same
                for text, parameters in statements:
                    if parameters:
                        await connection.fetch(text, *parameters)
                    else:  # several in one, which cannot be prepared
                        await connection.execute(text)
                done += 1
                if time.perf_counter() - started >= seconds:
                    return

        await asyncio.gather(*map(one_after_the_other, pool))
        return done / (time.perf_counter() - started)
    finally:
        for connection in pool:
            await connection.close()
