"""The evidence of controls, in total: it follows from the pieces of evidence that support them."""

from __future__ import annotations

import sqlalchemy
from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Count, Identifier, Timestamp
from normata.core.schema.table import Table, foreign_key

# The condition of the index of controls whose evidence ends. A statement must repeat it literally to use the index.
ENDS = "ends_at IS NOT NULL"


class ControlEvidence(Table):
    """How many pieces of evidence a control has, and until when one of them is valid.

    There is a row once a piece was linked, and it stays: a control that had evidence is another thing than one that
    never had any. ``pieces`` are those that are linked and not archived, whether they are still valid or not.
    ``ends_at`` is the moment at which the last one is valid no more, or was; null if one is valid without end.
    """

    __tablename__ = "control_evidence"
    published = False  # it follows from links and evidence

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), primary_key=True)
    pieces: Mapped[Count]
    ends_at: Mapped[Timestamp | None]

    __table_args__ = (
        Index(
            "ix_control_evidence_ends",
            *("organization_id", "ends_at", "control_id"),
            sqlite_where=sqlalchemy.text(ENDS),
            postgresql_where=sqlalchemy.text(ENDS),
        ),
    )
