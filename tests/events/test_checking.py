"""Checking with several processes, and from the last verified checkpoint on."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from normata.cli import check as checkup
from normata.cli import workers
from normata.cli.check import Findings
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.http.metrics import Metrics
from normata.events import contents, verified
from normata.events.keys import Signer
from normata.events.sealer import Sealer
from normata.events.verified import NotVerified
from normata.records.kinds import Label
from normata.settings import Settings
from tests import mostly_sqlite
from tests.databases import change, on_both, on_sqlite, tamper
from tests.events import tampered
from tests.events.tampered import COUNT, Log
from tests.world import ALPHA

database_url, shared_url, log = mostly_sqlite.database_url, mostly_sqlite.shared_url, tampered.log

Steps = list[tuple[str, int, int]]


def whole(log: Log, url: str, steps: Steps | None = None) -> Findings:
    """What a whole check finds, which is then stored where it finds nothing."""
    steps = [] if steps is None else steps
    found = checkup.look_at_everything(
        log.database, Settings(database_url=url), log.signer, lambda *step: steps.append(step)
    )
    if not found.faults:
        verified.write(log.signer, found.verified())
    return found


def quick(log: Log, url: str) -> Findings:
    """What a quick check finds, which is then stored where it finds nothing."""
    since = verified.read(log.signer)
    found = checkup.look_quickly(log.database, Settings(database_url=url), log.signer, since, lambda *_: None)
    if not found.faults:
        verified.write(log.signer, found.verified())
    return found


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few events be worth several processes, and parts be small."""
    monkeypatch.setattr(checkup, "_MANY", 0)
    monkeypatch.setattr(contents, "_AT_ONCE", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.mark.long
@pytest.mark.usefixtures("several")
@on_both
def test_several_processes_find_what_one_finds(log: Log, database_url: str) -> None:
    log.empty(1)
    tamper(
        log.database,
        f"UPDATE audit_event SET action = 'torch' WHERE id = '{log.ids[3]}'",
        f"DELETE FROM audit_event WHERE id = '{log.ids[4]}'",
    )
    steps: Steps = []
    found = whole(log, database_url, steps)
    assert [next(i for i in log.ids if i in fault) for fault in found.faults] == [log.ids[n] for n in (1, 3, 4)]
    assert {step for step, *_ in steps} >= {"Pages and references", "Coverage", "Seals", "Events"}
    assert ("Events", COUNT, COUNT) in steps
    assert ("Seals", COUNT, COUNT) in steps
    assert found.faults == log.check()
    log.erase(1, signer=log.signer)
    assert len(log.check()) == 2


@pytest.mark.usefixtures("several")
def test_one_processor_needs_no_other_process(log: Log, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(workers, "ProcessPoolExecutor", None)
    assert whole(log, database_url).faults == []


@on_both
def test_a_quick_check_begins_at_the_last_verified_checkpoint(log: Log, database_url: str) -> None:
    assert whole(log, database_url).looked_at == COUNT
    log.add("later")
    found = quick(log, database_url)
    assert (found.faults, found.looked_at) == ([], 1)
    assert found.since[ALPHA].known.size == COUNT
    assert quick(log, database_url).looked_at == 0, "the next one begins where this one ended"
    # What was verified before is not looked at: that is what a whole check is for.
    tamper(log.database, f"UPDATE audit_event SET action = 'torch' WHERE id = '{log.ids[2]}'")
    assert quick(log, database_url).faults == []
    assert whole(log, database_url).faults != []


def test_the_last_whole_check_is_remembered_through_quick_ones(log: Log, database_url: str) -> None:
    whole(log, database_url)
    first = verified.read(log.signer)[ALPHA]
    log.add("later")
    quick(log, database_url)
    second = verified.read(log.signer)[ALPHA]
    assert second.whole_at == first.whole_at
    assert second.known.size == first.known.size + 1


LATER: dict[str, tuple[str, str]] = {
    "an event": ("UPDATE audit_event SET action = 'torch' WHERE entity_id = 'later'", "was changed"),
    "an event that is gone": ("DELETE FROM audit_event WHERE entity_id = 'later'", "is missing"),
    "the end of the log": (f"DELETE FROM event_checkpoint WHERE size >= {COUNT}", "were verified before"),
    "a checkpoint": (f"UPDATE event_checkpoint SET root = '{'0' * 64}' WHERE size = {COUNT}", "verified before"),
    "an inserted event": (
        (
            "INSERT INTO audit_event (id, at, action, entity_type, request_id)"
            " VALUES ('forged', '2026-01-01T00:00:00.000Z', 'update', 'Label', '')"
        ),
        "",
    ),
}


@pytest.mark.parametrize("case", LATER)
@on_both
def test_a_quick_check_finds_what_was_changed_since(log: Log, database_url: str, case: str) -> None:
    statement, sentence = LATER[case]
    whole(log, database_url)
    log.add("later")
    tamper(log.database, statement)
    if case == "an inserted event":
        tamper(log.database, "DELETE FROM unsealed_event WHERE event_id = 'forged'")
        sentence = "events were inserted or removed by hand"
    faults = quick(log, database_url).faults
    assert any(sentence in fault for fault in faults), faults


@pytest.mark.parametrize("what", ["size", "time", "key"])
def test_what_was_verified_is_signed(log: Log, database_url: str, what: str, tmp_path: Path) -> None:
    whole(log, database_url)
    path = verified.path_of(log.signer)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    signer = log.signer
    text = path.read_text("utf-8")
    if what == "key":
        signer = Signer(tmp_path / "other")
        verified.path_of(signer).write_text(text, "utf-8")
    else:
        note = json.loads(text)[ALPHA]
        other = note.replace(f"\n{COUNT}\n", "\n3\n") if what == "size" else note.replace("whole 2", "whole 3")
        assert other != note
        path.write_text(json.dumps({ALPHA: other}), "utf-8")
    with pytest.raises(NotVerified, match="is not what a check with this key has written"):
        verified.read(signer)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', '{"a": "b"}', "\xff"])
def test_a_file_that_is_damaged_is_said_to_be(tmp_path: Path, content: str) -> None:
    signer = Signer(tmp_path / "key")
    assert verified.read(signer) == {}
    verified.path_of(signer).write_bytes(content.encode("latin-1"))
    with pytest.raises(NotVerified):
        verified.read(signer)


def test_a_log_that_was_never_verified_is_looked_at_from_its_first_event(log: Log, database_url: str) -> None:
    found = quick(log, database_url)
    assert (found.faults, found.looked_at) == ([], COUNT)


@on_sqlite
def test_a_leaf_without_a_hash_is_named(log: Log) -> None:
    tamper(log.database, f"UPDATE event_leaf SET hash = 'none' WHERE event_id = '{log.ids[2]}'")
    assert any("has no hash" in fault for fault in log.check())


def test_failures_of_sealing_are_counted(log: Log) -> None:
    """A log that is not sound, and a key that cannot be used."""
    metrics = Metrics()
    sealer = Sealer(log.database, Signer(Path("/nowhere/key")), metrics.sealing_failed)
    tamper(log.database, f"UPDATE event_checkpoint SET root = '{'0' * 64}' WHERE size = {COUNT}")

    def work(unit: UnitOfWork) -> None:
        unit.publish(Change("touch", Label, ALPHA, "later", {"id": "later", "name": "x"}))
        unit.publish(Change("touch", Label, None, "later", {"id": "later", "name": "x"}))

    change(log.database, work)

    async def rounds() -> None:
        while await sealer.round():
            pass
        await sealer._log_checkpoints(float("inf"))

    asyncio.run(rounds())
    exposed = metrics.exposition().decode()
    assert 'normata_sealing_failures_total{reason="unsound"} 1.0' in exposed
    assert 'normata_sealing_failures_total{reason="key"} 1.0' in exposed
    assert 'normata_sealing_failures_total{reason="unavailable"} 0.0' in exposed
