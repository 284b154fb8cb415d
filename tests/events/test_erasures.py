"""Content of events that is gone: erased by right, or taken away by somebody with the database's password."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from normata.core.changes.unit_of_work import Change
from normata.events.content import ERASE, ERASED_EVENTS
from normata.events.erasures import sign_erasures, signed_counts
from normata.events.keys import Signer
from normata.events.model import AuditEvent
from normata.events.sealing import seal_all_now
from normata.events.verifying import verify
from normata.records.kinds import Label
from tests import mostly_sqlite, stored
from tests.databases import change, on_both
from tests.events import tampered
from tests.events.tampered import COUNT, Log
from tests.world import ALPHA, BETA

database_url, shared_url, log = mostly_sqlite.database_url, mostly_sqlite.shared_url, tampered.log


def test_content_can_go_while_its_leaf_stays(log: Log) -> None:
    """The hash proves what was there to whoever has it, and says nothing of it to others, for the salt has gone too."""
    log.empty(2)
    outcome = log.verify()
    assert (outcome.faults, outcome.proven, outcome.erased, outcome.erased_later) == ([], COUNT, [], [])
    assert outcome.lost == [
        f"the content of the event {log.ids[2]} (leaf 2) is missing, and no event records its erasure"
    ]
    [told] = log.check()
    assert log.ids[2] in told
    assert "lost its content, and no event records an erasure" in told


@pytest.mark.long
@on_both
def test_content_that_a_signed_event_tells_of_is_erased(log: Log) -> None:
    """But only what it tells of, and only of the same log."""
    log.erase(2, signer=log.signer)
    log.erase(3, signer=log.signer, owner=BETA)
    log.erase(3, signer=log.signer, action="touch")
    log.empty(2, 3)
    for is_kept_before in (True, False):
        outcome = log.verify()
        assert outcome.faults == []
        assert (outcome.erased_later if is_kept_before else outcome.erased) == [f"{log.ids[2]} (leaf 2)"]
        assert (outcome.erased if is_kept_before else outcome.erased_later) == []
        [lost] = outcome.lost
        assert f"{log.ids[3]} (leaf 3)" in lost
        [told] = log.check()
        assert log.ids[3] in told
        log.keep()


FORGED = {"by nobody": None, "with another key": "other"}


@pytest.mark.parametrize("is_sealed", [False, True], ids=["after the checkpoint", "before it"])
@pytest.mark.parametrize("case", FORGED)
@on_both
def test_an_erasure_that_the_key_has_not_signed_hides_nothing(
    log: Log, case: str, is_sealed: bool, tmp_path: Path
) -> None:
    """Whoever can write to the database can have it sealed, but not signed."""
    key = FORGED[case]
    log.erase(2, signer=None if key is None else Signer(tmp_path / key))
    log.empty(2)
    if is_sealed:
        log.keep()
    outcome = log.verify()
    assert (outcome.faults, outcome.erased, outcome.erased_later) == ([], [], [])
    for told in (outcome.lost, log.check()):
        assert len(told) == 1
        assert log.ids[2] in told[0]
        assert "says that it was erased, and is not signed with the key" in told[0]


def test_the_signature_of_one_erasure_is_not_that_of_another(log: Log) -> None:
    counts = signed_counts(log.signer, ALPHA, [log.ids[2]])
    forged = Change(ERASE, Label, ALPHA, counts=counts | {ERASED_EVENTS: [log.ids[3]]})
    elsewhere = Change(ERASE, Label, ALPHA, counts=signed_counts(log.signer, BETA, [log.ids[3]]))
    for one in (forged, elsewhere):
        change(log.database, lambda unit, one=one: unit.publish(one))  # type: ignore[misc]
    seal_all_now(log.database)
    log.empty(3)
    log.keep()
    for told in (log.verify().lost, log.check()):
        assert len(told) == 1
        assert "is not signed with the key" in told[0]


def test_without_a_key_the_checkpoint_proves_an_erasure_and_nothing_else_does(log: Log) -> None:
    log.erase(2, signer=log.signer)
    log.empty(2)
    outcome = verify(log.lines(), log.note)
    assert (outcome.erased, outcome.erased_later) == ([], [])
    [lost] = outcome.lost
    assert "after the checkpoint, which only --key can verify" in lost
    log.keep()
    outcome = verify(log.lines(), log.note)
    assert (outcome.erased, outcome.lost) == ([f"{log.ids[2]} (leaf 2)"], [])


def test_where_there_is_no_key_no_erasure_counts_and_none_is_made(log: Log, tmp_path: Path) -> None:
    log.erase(2, signer=log.signer)
    log.empty(2)
    log.signer = Signer(tmp_path / "none")
    [told] = log.check()
    assert "is not signed with the key" in told
    assert not (tmp_path / "none").exists()


def test_erasures_of_an_earlier_version_can_be_signed(log: Log) -> None:
    """What no event tells of stays lost, and what still has its content is none."""
    log.erase(1, 2, signer=None)
    log.empty(2, 3)
    assert len(log.check()) == 2
    signed = change(log.database, lambda unit: sign_erasures(unit, log.signer, "it was us"))
    seal_all_now(log.database)
    assert signed == {ALPHA: 1}
    [told] = log.check()
    assert log.ids[3] in told
    [event] = [event for event in stored.rows(log.database, AuditEvent) if "it was us" in event["body"]]
    assert json.loads(event["body"])["counts"][ERASED_EVENTS] == [log.ids[2]]
    assert not change(log.database, lambda unit: sign_erasures(unit, log.signer, "again"))
