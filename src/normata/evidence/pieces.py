"""The pieces of evidence of one control, now or in the past, with their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction, batches
from normata.core.db.types import UtcTimestamp
from normata.core.schema.fields import Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.coverage.supporting import evidence_to_wire
from normata.evidence.support import IS_SUPPORT, ORGANIZATION, PIECE, SUPPORTING, piece_ends_at
from normata.files.model import File
from normata.frameworks.evidence_model import ControlEvidence
from normata.links.model import Link
from normata.records.assurance import Evidence

MOST = 50  # pieces that are shown


class PieceFile(Wire):
    """A file of a piece of evidence."""

    id: str
    name: str
    media_type: str = Field(description="The media type, as whoever has uploaded it says.")
    size: int = Field(description="The number of its bytes.")
    sha256: str = Field(description="The SHA-256 of its bytes, in hexadecimal digits.")


class EvidencePiece(Wire):
    """A piece of evidence that supports a control."""

    id: str
    short_id: int
    name: str
    type: str
    url: str | None = Field(description="Where it is, if it is elsewhere on the web.")
    collected_at: Timestamp | None
    valid_until: Timestamp | None
    is_valid: bool = Field(description="Whether it is valid: its `validUntil` has not passed.")
    linked_at: Timestamp = Field(description="Since when it is linked to the control.")
    files: list[PieceFile] = Field(description="Its files.")


class ExplainedEvidence(Wire):
    """The evidence of a control."""

    pieces: int = Field(description="How many pieces are linked to it and not archived, valid or not.")
    is_valid: bool = Field(description="Whether one of them is valid.")
    ends_at: Timestamp | None = Field(
        description="When the last one ends, or has ended; null if one is valid without end, or if there never was any."
    )
    items: list[EvidencePiece] = Field(description=f"The pieces, the newest link first; at most {MOST}.")
    recorded_later: list[EvidencePiece] = Field(
        description="With `asOf`: what was recorded only later, and collected on that day or before; as it is today, at"
        f" most {MOST}. Else empty."
    )


def explained_evidence(transaction: Transaction, organization_id: str, control_id: str) -> dict[str, Any]:
    """The members of :class:`ExplainedEvidence`, at the moment that the transaction reads."""
    key = {"organization": organization_id, "control": control_id}
    moment = transaction.time_of_reading()
    total = transaction.row(_TOTAL, key)
    rows = [] if total is None else transaction.rows(_PIECES, key)
    found = None if total is None else evidence_to_wire(total.pieces, total.ends_at, moment)
    present = transaction.present()
    later = []
    if present is not transaction:
        # Of what was recorded by then, a link or a piece may have been archived or unlinked; that is no later record.
        known = set(transaction.scalars(_KNOWN, key))
        day_ends = f"{moment[:10]}T23:59:59.999Z"
        later = [one for one in present.rows(_COLLECTED, key | {"until": day_ends}) if one.id not in known][:MOST]
    files = _files(present, [*rows, *later])
    return {
        **(found or {"pieces": 0, "isValid": False, "endsAt": None}),
        "items": [_piece(row, files, moment) for row in rows],
        "recordedLater": [_piece(row, files, moment) for row in later],
    }


def _piece(row: Any, files: dict[str, dict[str, Any]], moment: str) -> dict[str, Any]:
    ends_at = piece_ends_at(row)
    return {
        "id": row.id,
        "shortId": row.short_id,
        "name": row.name,
        "type": row.type,
        "url": row.url,
        "collectedAt": row.collected_at,
        "validUntil": row.valid_until,
        "isValid": ends_at is None or ends_at > moment,
        "linkedAt": row.linked_at,
        "files": [files[one] for one in row.file_ids or () if one in files],
    }


def _files(transaction: Transaction, rows: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The files of pieces, by their ids. They never change, and stay, so those of then are those of today."""
    ids = sorted({one for row in rows for one in row.file_ids or ()})
    names = ("id", "name", "media_type", "size", "sha256")
    wire = ("id", "name", "mediaType", "size", "sha256")
    return {
        row.id: dict(zip(wire, (getattr(row, name) for name in names), strict=True))
        for batch in batches(ids)
        for row in transaction.rows(_FILES, {"ids": batch})
    }


_LINK, _EVIDENCE, _STORED, _FILE = (sql_table(one) for one in (Link, Evidence, ControlEvidence, File))
_TOTAL = select(_STORED.c.pieces, _STORED.c.ends_at).where(
    _STORED.c.organization_id == ORGANIZATION, _STORED.c.control_id == bindparam("control")
)
_OF_CONTROL = (
    select(
        *(_EVIDENCE.c[name] for name in ("id", "short_id", "name", "type", "url", "collected_at", "file_ids")), *PIECE
    )
    .join_from(_LINK, _EVIDENCE, SUPPORTING)
    .where(IS_SUPPORT, _LINK.c.to_id == bindparam("control"))
)
_LIVE = _OF_CONTROL.where(_LINK.c.removed_at.is_(None), _EVIDENCE.c.archived_at.is_(None))
_PIECES = _LIVE.order_by(_LINK.c.created_at.desc(), _LINK.c.id.desc()).limit(MOST)
_KNOWN = select(_LINK.c.from_id).where(IS_SUPPORT, _LINK.c.to_id == bindparam("control"))
_COLLECTED = _LIVE.where(_EVIDENCE.c.collected_at <= bindparam("until", type_=UtcTimestamp())).order_by(
    _LINK.c.created_at.desc(), _LINK.c.id.desc()
)
_FILES = select(_FILE.c.id, _FILE.c.name, _FILE.c.media_type, _FILE.c.size, _FILE.c.sha256).where(
    _FILE.c.id.in_(bindparam("ids", expanding=True))
)
