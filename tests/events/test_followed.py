"""A follower by number beside many writers and several sealers: it misses nothing, and sees each number once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.events.log import LogQuery, read_log
from normata.events.sealing import seal_all_now
from normata.records.kinds import Label
from tests.databases import change, on_both, open_url
from tests.world import ALPHA

WRITERS, SEALERS, TIMES, AT_ONCE = 8, 2, 6, 5


def _publish(unit: UnitOfWork, name: str, late: float) -> None:
    for _ in range(AT_ONCE):
        unit.publish(Change("touch", Label, ALPHA, name, {"id": name}))
    time.sleep(late)  # others commit meanwhile


def _write(url: str, number: int) -> None:
    chance = random.Random(number)  # noqa: S311 - no secret
    with closing(open_url(url)) as database:
        for time_ in range(TIMES):
            late = chance.choice((0.0, 0.0, 0.05))
            change(database, partial(_publish, name=f"{number}-{time_}", late=late))


def _seal(url: str, is_over: Callable[[], bool]) -> None:
    with closing(open_url(url)) as database:
        while not is_over():
            seal_all_now(database)


@on_both
def test_a_follower_misses_nothing(database_url: str) -> None:
    over = Event()
    seen: list[tuple[int, str]] = []
    with closing(open_url(database_url)) as database, ThreadPoolExecutor(WRITERS + SEALERS) as pool:
        query = LogQuery.model_validate({"organizationId": ALPHA, "limit": 7})
        writing = [pool.submit(_write, database_url, number) for number in range(WRITERS)]
        sealing = [pool.submit(_seal, database_url, over.is_set) for _ in range(SEALERS)]
        after, is_last = None, False
        while True:
            done = all(one.done() for one in writing)
            page = database.read_now(partial(read_log, query=query.model_copy(update={"after": after})))
            seen += [(one["number"], one["id"]) for one in page["items"]]
            after = page["next"]
            if page["items"]:
                is_last = False
            elif is_last:
                break
            elif done:
                seal_all_now(database)
                is_last = True  # what was written is sealed, so that one more empty page is the end
        over.set()
        for one in (*writing, *sealing):
            one.result()
    assert [number for number, _ in seen] == list(range(len(seen)))
    assert len({event_id for _, event_id in seen}) == len(seen) == page["size"]
    assert page["size"] >= WRITERS * TIMES * AT_ONCE
