"""The history of catalogs: the wordings that controls had before an import changed them."""

from __future__ import annotations

import sqlalchemy
from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Flag, Identifier, Name, ShortText, Text, Timestamp
from normata.core.schema.table import Table, defaults_to, derived, foreign_key

# The condition of the index for stale assessments.
IS_STALE = "stale_since IS NOT NULL"


class ControlWording(Table):
    """A wording that a control had before an import replaced it, stored once for all organizations.

    It held from ``valid_from`` (null: as long as the control is known) until ``replaced_at``. ``version`` is that of
    the framework then. ``is_editorial`` is true if the import that replaced it was: then assessments that were made on
    it hold for the next wording, too. ``stale_since`` is the time since which assessments that were made on it are
    stale; null if they are not.
    """

    __tablename__ = "control_wording"
    array = "controlWordings"
    bulky = True

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), info={"refers_to": "control"})
    identifier: Mapped[ShortText]
    name: Mapped[Name]
    description: Mapped[Text | None]
    version: Mapped[ShortText | None]
    valid_from: Mapped[Timestamp | None]
    replaced_at: Mapped[Timestamp]
    is_editorial: Mapped[Flag] = defaults_to(False)
    stale_since: Mapped[Timestamp | None]

    organization_id: Mapped[Identifier | None] = derived()  # of the control; null if that is centralized

    fixed = ("control_id",)
    __table_args__ = (
        Index(None, "control_id", "replaced_at"),
        Index(None, "organization_id"),
        # All columns that decide which assessments are stale. It contains few wordings, and often none.
        Index(
            "ix_control_wording_stale",
            *("control_id", "replaced_at", "valid_from", "stale_since"),
            sqlite_where=sqlalchemy.text(IS_STALE),
            postgresql_where=sqlalchemy.text(IS_STALE),
        ),
    )
