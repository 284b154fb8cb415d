"""Notifications to whoever is responsible for a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.core.schema.table import Table
from normata.frameworks.model import ControlCoverage
from normata.links.model import OWNS, Link
from normata.notifications.about_coverage import review_reminded
from normata.notifications.message import Message, name_of, payload
from normata.records.archive.queries import KINDS
from normata.records.assurance import VendorAssessment
from normata.records.base import Restorable
from normata.records.lookup import find
from normata.records.owners import MEMBERS, has_linked_owners, responsible_column, responsible_for

Which = Literal["soon", "now"]


@dataclass(frozen=True, slots=True)
class Reminded(Change):
    """A reminder of whoever is responsible for a record, of the date in the column ``what``."""

    what: str = ""
    which: Which = "soon"


def assigned(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the new responsible member: one that a column names now, or one who has a new link.

    If a command has changed it, nobody is notified, because a load can have thousands of records.
    """
    row, column = change.row, responsible_column(change.table)
    if actor.user_id is None or row is None:
        return
    params = {"assignedBy": name_of(actor)}
    if change.table is Link and change.before is None:
        yield from _new_owner(transaction, row, params)
    elif column is not None and row[column] is not None and row[column] != (change.before or {}).get(column):
        yield from _messages(change.table, row, [row[column]], "assigned", params)


def archived(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify whoever is responsible for a record that it was archived."""
    yield from _to_responsible(transaction, change, "archived", {"archivedBy": name_of(actor)})


def restored(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify whoever is responsible for a record that it was restored."""
    yield from _to_responsible(transaction, change, "restored", {"restoredBy": name_of(actor)})


def verified(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the owners of a finding that it was verified."""
    yield from _to_responsible(transaction, change, "verified", {"verifiedBy": name_of(actor)})


def finalized(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the responsible member of a record that it was finalized."""
    yield from _to_responsible(transaction, change, "finalized", {"finalizedBy": name_of(actor)})


def answers_submitted(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the owner of an assessment of a vendor that its answers were submitted."""
    if change.table is VendorAssessment:
        by = name_of(actor) if actor.user_id is not None else "The vendor"
        yield from _to_responsible(transaction, change, "submitted", {"submittedBy": by})


def reminded(transaction: Transaction, change: Change, _actor: Actor) -> Iterator[Message]:
    """Remind whoever is responsible of a date, a week before or on the day."""
    assert isinstance(change, Reminded)  # noqa: S101 - narrows the type; nothing else is published as "remind"
    if change.table is ControlCoverage:
        yield from review_reminded(transaction, change, change.which)
        return
    due_at = (change.row or {})[change.what]
    params = {"dueOn": due_at[: len("2026-11-20")], "dueAt": due_at}
    yield from _to_responsible(transaction, change, f"{change.what}_{change.which}", params, sort=f"due_{change.which}")


def _new_owner(transaction: Transaction, link: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[Message]:
    """Notify the owner whom a new link names, of a record that has no column of a responsible member."""
    kind = KINDS.get(link["to_kind"])
    if kind is None or not has_linked_owners(kind) or (link["relation"], link["from_kind"]) != (OWNS, MEMBERS):
        return
    row = transaction.row(find(kind), {"record": link["to_id"]})
    if row is not None:
        yield from _messages(kind, row._asdict(), [link["from_id"]], "assigned", params)


def _to_responsible(
    transaction: Transaction, change: Change, key: str, params: Mapping[str, Any], *, sort: str = ""
) -> Iterator[Message]:
    if change.row is None:
        return
    members = responsible_for(transaction, change.table, change.row)
    yield from _messages(change.table, change.row, members, key, params, sort=sort)


def _messages(
    kind: type[Table],
    row: Mapping[str, Any],
    members: Iterable[str],
    key: str,
    params: Mapping[str, Any],
    *,
    sort: str = "",
) -> Iterator[Message]:
    if not issubclass(kind, Restorable):
        return
    label = row[kind.title_column()]
    for member_id in members:
        yield Message(
            member_id,
            f"record.{sort or key}",
            kind.topic,
            payload(
                f"{kind.__tablename__}.{key}",
                {"label": label, **params},
                f"/{kind.path}/{quote(row['id'], safe='')}/",
                {"type": kind.__name__, "id": row["id"], "label": label, "meta": row.get("slug")},
            ),
        )
