"""Sealing: each event gets one leaf, whatever order transactions commit in, and however many processes seal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.transaction import Transaction
from normata.events import sealing
from normata.events.checking import event_faults
from normata.events.content import sealed_text
from normata.events.merkle import Checkpoint, Frontier, leaf_hash
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent
from normata.events.sealing import seal, seal_all_now
from normata.records.kinds import Label
from normata.settings import Settings
from tests import stored, world
from tests.core.db.sessions import session
from tests.core.http.counting import counting
from tests.databases import change, open_url
from tests.served import Served, run_sql, served
from tests.world import ALPHA, BETA, record_id


class Sealing:
    """A process of the service that seals: with no more than its rights, on one event loop."""

    def __init__(self, url: str) -> None:
        self.database = open_database(Settings(database_url=url), serving=True)
        self._runner = asyncio.Runner()

    def seal(self) -> tuple[list[Checkpoint], bool]:
        """One round."""
        return self._runner.run(seal(self.database))

    def close(self) -> None:
        """Give everything back."""
        self._runner.run(self.database.aclose())
        self._runner.close()


@pytest.fixture
def serving(database_url: str) -> Iterator[Sealing]:
    """A process of the service."""
    with closing(Sealing(database_url)) as opened:
        yield opened


def touch(database: Database, *organizations: str, times: int = 1) -> None:
    """Have something happen in these organizations."""

    def work(unit: UnitOfWork) -> None:
        for organization in organizations:
            for number in range(times):
                unit.publish(Change("touch", Label, organization or None, f"label-{number}", {"id": f"label-{number}"}))

    change(database, work)


def sealed(database: Database) -> dict[str, list[str]]:
    """The events of each log, in the order of their leaves; the leaves and checkpoints must be right."""
    events = {event["id"]: type("Event", (), event) for event in stored.rows(database, AuditEvent)}
    everything = database.read_now(
        lambda transaction: [
            [row._asdict() for row in transaction.rows(select(*table.__table__.c))]
            for table in (EventLeaf, EventCheckpoint)
        ]
    )
    leaves: dict[str, list[str]] = {}
    frontiers: dict[str, Frontier] = {}
    roots = {(row["organization_id"], row["size"]): row["root"] for row in everything[1]}
    for row in sorted(everything[0], key=lambda row: (row["organization_id"], row["number"])):
        owner = row["organization_id"]
        frontier = frontiers.setdefault(owner, Frontier())
        assert row["number"] == frontier.size
        assert row["hash"] == leaf_hash(sealed_text(events[row["event_id"]]))
        frontier.append(row["hash"])
        assert roots.pop((owner, frontier.size), frontier.root) == frontier.root
        leaves.setdefault(owner, []).append(row["event_id"])
    assert roots == {}
    return leaves


def test_events_are_sealed_in_order_and_once(database: Database, serving: Sealing) -> None:
    """By the role of the service, in the log of their organization; those of none in the operator's."""
    logs: dict[str, list[str]] = {}
    for _ in range(3):
        touch(database, ALPHA, BETA, "", times=3)
        grown, is_more = serving.seal()
        assert [(one.organization_id, is_more) for one in grown] == [("", False), (ALPHA, False), (BETA, False)]
        for event in sorted(stored.rows(database, AuditEvent), key=lambda event: (event["at"], event["id"])):
            log = logs.setdefault(event["organization_id"] or "", [])
            if event["id"] not in log:
                log.append(event["id"])
    assert serving.seal() == ([], False)
    assert sealed(database) == logs
    assert database.read_now(lambda transaction: transaction.rows(select(UnsealedEvent.event_id))) == []
    assert database.read_now(lambda transaction: list(event_faults(transaction))) == []


