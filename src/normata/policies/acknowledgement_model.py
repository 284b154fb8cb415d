"""That a member was asked to acknowledge a version of a policy, and that they have."""

from __future__ import annotations

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy import text as sql_text
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.table import Table, foreign_key, refers_to, set_by

_IS_OPEN = sql_text("acknowledged_at IS NULL")


class Acknowledgement(Table):
    """A member was asked to acknowledge a version of a policy, or has done so."""

    __tablename__ = "acknowledgement"
    array = "acknowledgements"
    fixed = ("organization_id", "version_id", "member_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    version_id: Mapped[Identifier] = refers_to("policy_version")
    member_id: Mapped[Identifier] = set_by("/acknowledge/", refers_to="membership")
    requested_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When the member was asked."})
    reminded_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When they were reminded last."})
    acknowledged_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When they have acknowledged it."})

    __table_args__ = (
        UniqueConstraint("organization_id", "version_id", "member_id"),
        # The open ones of a member.
        Index(
            "ix_acknowledgement_open", "organization_id", "member_id", "version_id",
            sqlite_where=_IS_OPEN, postgresql_where=_IS_OPEN,
        ),
    )  # fmt: skip
