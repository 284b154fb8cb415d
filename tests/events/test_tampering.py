"""Somebody with the database's password changes, removes or inserts events: `check` and `verify` each say which."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.events import sealing
from normata.events.exporting import export
from normata.events.keys import Signer, read_note
from normata.events.merkle import leaf_hash
from normata.events.model import AuditEvent
from normata.events.sealing import UnsoundLog, last_checkpoint, seal_all_now
from normata.events.verifying import NoLog, verify
from normata.records.kinds import Label
from tests import mostly_sqlite, stored, world
from tests.databases import change, on_both, tamper
from tests.events import tampered
from tests.events.tampered import COUNT, Log
from tests.served import run_sql
from tests.world import ALPHA, BETA

database_url, shared_url, log = mostly_sqlite.database_url, mostly_sqlite.shared_url, tampered.log


@on_both
def test_what_nobody_has_touched_is_sound(log: Log) -> None:
    assert log.check() == []
    outcome = log.verify()
    assert (outcome.faults, outcome.proven, outcome.later, outcome.erased) == ([], COUNT, 0, [])


def test_what_came_later_is_not_proven_and_no_fault(log: Log) -> None:
    log.add("later")
    outcome = log.verify()
    assert (outcome.faults, outcome.proven, outcome.later) == ([], COUNT, 1)


Tamper = Callable[[Log], None]


def sql(template: str) -> Tamper:
    """Run SQL, in which {0} to {5} are the ids of the events."""
    return lambda log: tamper(log.database, *(part.format(*log.ids) for part in template.split(";")))


def change_body(log: Log) -> None:
    body = json.loads(stored.row(log.database, AuditEvent, log.ids[2])["body"])
    text = json.dumps(body | {"userId": "somebody-else"}, sort_keys=True, separators=(",", ":"))
    tamper(log.database, f"UPDATE audit_event SET body = '{text}' WHERE id = '{log.ids[2]}'".replace(":", "\\:"))


CHANGED: dict[str, tuple[Tamper, int]] = {
    "its content": (change_body, 2),
    "one character of it": (sql("UPDATE audit_event SET body = replace(body, 'touch', 'torch') WHERE id = '{3}'"), 3),
    "its content and its seal": (
        sql(
            "UPDATE audit_event SET body = replace(body, 'touch', 'torch') WHERE id = '{4}';"
            f"UPDATE event_leaf SET hash = '{leaf_hash('x')}' WHERE event_id = '{{4}}'"
        ),
        4,
    ),
    "the content of another": (
        sql("UPDATE audit_event SET body = (SELECT body FROM audit_event WHERE id = '{0}') WHERE id = '{1}'"),
        1,
    ),
}


@pytest.mark.parametrize("case", CHANGED)
@on_both
def test_a_changed_event_is_named(log: Log, case: str) -> None:
    tamper_with, number = CHANGED[case]
    tamper_with(log)
    for told in (log.check(), log.verify().faults):
        assert len(told) == 1
        assert log.ids[number] in told[0]
        assert "changed" in told[0]


def test_a_change_of_content_and_leaf_that_fit_each_other_is_named_by_the_checkpoints(log: Log) -> None:
    """Each event has its own here, so it is one event."""
    body = stored.row(log.database, AuditEvent, log.ids[3])["body"].replace('"x"', '"y"')
    tamper(
        log.database,
        f"UPDATE audit_event SET body = replace(body, '\"x\"', '\"y\"') WHERE id = '{log.ids[3]}'",
        f"UPDATE event_leaf SET hash = '{leaf_hash(body)}' WHERE event_id = '{log.ids[3]}'",
    )
    for told in (log.check(), log.verify().faults):
        assert len(told) == 1
        assert f"leaf 3 (the event {log.ids[3]})" in told[0]


def test_a_log_that_was_written_anew_as_a_whole_is_not_that_of_the_checkpoint(log: Log) -> None:
    """What `check` cannot find: that is what a checkpoint that is kept elsewhere is for."""
    tamper(log.database, "UPDATE audit_event SET body = replace(body, 'touch', 'torch')")
    run_sql(log.database, "DELETE FROM event_leaf", "DELETE FROM event_checkpoint")
    run_sql(log.database, "INSERT INTO unsealed_event SELECT id, coalesce(organization_id, '') FROM audit_event")
    tamper(log.database, "UPDATE audit_event SET action = 'torch'")
    seal_all_now(log.database)
    assert log.check() == []
    [told] = log.verify().faults
    assert "not those of the checkpoint" in told


@pytest.mark.parametrize(
    "column", ["action", "entity_type", "entity_id", "user_id", "token_id", "request_id", "at", "organization_id"]
)
@on_both
def test_a_changed_column_is_named(log: Log, column: str) -> None:
    """Lists are made from columns. The content is as it was, so the log is sound."""
    value = {"at": f"'{world.EARLIER}'", "organization_id": "'org-beta'"}.get(column, "'x'")
    tamper(log.database, f"UPDATE audit_event SET {column} = {value} WHERE id = '{log.ids[1]}'")
    [told] = log.check()
    assert log.ids[1] in told
    assert column in told
    assert log.verify().faults == []


REMOVED: dict[str, tuple[Tamper, int]] = {
    "the event": (sql("DELETE FROM audit_event WHERE id = '{2}'"), 2),
    "the last event": (sql("DELETE FROM audit_event WHERE id = '{5}'"), 5),
    "the event and its leaf": (
        sql("DELETE FROM audit_event WHERE id = '{2}';DELETE FROM event_leaf WHERE event_id = '{2}'"),
        2,
    ),
    "the last event and its leaf": (
        sql("DELETE FROM audit_event WHERE id = '{5}';DELETE FROM event_leaf WHERE event_id = '{5}'"),
        5,
    ),
}


@pytest.mark.parametrize("case", REMOVED)
@on_both
def test_a_removed_event_is_named(log: Log, case: str) -> None:
    """By its id while its leaf is there, else by its place."""
    tamper_with, number = REMOVED[case]
    tamper_with(log)
    for told in (log.check(), log.verify().faults):
        assert len(told) == 1
        assert "missing" in told[0]
        assert (f"leaf {number} is missing" if "leaf" in case else log.ids[number]) in told[0]


def test_the_end_of_a_log_that_was_cut_off_with_its_checkpoints_is_missing(log: Log) -> None:
    tamper(
        log.database,
        f"DELETE FROM audit_event WHERE id = '{log.ids[5]}'",
        f"DELETE FROM event_leaf WHERE event_id = '{log.ids[5]}'",
        f"DELETE FROM event_checkpoint WHERE organization_id = '{ALPHA}' AND size = 6",
    )
    assert log.check() == [], "the database by itself cannot know"
    [told] = log.verify().faults
    assert "leaf 5 is missing" in told


INSERT = (
    "INSERT INTO audit_event (id, organization_id, at, action, entity_type, entity_id, request_id, body)"
    f" VALUES ('forged', '{ALPHA}', '2026-01-01T00:00:00Z', 'touch', 'Label', 'x', '', '{{\"id\"\\:\"forged\"}}')"
)
LEAF = "INSERT INTO event_leaf VALUES ('{owner}', {number}, 'forged', '{hash}')"
INSERTED: dict[str, tuple[str, ...]] = {
    "that is not sealed": (INSERT,),
    "whose note was removed": (INSERT, "DELETE FROM unsealed_event"),
    "with a leaf": (
        INSERT,
        "DELETE FROM unsealed_event",
        LEAF.format(owner=ALPHA, number=COUNT, hash=leaf_hash('{"id":"forged"}')),
    ),
}


@pytest.mark.parametrize("at", ["2026-01-01", "2099-01-01"])
@pytest.mark.parametrize("whose", ["inserted", "written by the service"])
@on_both
def test_an_event_that_nothing_will_seal_is_named(log: Log, at: str, whose: str) -> None:
    """Whatever time it claims: its note was removed, or it never had one."""
    event_id = "forged"
    if whose == "inserted":
        time = f"{at}T00:00:00.000Z" if log.database.embedded else f"{at}T00:00:00Z"
        run_sql(log.database, INSERT.replace("2026-01-01T00:00:00Z", time))
    else:
        change(log.database, lambda unit: unit.publish(Change("touch", Label, ALPHA, "young", {"id": "young"})))
        [event] = stored.rows(log.database, AuditEvent, entity_id="young")
        event_id = event["id"]
    assert not any("nothing will seal it" in one for one in log.check())
    tamper(log.database, "DELETE FROM unsealed_event")
    [told] = log.check()
    assert f"the event {event_id} of organization {ALPHA} has no leaf, and nothing will seal it" in told
    [fault] = log.verify().faults
    assert event_id in fault


CHECKPOINTS = {
    "a frontier": ("UPDATE event_checkpoint SET frontier = replace(frontier, 'a', 'b') WHERE size = {size}", True),
    "a frontier of another size": ("UPDATE event_checkpoint SET frontier = '' WHERE size = {size}", True),
    "a frontier that is none": ("UPDATE event_checkpoint SET frontier = 'x' || frontier WHERE size = {size}", True),
    "its root": ("UPDATE event_checkpoint SET root = '0' WHERE size = {size}", True),
    "a leaf after it": (f"INSERT INTO event_leaf VALUES ('{ALPHA}', {COUNT}, 'forged', '0')", False),
}


@pytest.mark.parametrize("case", CHECKPOINTS)
@on_both
def test_nothing_is_added_to_what_was_changed(log: Log, case: str) -> None:
    """Nor signed. Other logs go on, and checking says what it is."""
    statement, is_checkpoint = CHECKPOINTS[case]
    tamper(log.database, statement.format(size=COUNT))
    sound = log.database.read_now(lambda transaction: last_checkpoint(transaction, BETA))
    for owner in (ALPHA, BETA):
        change(log.database, lambda unit, owner=owner: unit.publish(Change("touch", Label, owner, "x", {"id": "x"})))  # type: ignore[misc]
    [reason] = seal_all_now(log.database)
    assert f"organization {ALPHA}" in reason
    with pytest.raises(UnsoundLog):
        log.keep()
    assert log.database.read_now(lambda transaction: last_checkpoint(transaction, BETA)).size == sound.size + 1
    told = " ".join(log.check())
    assert ("its frontier is not that of its root" if is_checkpoint else "no checkpoint has it") in told


def test_an_older_frontier_is_looked_at_as_well(log: Log) -> None:
    tamper(log.database, f"UPDATE event_checkpoint SET frontier = '{leaf_hash('x')}' WHERE size = 2")
    [told] = log.check()
    assert "the checkpoint of size 2 was changed: its frontier is not that of its root" in told


@pytest.mark.parametrize("case", INSERTED)
@on_both
def test_an_inserted_event_is_named(log: Log, case: str) -> None:
    # SQLite has times as texts.
    run_sql(log.database, *(one.replace("00:00:00Z", "00:00:00.000Z") for one in INSERTED[case]))
    told = log.check()
    assert told
    assert all("forged" in one for one in told)
    assert "inserted" in told[0]
    outcome = log.verify()
    if case == "with a leaf":  # it comes after the checkpoint, which says nothing of it
        assert (outcome.faults, outcome.later) == ([], 1)
    else:
        [fault] = outcome.faults
        assert "forged" in fault


def test_an_event_that_was_inserted_in_between_is_named_by_the_file(log: Log) -> None:
    lines = log.lines()
    forged = json.dumps({"leaf": 2, "id": "forged", "hash": leaf_hash("x"), "event": "x"})
    [*_, first] = [number for number, line in enumerate(lines) if '"leaf":2' in line]
    told = log.verify([*lines[: first + 1], forged, *lines[first + 1 :]]).faults
    assert len(told) == 1
    assert "forged" in told[0]
    assert "inserted" in told[0]


def test_an_event_that_was_removed_before_it_was_sealed_is_named(log: Log) -> None:
    def work(unit: UnitOfWork) -> None:
        unit.publish(Change("touch", Label, ALPHA, "young", {"id": "young"}))

    change(log.database, work)
    [event] = stored.rows(log.database, AuditEvent, entity_id="young")
    assert log.check() == [], "it is on its way"
    tamper(log.database, f"DELETE FROM audit_event WHERE id = '{event['id']}'")
    [told] = log.check()
    assert event["id"] in told
    seal_all_now(log.database)
    log.add("another")
    assert log.check() == [told], "and the others are sealed all the same"


@on_both
def test_notes_that_somebody_added_keep_nothing_from_being_sealed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a round takes, before all others: of events that are sealed, of none, and of one for another log."""
    monkeypatch.setattr(sealing, "_NOTED", sealing._NOTED.limit(2))
    monkeypatch.setattr(sealing, "_MOST", 2)
    numbers = range(5)
    run_sql(
        log.database,
        *(f"INSERT INTO unsealed_event VALUES ('0-{number}', '{ALPHA}')" for number in numbers),
        *(f"INSERT INTO unsealed_event VALUES ('{one}', '{ALPHA}')" for one in log.ids),
        INSERT.replace("00:00:00Z", "00:00:00.000Z").replace("'forged'", "'1-forged'"),
        f"UPDATE unsealed_event SET owner = '{BETA}' WHERE event_id = '1-forged'",
    )
    log.add("honest")
    log.keep()
    assert log.note.size == COUNT + 1
    told = log.check()
    assert sum("and is sealed already: the note was inserted by hand" in one for one in told) == COUNT
    assert sum("is missing: it was removed before it was sealed" in one for one in told) == len(numbers)
    assert sum("1-forged" in one and "it is noted to be sealed for" in one for one in told) == 1