def test_many_events_take_several_rounds(database: Database, serving: Sealing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_MOST", 10)
    monkeypatch.setattr(sealing, "_NOTED", sealing._NOTED.limit(10))
    touch(database, ALPHA, BETA, times=15)
    more = [serving.seal()[1] for _ in range(4)]
    assert more == [True, True, True, False]
    assert {owner: len(log) for owner, log in sealed(database).items()} == {ALPHA: 15, BETA: 15}


def test_what_a_round_does_depends_on_the_new_events_alone(
    database: Database, serving: Sealing, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for times in (1, 1, 200, 1):
        touch(database, ALPHA, times=times)
        with counting(serving.database, monkeypatch, besides_requests=True) as asked:
            serving.seal()
        counts.append((len(asked.statements), asked.rows))
    assert counts[1] == counts[3]
    assert counts[2][1] > 200


def test_a_round_that_came_second_leaves_it_to_the_first(database: Database) -> None:
    """Two processes have looked at the same moment."""
    touch(database, ALPHA, times=3)
    planned = [database.read_now(sealing.plan) for _ in range(2)]
    assert [database.write_now(partial(sealing.store, planned=one)) for one in planned] == [True, False]
    assert len(sealed(database)[ALPHA]) == 3


def test_what_another_process_has_left_is_sealed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes first, and has looked before the last event was there."""
    touch(database, ALPHA, times=3)
    others = [database.read_now(sealing.plan)]
    touch(database, ALPHA, BETA)
    write = database.write_now

    def write_second(work: Callable[[Transaction], Any]) -> Any:
        if others:
            assert write(partial(sealing.store, planned=others.pop()))
        return write(work)

    monkeypatch.setattr(database, "write_now", write_second)
    seal_all_now(database)
    assert {owner: len(log) for owner, log in sealed(database).items()} == {ALPHA: 4, BETA: 1}


def test_sealing_ends_beside_a_busy_service(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(database, ALPHA, times=3)
    write = database.write_now

    def write_and_touch(work: Callable[[Transaction], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(database, "write_now", write)
            touch(database, BETA)
        return write(work)

    monkeypatch.setattr(database, "write_now", write_and_touch)
    seal_all_now(database)
    assert len(sealed(database)[ALPHA]) == 3


def test_a_note_of_what_is_sealed_stops_nothing(database: Database) -> None:
    """Somebody has put it there."""
    touch(database, ALPHA)
    seal_all_now(database)
    (event_id,) = sealed(database)[ALPHA]
    run_sql(database, f"INSERT INTO unsealed_event (event_id, owner) VALUES ('{event_id}', '{ALPHA}')")
    touch(database, ALPHA)
    seal_all_now(database)
    assert len(sealed(database)[ALPHA]) == 2


def test_many_processes_seal_each_event_once(database: Database, database_url: str) -> None:
    async def together() -> None:
        databases = [open_database(Settings(database_url=database_url), serving=True) for _ in range(4)]
        try:
            for _ in range(5):
                await asyncio.to_thread(touch, database, ALPHA, BETA, times=5)
                await asyncio.gather(*(seal(one) for one in databases))
        finally:
            for one in databases:
                await one.aclose()

    asyncio.run(together())
    seal_all_now(database)
    assert {owner: len(log) for owner, log in sealed(database).items()} == {ALPHA: 25, BETA: 25}


def test_a_transaction_that_commits_late_is_not_missed(postgres_url: str) -> None:
    """Its event is older, by time and by id, than what has been sealed meanwhile."""
    insert = (
        "INSERT INTO audit_event (id, organization_id, at, action, entity_type, entity_id, request_id, body) VALUES"
        f" ('00-late', '{ALPHA}', '2026-01-01', 'touch', 'Label', 'late', '', '{{\"id\":\"00-late\"}}')"
    )
    with closing(open_url(postgres_url)) as database, session(postgres_url) as late:
        late.run("BEGIN", insert)
        touch(database, ALPHA, times=2)
        seal_all_now(database)
        before = sealed(database)[ALPHA]
        assert len(before) == 2
        late.run("COMMIT")
        seal_all_now(database)
        assert sealed(database)[ALPHA] == [*before, "00-late"]


def test_an_event_that_was_taken_back_is_not_sealed(postgres_url: str) -> None:
    with closing(open_url(postgres_url)) as database, session(postgres_url) as other:
        other.run(
            "BEGIN",
            "INSERT INTO audit_event (id, organization_id, at, action, entity_type, request_id) VALUES"
            f" ('x', '{ALPHA}', now(), 'touch', 'Label', '')",
            "ROLLBACK",
        )
        seal_all_now(database)
        assert sealed(database) == {}


def test_events_of_the_version_before_are_sealed_as_well(database: Database) -> None:
    """It knows neither bodies nor notes; the trigger does."""
    run_sql(
        database,
        "INSERT INTO audit_event (id, organization_id, at, action, entity_type, entity_id, user_id, token_id,"
        f" request_id) VALUES ('old', '{ALPHA}', '{world.EARLIER}', 'restore', 'Label', 'l', 'u', 't', 'r')",
    )
    seal_all_now(database)
    assert sealed(database) == {ALPHA: ["old"]}
    assert database.read_now(lambda transaction: list(event_faults(transaction))) == []


def test_the_server_seals_by_itself(service: Served) -> None:
    answer = service.client.post(f"/labels/{record_id(Label, 'archived')}/restore/", headers=service.bearer("editor"))
    assert answer.status_code == 200
    [event] = stored.events(service.database)

    for _ in range(100):
        if [event["id"]] == sealed(service.database).get(ALPHA):
            return
        time.sleep(0.05)
    raise AssertionError("the event has not been sealed within five seconds")


def test_what_is_left_is_sealed_at_the_end(database_url: str) -> None:
    with served(database_url) as service:
        service.client.post(f"/labels/{record_id(Label, 'archived')}/restore/", headers=service.bearer("editor"))
    with closing(open_url(database_url)) as database:
        logs: dict[str, Any] = sealed(database)
        assert len(logs[ALPHA]) == 1
