"""Marks: the largest signed checkpoint of each log, next to the key. They show that a database is an older one.

Restoring an old copy of the database removes its newest events, and the rest is consistent. So the marks must not be in
the database. A log whose database lacks its mark was rolled back: nothing of it is signed until an event, signed with
the key, accepts that.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from sqlalchemy import bindparam, func, select

from normata.core.changes.difference import canonical
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.schema.table import sql_table
from normata.errors import CommandError
from normata.events.content import ACCEPT_ROLLBACK, ACCEPTED, SIGNATURE, values_of
from normata.events.keys import (
    BadNote,
    KeyUnusable,
    Note,
    Signer,
    has_signed,
    origin_of,
    owner_of,
    read_note,
    require_signed,
)
from normata.events.merkle import Checkpoint
from normata.events.model import AuditEvent, EventCheckpoint
from normata.events.private_files import written_beside
from normata.events.sealing import UnsoundLog, named


class NotRolledBack(CommandError):
    """The log has everything that was signed."""


class Marks:
    """The marks next to a key, a file for each log, in the folder with the key's name and ``.marks`` after it.

    Processes that share the key's folder share its marks. A mark is a signed note, so that nobody without the key can
    make one.
    """

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self.folder = Path(f"{signer.path}.marks")

    def of(self, owner: str) -> Note | None:
        """The mark of a log; null if nothing of it was signed. Raises KeyUnusable."""
        return self._read(self._file(origin_of(owner)))

    def all(self) -> list[tuple[str, Note]]:
        """Every log that has a mark, and its mark. Raises KeyUnusable."""
        try:
            files = sorted(self.folder.glob("*.note"))
        except OSError as error:
            raise KeyUnusable(f"{self.folder} cannot be read: {error.strerror or error}") from error
        marks = [mark for file in files if (mark := self._read(file)) is not None]
        return sorted((owner_of(mark.origin), mark) for mark in marks)

    def store(self, owner: str, note: str, *, instead: bool) -> None:
        """Store a note, unless a larger one exists; with ``instead`` always.

        Raises KeyUnusable.
        """
        file, size = self._file(origin_of(owner)), read_note(note).size
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with self._locked():
                known = self._read(file)
                if instead or known is None or known.size < size:
                    with written_beside(file, note.encode()) as part:
                        part.replace(file)
        except OSError as error:
            raise KeyUnusable(
                f"{self.folder}: the mark of a log cannot be stored: {error.strerror or error}"
            ) from error

    def warnings(self) -> Iterator[str]:
        """Why marks cannot be stored, a sentence."""
        there = self.folder if self.folder.exists() else self.folder.absolute().parent
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            yield f"{self.folder} cannot be written: an older database will not be noticed"

    def clear(self) -> None:
        """Remove all marks, for the demo's database when it is created again."""
        for file in self.folder.glob("*.note"):
            file.unlink(missing_ok=True)

    def _file(self, origin: str) -> Path:
        return self.folder / f"{sha256(origin.encode()).hexdigest()}.note"  # an id may be too long for a file name

    def _read(self, file: Path) -> Note | None:
        try:
            note = read_note(file.read_text("utf-8"))
            require_signed(note, self._signer.verifier(owner_of(note.origin)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, BadNote) as error:
            raise KeyUnusable(
                f"{file} is not the mark of a log, signed with the key of the events ({error}); if that key is new,"
                " remove the folder"
            ) from None
        if file != self._file(note.origin):
            raise KeyUnusable(f"{file} is the mark of another log, {note.origin}")
        return note

    @contextmanager
    def _locked(self) -> Iterator[None]:
        handle = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def sign(transaction: Transaction, signer: Signer, checkpoint: Checkpoint, mark: Note | None) -> str:
    """The signed note of a log's last checkpoint, which is stored as its mark.

    ``mark`` was read before the transaction began, so that the transaction sees all its events. Raises UnsoundLog if
    the database is older, and KeyUnusable.
    """
    owner = checkpoint.organization_id
    is_old = False
    if mark is not None and not _has(transaction, owner, mark):
        if not _is_accepted(transaction, signer, owner, mark):
            raise UnsoundLog(_sentence(transaction, owner, mark))
        is_old = True
    note = signer.note(checkpoint)
    if mark is None or is_old or checkpoint.size > mark.size:
        with suppress(KeyUnusable):  # a warning reports it
            Marks(signer).store(owner, note, instead=is_old)
    return note


def rollbacks(transaction: Transaction, signer: Signer, marks: Sequence[tuple[str, Note]]) -> Iterator[str]:
    """The logs of which the database is older than the mark, a sentence each. Raises KeyUnusable."""
    transaction.extend(TenantScope(readable=tuple(owner for owner, _ in marks)))
    for owner, mark in marks:
        if not _has(transaction, owner, mark) and not _is_accepted(transaction, signer, owner, mark):
            yield _sentence(transaction, owner, mark)


def accept(unit: UnitOfWork, signer: Signer, owner: str, *, is_known: bool, reason: str) -> Note:
    """Record in an event why the database is older than the mark of a log, and return that mark.

    The event is in that log, or in the operator's if the organization is not known any more. Raises NotRolledBack and
    KeyUnusable.
    """
    mark = Marks(signer).of(owner)
    if mark is None or _has(unit, owner, mark) or _is_accepted(unit, signer, owner, mark):
        raise NotRolledBack(f"the log of {named(owner)} has all that was signed of it; nothing was changed")
    accepted = [mark.origin, mark.size, mark.root]
    counts = {ACCEPTED: accepted, SIGNATURE: signer.signature(owner, _text(accepted))}
    unit.publish(
        Change(ACCEPT_ROLLBACK, AuditEvent, (owner or None) if is_known else None, counts=counts, reason=reason)
    )
    return mark


def _has(transaction: Transaction, owner: str, mark: Note) -> bool:
    if not mark.size:
        return True
    return transaction.scalar(_ROOT, {"owner": owner, "size": mark.size}) == mark.root


def _is_accepted(transaction: Transaction, signer: Signer, owner: str, mark: Note) -> bool:
    """Whether an event, signed with the key, accepts that the database lacks just this mark."""
    accepted = [mark.origin, mark.size, mark.root]
    for body in transaction.scalars(_ACCEPTANCES):
        counts = values_of(body)["counts"] if body else {}
        signature = str(counts.get(SIGNATURE))
        if counts.get(ACCEPTED) == accepted and has_signed(signer.verifier(owner), _text(accepted), signature):
            return True
    return False


def _text(accepted: Sequence[object]) -> str:
    """The signed text. The second line of a checkpoint is a number, so the two cannot be confused."""
    return f"{accepted[0]}\nrollback\n{canonical(accepted)}\n"


def _sentence(transaction: Transaction, owner: str, mark: Note) -> str:
    size = transaction.scalar(_SIZE, {"owner": owner}) or 0
    found = f"has {size} events" if size < mark.size else "was rewritten since"
    who = owner or "--operator"
    return (
        f"the database is older than what was signed: the log of {named(owner)} had {mark.size} events, and {found};"
        f" if that is right, run `normata events accept-rollback {who} --reason TEXT`"
    )


_EVENT, _CHECKPOINT = sql_table(AuditEvent), sql_table(EventCheckpoint)
_ROOT = select(_CHECKPOINT.c.root).where(
    _CHECKPOINT.c.organization_id == bindparam("owner"), _CHECKPOINT.c.size == bindparam("size")
)
_SIZE = select(func.max(_CHECKPOINT.c.size)).where(_CHECKPOINT.c.organization_id == bindparam("owner"))
_ACCEPTANCES = select(_EVENT.c.body).where(_EVENT.c.action == ACCEPT_ROLLBACK)
