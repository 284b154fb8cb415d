"""What evidence says of controls: until when each piece supports one, and what follows for the control."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, select

from normata.core.db.transaction import Transaction, batches
from normata.core.db.types import passes_at
from normata.core.schema.table import sql_table
from normata.links.model import Link
from normata.links.relations import CONTROLS
from normata.records.assurance import Evidence

SUPPORTS = "SUPPORTS"


class Support(NamedTuple):
    """What a control has of evidence: the number of its pieces, and when the last one ends; null if one does not."""

    pieces: int
    ends_at: str | None


def piece_ends_at(row: Any) -> str | None:
    """When a piece of evidence supports a control no more: it has expired, or was archived or unlinked.

    Its row has the columns of :data:`PIECE`. Null if it has no end. What was no longer valid when it was linked ends
    then.
    """
    expires_at = None if row.valid_until is None else passes_at(row.valid_until)
    ends = [at for at in (expires_at, row.archived_at, row.removed_at) if at is not None]
    return max(row.linked_at, min(ends)) if ends else None


def is_linked(row: Any) -> bool:
    """Whether a piece of evidence is linked and not archived, valid or not."""
    return row.archived_at is None and row.removed_at is None


def support_of(rows: Iterable[Any]) -> dict[str, Support]:
    """What the controls have that these pieces support, or have supported, by their ids."""
    pieces: dict[str, int] = {}
    ends: dict[str, set[str | None]] = {}
    for row in rows:
        pieces[row.control_id] = pieces.get(row.control_id, 0) + is_linked(row)
        ends.setdefault(row.control_id, set()).add(piece_ends_at(row))
    return {
        control: Support(pieces[control], None if None in found else max(at for at in found if at is not None))
        for control, found in ends.items()
    }


def read_support(transaction: Transaction, organization_id: str, controls: Iterable[str]) -> dict[str, Support]:
    """What these controls have, computed from links and evidence; those that never had a piece are left out."""
    key = {"organization": organization_id}
    return support_of(
        row for batch in batches(sorted(controls)) for row in transaction.rows(_OF_CONTROLS, {**key, "ids": batch})
    )


def read_all_support(transaction: Transaction, organization_id: str) -> dict[str, Support]:
    """The same of every control of an organization."""
    return support_of(transaction.rows(_PIECES, {"organization": organization_id}))


_LINK, _EVIDENCE = sql_table(Link), sql_table(Evidence)
ORGANIZATION: BindParameter[str] = bindparam("organization")
IS_SUPPORT: ColumnElement[bool] = and_(
    _LINK.c.organization_id == ORGANIZATION,
    _LINK.c.from_kind == Evidence.array,
    _LINK.c.to_kind == CONTROLS,
    _LINK.c.relation == SUPPORTS,
)
PIECE = (
    _LINK.c.to_id.label("control_id"),
    _LINK.c.created_at.label("linked_at"),
    _LINK.c.removed_at,
    _EVIDENCE.c.valid_until,
    _EVIDENCE.c.archived_at,
)
SUPPORTING = and_(_EVIDENCE.c.id == _LINK.c.from_id, _EVIDENCE.c.organization_id == ORGANIZATION)
_PIECES = select(*PIECE).join(_EVIDENCE, SUPPORTING).where(IS_SUPPORT)
_OF_CONTROLS = _PIECES.where(_LINK.c.to_id.in_(bindparam("ids", expanding=True)))
