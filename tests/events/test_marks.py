"""What was signed is remembered beside the key, so that an older database is noticed until somebody accepts it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from normata.events.keys import KeyUnusable, Note, Signer, read_note
from normata.events.marks import Marks, NotRolledBack, accept, rollbacks, sign
from normata.events.merkle import Checkpoint
from normata.events.sealing import UnsoundLog, last_checkpoint, seal_all_now
from tests import mostly_sqlite
from tests.databases import change, on_both, tamper
from tests.events import tampered
from tests.events.tampered import COUNT, Log
from tests.world import ALPHA

database_url, shared_url, log = mostly_sqlite.database_url, mostly_sqlite.shared_url, tampered.log


def signed(log: Log, owner: str = ALPHA) -> Note:
    """The newest checkpoint, signed as the service signs it."""
    mark = Marks(log.signer).of(owner)
    return read_note(
        log.database.read_now(
            lambda transaction: sign(transaction, log.signer, last_checkpoint(transaction, owner), mark)
        )
    )


def told(log: Log) -> list[str]:
    """What the start of the service and `normata check` say."""
    marks = Marks(log.signer).all()
    return log.database.read_now(lambda transaction: list(rollbacks(transaction, log.signer, marks)))


def roll_back(log: Log, number: int) -> None:
    """Take the last events away, with all that proves them: what an older copy of the database would look like."""
    ids = ", ".join(f"'{one}'" for one in log.ids[number:])
    tamper(
        log.database,
        f"DELETE FROM audit_event WHERE id IN ({ids})",
        f"DELETE FROM event_leaf WHERE organization_id = '{ALPHA}' AND number >= {number}",
        f"DELETE FROM event_checkpoint WHERE organization_id = '{ALPHA}' AND size > {number}",
    )


def accept_now(log: Log, signer: Signer | None = None) -> None:
    change(
        log.database,
        lambda unit: accept(unit, signer or log.signer, ALPHA, is_known=True, reason="A backup was restored."),
    )
    seal_all_now(log.database)


@on_both
def test_an_older_database_says_so_until_that_is_accepted(log: Log) -> None:
    assert signed(log).size == COUNT
    assert told(log) == []
    roll_back(log, COUNT - 2)
    assert log.check() == [], "the database by itself cannot know"
    [sentence] = told(log)
    assert f"the log of organization {ALPHA} had {COUNT} events, and has {COUNT - 2} events" in sentence
    assert f"normata events accept-rollback {ALPHA}" in sentence
    with pytest.raises(UnsoundLog, match="older than what was signed"):
        signed(log)
    accept_now(log)
    assert told(log) == []
    assert log.check() == []
    note = signed(log)  # which is the mark from now on
    assert (note.size, told(log)) == (COUNT - 1, [])
    with pytest.raises(NotRolledBack):
        accept_now(log)


@on_both
def test_a_database_that_has_grown_again_says_so_as_well(log: Log) -> None:
    signed(log)
    roll_back(log, COUNT - 2)
    for number in range(4):
        log.add(f"new-{number}")
    [sentence] = told(log)
    assert f"had {COUNT} events, and was rewritten since" in sentence


def test_another_rollback_is_not_accepted_along(log: Log) -> None:
    signed(log)
    roll_back(log, COUNT - 2)
    accept_now(log)
    log.add("later")
    size = signed(log).size
    tamper(
        log.database,
        "DELETE FROM audit_event WHERE entity_id = 'later'",
        f"DELETE FROM event_leaf WHERE organization_id = '{ALPHA}' AND number = {size - 1}",
        f"DELETE FROM event_checkpoint WHERE organization_id = '{ALPHA}' AND size = {size}",
    )
    assert len(told(log)) == 1


@on_both
def test_nobody_without_the_key_accepts_it(log: Log, tmp_path: Path) -> None:
    signed(log)
    roll_back(log, COUNT - 1)
    forger = Signer(tmp_path / "forged")
    Marks(forger).store(ALPHA, forger.note(Checkpoint(ALPHA, COUNT, log.note.root)), instead=True)
    accept_now(log, forger)
    assert len(told(log)) == 1


def test_a_smaller_checkpoint_moves_no_mark(log: Log) -> None:
    old = log.signer.note(log.database.read_now(lambda transaction: last_checkpoint(transaction, ALPHA)))
    log.add("another")
    assert signed(log).size == COUNT + 1
    Marks(log.signer).store(ALPHA, old, instead=False)
    mark = Marks(log.signer).of(ALPHA)
    assert mark is not None
    assert mark.size == COUNT + 1


def test_a_mark_that_the_key_has_not_signed_is_told(log: Log, tmp_path: Path) -> None:
    signed(log)
    other = Signer(tmp_path / "other")
    shutil.copytree(Marks(log.signer).folder, Marks(other).folder)
    with pytest.raises(KeyUnusable, match="signed with the key of the events"):
        Marks(other).of(ALPHA)


def test_where_nothing_can_be_remembered_signing_goes_on_and_that_is_told(log: Log) -> None:
    Marks(log.signer).folder.write_text("a file, and no folder")
    assert signed(log).size == COUNT
    assert Marks(log.signer).of(ALPHA) is None
    [warning] = Marks(log.signer).warnings()
    assert "cannot be written" in warning
