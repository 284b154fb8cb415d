"""A version of a policy: its text in review, as it was approved, or the draft of the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints
from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document, text
from normata.core.schema.fields import Count, Flag, Identifier, Json, Name, Text, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, refers_to, set_by

PolicyVersionState = Literal["DRAFT", "IN_REVIEW", "APPROVED", "PUBLISHED", "SUPERSEDED", "RETIRED", "DISCARDED"]
OPEN: tuple[PolicyVersionState, ...] = ("DRAFT", "IN_REVIEW")  # of these a policy has one version at most
APPROVED: tuple[PolicyVersionState, ...] = ("APPROVED", "PUBLISHED", "SUPERSEDED", "RETIRED")

# Who can be asked to acknowledge a version: an auditor is not bound by it.
AcknowledgingRole = Literal["viewer", "editor", "admin", "owner"]
ACKNOWLEDGING_ROLES: tuple[AcknowledgingRole, ...] = get_args(AcknowledgingRole)
_Roles = Annotated[list[AcknowledgingRole], mapped_column(Document())]

_State = Annotated[PolicyVersionState, mapped_column(text(16), info=CODED)]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64), info=CODED)]


class PolicyVersion(Table):
    """A version of a policy, with its text."""

    __tablename__ = "policy_version"
    array = "policyVersions"
    # Of nothing in an event of a version can a person be erased, so that its proof remains.
    event_columns = frozenset(
        {
            *("id", "organization_id", "policy_id", "number", "state", "is_imported", "content_sha256"),
            *("edited_by_id", "submitted_by_id", "approved_by_id", "created_at"),
            *("submitted_at", "approved_at", "published_at", "superseded_at", "erased_at"),
        }
    )
    fixed = ("organization_id", "policy_id", "created_at")
    document_if = ("state",)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    policy_id: Mapped[Identifier] = refers_to("policy")
    number: Mapped[Annotated[Count, Field(ge=1)] | None] = mapped_column(
        info={"description": "The number of the version among those of the policy; null until it is submitted."}
    )
    state: Mapped[_State] = mapped_column(
        info={
            **CODED,
            "default": "DRAFT",
            "description": "`DRAFT`, `IN_REVIEW`, then `APPROVED` and `PUBLISHED`; `SUPERSEDED` once another one took"
            " its place, `RETIRED` with the policy, and `DISCARDED` if its draft was removed after a review.",
        }
    )
    is_imported: Mapped[Flag] = mapped_column(
        info={"default": False, "description": "Whether it came from elsewhere: it was not approved here."}
    )
    title: Mapped[Name]
    content: Mapped[Json | None]
    content_sha256: Mapped[_Sha256 | None] = mapped_column(
        info={
            **CODED,
            "description": "The SHA-256 of `content`, in hexadecimal digits: of the UTF-8 of a text, and of any other"
            " value as JSON without white space, its names sorted. Null until it is submitted.",
        }
    )
    edited_by_id: Mapped[Identifier | None] = set_by("/draft/", refers_to="membership")
    submitted_by_id: Mapped[Identifier | None] = set_by("/submit/", refers_to="membership")
    approved_by_id: Mapped[Identifier | None] = set_by("/approve/", refers_to="membership")
    reason: Mapped[Text | None] = mapped_column(info={"description": "Why it was rejected; null if it was not."})
    created_at: Mapped[Timestamp]
    submitted_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When it was submitted."})
    approved_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When it was approved."})
    published_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When it was published."})
    superseded_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When another version took its place, or the policy was retired."}
    )
    erased_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When its text was erased with a person whom it names; null if it is there."}
    )
    acknowledging_roles: Mapped[_Roles | None] = mapped_column(
        info={
            "description": "The roles whose members are asked to acknowledge it; null if it was never published, empty"
            " if nobody is asked."
        }
    )

    __table_args__ = (UniqueConstraint("organization_id", "policy_id", "number"),)

    @classmethod
    def is_document(cls, row: Mapping[str, Any]) -> bool:
        """Its text was approved."""
        return row["state"] not in ("DRAFT", "IN_REVIEW", "DISCARDED")

    @classmethod
    def needs(cls, row: Mapping[str, Any]) -> Sequence[str]:
        """What follows from the state."""
        if row["state"] in ("DRAFT", "DISCARDED"):
            return ()
        approval = () if row["is_imported"] or row["state"] == "IN_REVIEW" else ("approved_at",)
        return ("number", "content_sha256", *approval)
