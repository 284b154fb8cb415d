"""Keeps the evidence of controls up to date, in the transaction in which a link or a piece of evidence changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import Actor, Change, insert_of, update_of
from normata.core.db.transaction import Transaction, batches
from normata.core.db.upsert import upsert
from normata.core.schema.table import sql_table
from normata.evidence.support import IS_SUPPORT, ORGANIZATION, SUPPORTS, Support, read_all_support, read_support
from normata.frameworks.evidence_model import ControlEvidence
from normata.links.model import Link
from normata.links.relations import CONTROLS
from normata.records.assurance import Evidence

# What decides until when a piece supports a control.
_OF_LINK, _OF_EVIDENCE = ("created_at", "removed_at"), ("valid_until", "archived_at")


class FollowEvidence:
    """Brings the evidence of controls up to date, whichever change it follows from: one row, many, or a load."""

    writes = (insert_of(ControlEvidence), update_of(ControlEvidence, "pieces", "ends_at"))

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """Write what these changes mean for the controls that they are about."""
        del actor, moment
        controls, pieces = concerned(changes)
        for organization_id in sorted({*controls, *pieces}):
            # Before it reads, so that of two changes of the same control the second sees the first.
            transaction.lock(f"evidence of {organization_id}")
            controls[organization_id] |= controls_of(transaction, organization_id, pieces[organization_id])
            _store(transaction, organization_id, sorted(controls[organization_id]))


def concerned(changes: Sequence[Change]) -> tuple[defaultdict[str, set[str]], defaultdict[str, list[str]]]:
    """What changes may say of evidence: by organization the controls of links, and the ids of pieces of evidence."""
    controls: defaultdict[str, set[str]] = defaultdict(set)
    pieces: defaultdict[str, list[str]] = defaultdict(list)
    for change in changes:
        row = change.row or change.before
        if row is None or change.organization_id is None:
            continue
        if change.table is Link and _is_support(row) and _differs(change, _OF_LINK):
            controls[change.organization_id].add(row["to_id"])
        elif change.table is Evidence and _differs(change, _OF_EVIDENCE):
            pieces[change.organization_id].append(row["id"])
    return controls, pieces


def controls_of(transaction: Transaction, organization_id: str, pieces: Sequence[str]) -> set[str]:
    """The controls that these pieces support, or have supported."""
    key = {"organization": organization_id}
    return {
        control
        for batch in batches(sorted(pieces))
        for control in transaction.scalars(_SUPPORTED, {**key, "ids": batch})
    }


def is_followed(transaction: Transaction, organization_id: str) -> bool:
    """Whether what is stored of an organization's evidence is what follows from its links and pieces of evidence."""
    stored = transaction.rows(_ALL_STORED, {"organization": organization_id})
    return _by_control(stored) == read_all_support(transaction, organization_id)


def _is_support(row: Mapping[str, Any]) -> bool:
    return (row["from_kind"], row["to_kind"], row["relation"]) == (Evidence.array, CONTROLS, SUPPORTS)


def _differs(change: Change, names: Sequence[str]) -> bool:
    """Whether a change is one of these columns; a row that was not read before may have any."""
    before, row = change.before, change.row
    return before is None or row is None or any(before[name] != row[name] for name in names)


def _store(transaction: Transaction, organization_id: str, controls: Sequence[str]) -> None:
    """Write the rows of these controls that differ. None goes: what was linked once stays known."""
    key = {"organization": organization_id}
    now = read_support(transaction, organization_id, controls)
    stored: dict[str, Support] = {}
    for batch in batches(controls):
        stored |= _by_control(transaction.rows(_STORED, {**key, "ids": batch}))
    changed = [
        {**key, "control": control, **support._asdict()}
        for control, support in now.items()
        if stored.get(control) != support
    ]
    for some in batches(changed):
        transaction.execute_many(_UPSERT, some)


def _by_control(rows: Sequence[Any]) -> dict[str, Support]:
    return {row.control_id: Support(row.pieces, row.ends_at) for row in rows}


_TABLE, _LINK = sql_table(ControlEvidence), sql_table(Link)
_SUPPORTED = select(_LINK.c.to_id).where(IS_SUPPORT, _LINK.c.from_id.in_(bindparam("ids", expanding=True))).distinct()
_ALL_STORED = select(_TABLE.c.control_id, _TABLE.c.pieces, _TABLE.c.ends_at).where(
    _TABLE.c.organization_id == ORGANIZATION
)
_STORED = _ALL_STORED.where(_TABLE.c.control_id.in_(bindparam("ids", expanding=True)))
_UPSERT = upsert(
    _TABLE,
    {
        "organization_id": ORGANIZATION,
        "control_id": bindparam("control"),
        **{name: bindparam(name, type_=_TABLE.c[name].type) for name in ("pieces", "ends_at")},
    },
    key=("organization_id", "control_id"),
    update=("pieces", "ends_at"),
)
