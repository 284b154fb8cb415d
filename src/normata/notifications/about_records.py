"""Notifications to the responsible member of a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.frameworks.model import ControlCoverage
from normata.notifications.about_coverage import review_reminded
from normata.notifications.message import Message, name_of, payload
from normata.records.base import Restorable

Which = Literal["soon", "now"]


@dataclass(frozen=True, slots=True)
class Reminded(Change):
    """A reminder of the responsible member of a record of the date in the column ``what``."""

    what: str = ""
    which: Which = "soon"


def assigned(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the new responsible member.

    If a command has changed it, nobody is notified, because a load can have thousands of records.
    """
    column = _responsible(change)
    if column is None or actor.user_id is None:
        return
    if change.before is None or change.before[column] != (change.row or {})[column]:
        yield from _messages(change, "assigned", {"assignedBy": name_of(actor)})


def archived(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the responsible member that a record was archived."""
    yield from _messages(change, "archived", {"archivedBy": name_of(actor)})


def restored(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the responsible member that a record was restored."""
    yield from _messages(change, "restored", {"restoredBy": name_of(actor)})


def reminded(transaction: Transaction, change: Change, _actor: Actor) -> Iterator[Message]:
    """Remind the responsible member of a date, a week before or on the day."""
    assert isinstance(change, Reminded)  # noqa: S101 - narrows the type; nothing else is published as "remind"
    if change.table is ControlCoverage:
        yield from review_reminded(transaction, change, change.which)
        return
    due_at = (change.row or {})[change.what]
    params = {"dueOn": due_at[: len("2026-11-20")], "dueAt": due_at}
    yield from _messages(change, f"{change.what}_{change.which}", params, sort=f"due_{change.which}")


def _messages(change: Change, key: str, params: Mapping[str, Any], *, sort: str = "") -> Iterator[Message]:
    kind, row, column = change.table, change.row or {}, _responsible(change)
    if not issubclass(kind, Restorable) or column is None or row[column] is None:
        return
    label = row[kind.title_column()]
    yield Message(
        row[column],
        f"record.{sort or key}",
        kind.topic,
        payload(
            f"{kind.__tablename__}.{key}",
            {"label": label, **params},
            f"/{kind.path}/{quote(row['id'], safe='')}/",
            {"type": kind.__name__, "id": row["id"], "label": label, "meta": row.get("slug")},
        ),
    )


def _responsible(change: Change) -> str | None:
    """The column that names the responsible member; null if there is none, or the change names no row."""
    kind = change.table
    return kind.responsible if issubclass(kind, Restorable) and change.row is not None else None