# --- Files


@pytest.mark.parametrize("line", ["", "nonsense", "[]", "{}", '{"leaf":"0","id":"x","hash":"y","event":"z"}'])
def test_a_line_that_no_export_writes_is_named(log: Log, line: str) -> None:
    told = log.verify([*log.lines(), line]).faults
    assert told == [f"line {len(log.lines()) + 1} is not one that an export writes"]


@pytest.mark.parametrize(
    "head", ["", "x", '{"format":"other"}', '{"format":"normata-events-1","origin":"normata/other"}']
)
def test_another_file_is_told(log: Log, head: str) -> None:
    with pytest.raises(NoLog):
        log.verify([head, *log.lines()[1:]])


def test_checkpoints_in_the_file_prove_nothing(log: Log) -> None:
    """Whoever may write them could write what they like: they only tell where to look."""
    without = [line for line in log.lines() if '"checkpoint"' not in line]
    wrong = [re.sub('"root":"....', '"root":"0000', line) for line in log.lines()]
    assert len(without) == len(wrong) - COUNT
    for lines in (without, wrong):
        assert log.verify(lines).faults == []


def test_the_empty_log_is_verified(database: Database, tmp_path: Path) -> None:
    checkpoint = database.read_now(lambda transaction: last_checkpoint(transaction, ALPHA))
    note = read_note(Signer(tmp_path / "key").note(checkpoint))
    lines = database.read_now(lambda transaction: list(export(transaction, ALPHA)))
    assert verify(lines, note).faults == []
