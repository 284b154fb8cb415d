"""What reports show of the evidence of a control."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from normata.core.db.types import format_timestamp
from normata.core.schema.fields import Timestamp
from normata.core.schema.wire import Wire

EVIDENCE = "The evidence that supports it; null if none was ever linked."


class ControlEvidenceSummary(Wire):
    """How much evidence a control has, and until when it is valid."""

    pieces: int = Field(
        description="How many pieces of evidence are linked to it (`SUPPORTS`) and not archived, valid or not."
    )
    is_valid: bool = Field(description="Whether one of them is valid.")
    ends_at: Timestamp | None = Field(
        description="When the last one ends, or has ended: when its `validUntil` passes, or when it was archived or"
        " unlinked. A plain date passes when its day ends. Null if one is valid without end."
    )


def evidence_to_wire(pieces: int | None, ends_at: str | None, moment: str) -> dict[str, Any] | None:
    """The members of :class:`ControlEvidenceSummary` at a moment; null where there are no ``pieces`` to tell of."""
    if pieces is None:
        return None
    return {"pieces": pieces, "isValid": ends_at is None or ends_at > moment, "endsAt": ends_at}


def evidence_words(evidence: Mapping[str, Any] | None) -> str | None:
    """The same in words, for tables: how many pieces, and until when."""
    if evidence is None:
        return None
    count = f"{evidence['pieces']} piece{'' if evidence['pieces'] == 1 else 's'}"
    if evidence["endsAt"] is None:
        return f"{count}, without end"
    day = last_day(evidence["endsAt"])
    return f"{count}, until {day}" if evidence["isValid"] else f"{count}, none valid since {evidence['endsAt'][:10]}"


def last_day(ends_at: str) -> str:
    """The last day on which something is valid that ends at a moment."""
    return format_timestamp(datetime.fromisoformat(ends_at) - timedelta(milliseconds=1))[: len("2026-11-20")]
