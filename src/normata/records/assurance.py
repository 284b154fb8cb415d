"""The kinds of records that assessments stand on. They come after the others, in the lists of kinds as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Mapped

from normata.core.schema.fields import (
    FileIds,
    Identifier,
    Name,
    Percentage,
    Rating,
    ShortId,
    ShortText,
    Slug,
    Text,
    Timestamp,
    Token,
    WebAddress,
)
from normata.core.schema.table import due, known, lists, refers_to, set_by, written_as
from normata.errors import WrongState
from normata.records import kinds as _others  # noqa: F401 - so that they come first
from normata.records.base import Maintained
from normata.vendors.rules import guard_assessment


class Evidence(Maintained):
    """What shows that something is so: a file, an address or a note, and until when it is valid.

    A record is what the organization writes itself; evidence is collected from anywhere.
    """

    __tablename__ = "evidence"
    path = "evidence"
    topic = "RECORDS"
    responsible = "owner_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    name: Mapped[Name]
    description: Mapped[Text | None]
    type: Mapped[Token] = known("FILE", "ADDRESS", "NOTE")
    url: Mapped[ShortText | None] = written_as(WebAddress, "Where it is, if it is elsewhere on the web.")
    collected_at: Mapped[Timestamp | None]
    collected_by_id: Mapped[Identifier | None] = refers_to("membership")
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    valid_until: Mapped[Timestamp | None] = due()
    file_ids: Mapped[FileIds] = lists("file")

    @classmethod
    def words(cls) -> str:
        return "piece of evidence"

    @classmethod
    def plural(cls) -> str:
        return "evidence"


class Risk(Maintained):
    """What may keep the organization from its objectives, and how it is treated (ISO 31000, ISO/IEC 27001, 6.1.2).

    Probability and impact are rated from 1 to 5: before treatment, as it is now, and as it shall become.
    """

    __tablename__ = "risk"
    path = "risks"
    topic = "RISKS"
    responsible = "owner_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    name: Mapped[Name]
    description: Mapped[Text | None]
    category: Mapped[ShortText | None]
    status: Mapped[Token] = known("OPEN", "IN_TREATMENT", "MONITORED", "CLOSED")
    treatment_strategy: Mapped[Token] = known("UNKNOWN", "AVOID", "MITIGATE", "TRANSFER", "ACCEPT")
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    inherent_probability: Mapped[Rating | None]
    inherent_impact: Mapped[Rating | None]
    residual_probability: Mapped[Rating | None]
    residual_impact: Mapped[Rating | None]
    target_probability: Mapped[Rating | None]
    target_impact: Mapped[Rating | None]
    accepted_at: Mapped[Timestamp | None] = set_by("/accept/")
    accepted_by_id: Mapped[Identifier | None] = set_by("/accept/", refers_to="membership")
    next_review_at: Mapped[Timestamp | None] = due(at=("CLOSED",))

    @classmethod
    def follow(cls, before: Mapping[str, Any] | None, after: dict[str, Any]) -> None:
        if before is None:
            return
        # The owner has accepted another residual risk (ISO/IEC 27001, 6.1.3 f).
        if any(before[name] != after[name] for name in ("residual_probability", "residual_impact")):
            after.update(accepted_at=None, accepted_by_id=None)


class VendorAssessment(Maintained):
    """A questionnaire about a vendor, its answers, and what the organization makes of them (ISO/IEC 27001, A.5.19)."""

    __tablename__ = "vendor_assessment"
    path = "vendor-assessments"
    topic = "VENDORS"
    responsible = "owner_id"
    refusals = (WrongState,)
    guard = guard_assessment

    short_id: Mapped[ShortId]
    title: Mapped[Name]
    notes: Mapped[Text | None]
    status: Mapped[Token] = set_by("/send/", known=("DRAFT", "SENT", "SUBMITTED", "REVIEWED", "SUPERSEDED"))
    vendor_id: Mapped[Identifier | None] = refers_to("vendor")
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    questionnaire_id: Mapped[Identifier | None] = refers_to("questionnaire")
    deadline: Mapped[Timestamp | None] = due(at=("SUBMITTED", "REVIEWED", "SUPERSEDED"))
    sent_at: Mapped[Timestamp | None] = set_by("/send/")
    submitted_at: Mapped[Timestamp | None] = set_by("/submit/")
    submitted_by_id: Mapped[Identifier | None] = set_by("/submit/", refers_to="membership")
    score: Mapped[Percentage | None] = set_by("/submit/")
    reopening_reason: Mapped[Text | None] = set_by("/reopen/")
    reviewed_at: Mapped[Timestamp | None] = set_by("/review/")
    reviewed_by_id: Mapped[Identifier | None] = set_by("/review/", refers_to="membership")
    inherent_probability: Mapped[Rating | None] = set_by("/review/")
    inherent_impact: Mapped[Rating | None] = set_by("/review/")
    inherent_reason: Mapped[Text | None] = set_by("/review/")
    residual_probability: Mapped[Rating | None] = set_by("/review/")
    residual_impact: Mapped[Rating | None] = set_by("/review/")
    residual_reason: Mapped[Text | None] = set_by("/review/")
    next_assessment_at: Mapped[Timestamp | None] = due(at=("SUPERSEDED",))
