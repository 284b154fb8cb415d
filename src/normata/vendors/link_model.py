"""The link by which a vendor answers an assessment without an account."""

from __future__ import annotations

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.table import Table, foreign_key, refers_to
from normata.identity.model import Digest


class VendorLink(Table):
    """A link to one assessment, valid for some days. Only the SHA-256 of its secret is stored."""

    __tablename__ = "vendor_link"
    array = "vendorLinks"
    event_columns = frozenset(
        {"id", "organization_id", "assessment_id", "created_at", "created_by_id", "expires_at", "revoked_at"}
    )
    readable = event_columns

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    assessment_id: Mapped[Identifier] = refers_to("vendor_assessment")
    digest: Mapped[Digest] = mapped_column(unique=True)
    created_at: Mapped[Timestamp]
    created_by_id: Mapped[Identifier | None] = refers_to("membership")
    expires_at: Mapped[Timestamp]
    revoked_at: Mapped[Timestamp | None]

    __table_args__ = (
        Index(None, "organization_id", "assessment_id"),
        *(
            ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                deferrable=True,
                initially="DEFERRED",
            )
            for column, table in (("assessment_id", "vendor_assessment"), ("created_by_id", "membership"))
        ),
    )
