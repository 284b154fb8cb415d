"""What reports show of the evidence of a control."""

from __future__ import annotations

from typing import Any

from pydantic import Field

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
