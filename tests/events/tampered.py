"""A log with what was kept elsewhere before somebody tampered with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.events.checking import event_faults
from normata.events.content import ERASE, ERASED_EVENTS
from normata.events.erasures import signed_counts
from normata.events.exporting import export
from normata.events.keys import Note, Signer, read_note
from normata.events.model import AuditEvent
from normata.events.sealing import last_checkpoint, seal_all_now
from normata.events.verifying import Outcome, verify
from normata.records.kinds import Label
from tests import stored
from tests.databases import change, open_url, tamper
from tests.world import ALPHA

COUNT = 6


@dataclass
class Log:
    """The log of alpha, with what was kept elsewhere before somebody tampered with it."""

    database: Database
    ids: list[str]
    note: Note
    signer: Signer

    def check(self) -> list[str]:
        """What `normata check` says of events."""
        return self.database.read_now(lambda transaction: list(event_faults(transaction, self.signer)))

    def lines(self) -> list[str]:
        """What `normata events export` writes."""
        return self.database.read_now(lambda transaction: list(export(transaction, ALPHA)))

    def verify(self, lines: list[str] | None = None) -> Outcome:
        """What `normata events verify` says, with the checkpoint that was kept and the key."""
        return verify(self.lines() if lines is None else lines, self.note, [self.signer.verifier(ALPHA)])

    def keep(self) -> None:
        """Keep the newest checkpoint."""
        checkpoint = self.database.read_now(lambda transaction: last_checkpoint(transaction, ALPHA))
        self.note = read_note(self.signer.note(checkpoint))

    def erase(self, *numbers: int, signer: Signer | None, owner: str = ALPHA, action: str = ERASE) -> None:
        """Have an event say that these were erased, sealed at once: signed with a key, or by nobody."""
        ids = [self.ids[number] for number in numbers]
        counts = {ERASED_EVENTS: ids} if signer is None else signed_counts(signer, owner, ids)
        change(self.database, lambda unit: unit.publish(Change(action, Label, owner, counts=counts)))
        seal_all_now(self.database)

    def empty(self, *numbers: int) -> None:
        """Take the content of events away."""
        ids = ", ".join(f"'{self.ids[number]}'" for number in numbers)
        tamper(self.database, f"UPDATE audit_event SET body = '' WHERE id IN ({ids})")

    def add(self, name: str) -> None:
        """Have one more event, sealed at once, so that each has a checkpoint of its own."""

        def work(unit: UnitOfWork) -> None:
            unit.publish(Change("touch", Label, ALPHA, name, {"id": name, "name": "x"}))

        change(self.database, work)
        seal_all_now(self.database)


@pytest.fixture
def log(database_url: str, tmp_path: Path) -> Iterator[Log]:
    """A log with some events, all sealed."""
    with closing(open_url(database_url)) as database:
        log = Log(database, [], Note("", 0, "", "", {}), Signer(tmp_path / "key"))
        for number in range(COUNT):
            log.add(f"label-{number}")
        log.keep()
        by_record = {event["entity_id"]: event["id"] for event in stored.rows(database, AuditEvent)}
        log.ids = [by_record[f"label-{number}"] for number in range(COUNT)]
        yield log
