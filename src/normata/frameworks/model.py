"""Frameworks, their controls and matches, and the assessments of organizations."""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint, false, literal_column, true
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.trigrams import add_triggers
from normata.core.db.types import passes_at, text
from normata.core.schema.fields import (
    Count,
    Coverage,
    Flag,
    Identifier,
    Kind,
    Level,
    Name,
    Reasons,
    ShortName,
    ShortText,
    Slug,
    Text,
    Timestamp,
)
from normata.core.schema.table import (
    ADDED,
    CODED,
    Table,
    defaults_to,
    derived,
    foreign_key,
    names_person,
    refers_to,
    sql_table,
)
from normata.core.schema.text import natural_key, search_text, slugify


class Framework(Table):
    """A catalog of controls: a centralized one that all may adopt, or an organization's own."""

    __tablename__ = "framework"
    array = "frameworks"
    shown_in = frozenset({"controls", "frameworks"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    identifier: Mapped[ShortText]
    slug: Mapped[Slug]
    version: Mapped[ShortText | None]
    identifier_color: Mapped[ShortText | None]
    published_at: Mapped[Timestamp | None]
    deprecated_at: Mapped[Timestamp | None]
    name: Mapped[Name]
    description: Mapped[Text | None]
    last_sync_at: Mapped[Timestamp | None]
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]
    created_by: Mapped[ShortText | None] = names_person()
    is_active: Mapped[Flag] = defaults_to(True)
    is_centralized: Mapped[Flag]
    required_tier: Mapped[ShortText] = defaults_to("free-trial")

    search_text: Mapped[Text] = derived()
    identifier_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    name_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    slug_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    version_key: Mapped[str | None] = mapped_column(text(), info={"derived": True})
    # Stored, so that lists need not count.
    control_count: Mapped[Count] = mapped_column(server_default="0", info={"derived": True})
    # The prefix of the controls that a statement of applicability is about, such as `A.`; null for all requirements.
    applicability_prefix: Mapped[ShortText | None] = mapped_column(info={"unlisted": True})

    ignored = frozenset({"isAdopted", "_count", "frameworkAdoptions", "adoption"})
    generated = frozenset({"identifier", "slug"})
    __table_args__ = (Index(None, "organization_id"),)

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        row["identifier"] = row["identifier"] or row["name"]
        row["slug"] = row["slug"] or slugify(row["identifier"] or "")
        if row["is_centralized"] is None:
            row["is_centralized"] = row["organization_id"] is None

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["control_count"] = row["control_count"] or 0  # they are counted later, see catalog.py
        row["search_text"] = search_text(row["identifier"], row["name"], row["slug"], row["description"])
        row["identifier_key"] = natural_key(row["identifier"])
        row["name_key"] = natural_key(row["name"])
        row["slug_key"] = natural_key(row["slug"])
        row["version_key"] = None if row["version"] is None else natural_key(row["version"])


class Control(Table):
    """One requirement of a framework, or a category of them."""

    __tablename__ = "control"
    array = "controls"
    bulky = True
    shown_in = frozenset({"controls", "frameworks"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    framework_id: Mapped[Identifier] = mapped_column(foreign_key("framework.id"), info={"refers_to": "framework"})
    parent_id: Mapped[Identifier | None] = refers_to("control")
    identifier: Mapped[ShortText]
    name: Mapped[Name]
    slug: Mapped[Slug]
    purpose: Mapped[Text | None]
    type: Mapped[Kind] = defaults_to("CONTROL")
    description: Mapped[Text | None]
    is_mandatory: Mapped[Flag] = defaults_to(False)
    is_centralized: Mapped[Flag]  # if a bundle omits it, that of the framework, see catalog.py
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    organization_id: Mapped[Identifier | None] = derived()  # of the framework; null if that is centralized
    position: Mapped[Count] = derived()  # the catalog order: 0, 1, 2… in each framework, without gaps
    search_text: Mapped[Text] = derived()
    identifier_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    name_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    slug_key: Mapped[str] = mapped_column(text(), info={"derived": True})

    # Its children make up all of it, so it is rolled up like a category, and is no requirement itself.
    is_decomposed: Mapped[Flag] = mapped_column(server_default=false(), info={"default": False, "unlisted": True})

    __table_args__ = (
        # A parent is in the same framework.
        UniqueConstraint("framework_id", "id"),
        ForeignKeyConstraint(
            ["framework_id", "parent_id"], ["control.framework_id", "control.id"], deferrable=True, initially="DEFERRED"
        ),
        # All columns that decide which controls are on a page, so that filters need not read the rows. PostgreSQL's
        # row-level security needs the organization.
        Index("ix_control_places", "framework_id", "position", "id", "type", postgresql_include=["organization_id"]),
        # To find what is below a group without reading the rows.
        Index(
            "ix_control_below",
            *("parent_id", "id", "type", "is_decomposed"),
            postgresql_include=["organization_id"],
        ),
        # All columns that a search reads. The condition always holds: with it only statements that repeat it use the
        # index. PostgreSQL's indexes cannot hold texts of this length.
        Index(
            "ix_control_search",
            *("framework_id", "position", "search_text"),
            sqlite_where=sqlalchemy.text("search_text >= ''"),
            info={"dialect": "sqlite"},
        ),
    )

    ignored = frozenset(
        {
            "framework",
            "parent",
            "coverage",
            "effectiveCoverageStatus",
            "isIndirectlyCovered",
            "sourceMatches",
            "children",
        }
    )
    fixed = ("framework_id",)
    generated = frozenset({"identifier", "slug", "is_centralized"})

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        row["identifier"] = row["identifier"] or row["id"]
        row["slug"] = row["slug"] or slugify(row["identifier"], row["name"] or "")

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["search_text"] = search_text(
            row["identifier"], row["name"], row["slug"], row["purpose"], row["description"]
        )
        row["identifier_key"] = natural_key(row["identifier"])
        row["name_key"] = natural_key(row["name"])
        row["slug_key"] = natural_key(row["slug"])


add_triggers(sql_table(Control))


class MappingDocument(Table):
    """An imported document of mappings, in its newest version, which gives matches.

    ``document`` is the publisher's identifier, the same in all versions.
    """

    __tablename__ = "mapping_document"
    array = "mappingDocuments"
    shown_in = frozenset({"controls"})  # no list shows these, but planned imports read them: see catalogs/uploads.py

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    document: Mapped[ShortText]
    name: Mapped[Name]
    version: Mapped[ShortText | None]
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    __table_args__ = (Index(None, "organization_id"),)


class ControlMatch(Table):
    """A match between controls: FULL if the source requires all of the target, PARTIAL if they overlap.

    A match is an organization's own if one of its controls is, or if the organization has made it: then only that
    organization sees it, and only its coverage is affected.
    """

    __tablename__ = "control_match"
    array = "controlMatches"
    bulky = True
    shown_in = frozenset({"controls"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    source_control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), info={"refers_to": "control"})
    target_control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), info={"refers_to": "control"})
    match_level: Mapped[Level]
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    justification: Mapped[Text | None]
    # The document with the match. Null if people have made it, or if its document was not imported since documents are
    # stored.
    mapping_document_id: Mapped[Identifier | None] = mapped_column(
        foreign_key("mapping_document.id"), info={"refers_to": "mapping_document"}
    )
    retired_at: Mapped[Timestamp | None]  # since when the document no longer contains it
    rationale: Mapped[ShortText | None]
    strength: Mapped[ShortText | None]

    fixed = ()  # the organization may follow from the controls, see rules.py

    __table_args__ = (
        Index(None, "target_control_id"),
        Index(None, "source_control_id"),
        Index(None, "organization_id"),
        Index(None, "mapping_document_id"),
    )


class SetAsideMatch(Table):
    """A match that an organization has set aside: it does not count for this organization."""

    __tablename__ = "set_aside_match"
    array = "setAsideMatches"
    shown_in = frozenset({"controls"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    match_id: Mapped[Identifier] = mapped_column(foreign_key("control_match.id"), info={"refers_to": "control_match"})
    justification: Mapped[Text]
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    __table_args__ = (
        UniqueConstraint("organization_id", "match_id"),
        Index(None, "match_id"),
        # An import of a mapping recomputes the coverage of organizations that have set some of its matches aside.
        {"info": {"catalogs": "read"}},
    )


class FrameworkAdoption(Table):
    """The adoption of a framework by an organization."""

    __tablename__ = "framework_adoption"
    array = "frameworkAdoptions"
    shown_in = frozenset({"controls", "frameworks"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    framework_id: Mapped[Identifier] = mapped_column(foreign_key("framework.id"), info={"refers_to": "framework"})
    adopted_at: Mapped[Timestamp]
    # The requirements outside of it do not apply unless assessed otherwise; null for the whole framework. See
    # baseline_model.py.
    baseline_id: Mapped[Identifier | None] = refers_to("baseline")

    __table_args__ = (
        UniqueConstraint("organization_id", "framework_id"),
        Index(None, "framework_id", "baseline_id"),
        # The baseline must be one of the framework.
        ForeignKeyConstraint(
            ["framework_id", "baseline_id"],
            ["baseline.framework_id", "baseline.id"],
            deferrable=True,
            initially="DEFERRED",
        ),
        # A change of a centralized framework recomputes the coverage of the organizations that have adopted it.
        {"info": {"catalogs": "read"}},
    )


# The condition of the index for due reviews. A statement must repeat it literally to use the index.
REVIEW_IS_DUE = "review_by IS NOT NULL"
# The condition of the index for lapses, as above.
MAY_LAPSE = "review_due_at IS NOT NULL AND coverage_status IS NOT NULL"
HAS_LAPSED = "lapsed_status IS NOT NULL"


class ControlCoverage(Table):
    """An assessment: what the organization itself records of a control.

    It has the status (null: not assessed) and the gap, whether the control applies (null: a category above it decides,
    or the baseline) and why (ISO/IEC 27001, 6.1.3 d), the responsible member, how the control is implemented, and by
    when the assessment must be reviewed.

    ``assessed_at`` is when the status was last set or confirmed. If the assessment has lapsed, ``lapsed_status`` is the
    status that no longer counts, ``lapsed_at`` the time since which it should not, ``lapse_reason`` why (null: a review
    was missed), and ``coverage_status`` is null. ``review_due_at`` is the time at which ``review_by`` has passed.
    """

    __tablename__ = "control_coverage"
    array = "controlCoverages"
    shown_in = frozenset({"controls"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), info={"refers_to": "control"})
    coverage_status: Mapped[Coverage | None]
    coverage_gap: Mapped[Text | None]
    is_applicable: Mapped[Flag | None]
    justification: Mapped[Text | None]
    reasons: Mapped[Reasons] = mapped_column(server_default=literal_column("''"), info={"default": []})
    # Null if an older version made the assessment during an upgrade.
    created_at: Mapped[Timestamp | None]
    updated_at: Mapped[Timestamp | None]
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    note: Mapped[Text | None]
    review_by: Mapped[Timestamp | None]
    assessed_at: Mapped[Timestamp | None]
    lapsed_status: Mapped[Coverage | None]
    lapsed_at: Mapped[Timestamp | None]

    review_due_at: Mapped[Timestamp | None] = derived()
    lapse_reason: Mapped[ShortName | None] = mapped_column(text(64), info=CODED | ADDED)

    __table_args__ = (
        UniqueConstraint("organization_id", "control_id"),
        UniqueConstraint("organization_id", "id"),
        ForeignKeyConstraint(
            ["organization_id", "owner_id"],
            ["membership.organization_id", "membership.id"],
            deferrable=True,
            initially="DEFERRED",
        ),
        Index(
            "ix_control_coverage_review_by_due",
            *("organization_id", "review_by", "id"),
            sqlite_where=sqlalchemy.text(REVIEW_IS_DUE),
            postgresql_where=sqlalchemy.text(REVIEW_IS_DUE),
        ),
        Index(
            "ix_control_coverage_may_lapse",
            *("organization_id", "review_due_at", "id"),
            sqlite_where=sqlalchemy.text(MAY_LAPSE),
            postgresql_where=sqlalchemy.text(MAY_LAPSE),
        ),
        Index(
            "ix_control_coverage_lapsed",
            *("organization_id", "id"),
            sqlite_where=sqlalchemy.text(HAS_LAPSED),
            postgresql_where=sqlalchemy.text(HAS_LAPSED),
        ),
    )

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["review_due_at"] = row["review_by"] and passes_at(row["review_by"])
        if row["coverage_status"] is not None:
            row["lapsed_status"] = row["lapsed_at"] = row["lapse_reason"] = None


class EffectiveCoverage(Table):
    """The effective coverage of a control of an adopted framework; see ``engine.py``.

    ``applies`` is false if the control does not apply, by its assessment or that of a group above it. ``own`` is the
    status without matches, and ``is_indirect`` is true if the effective status is higher. ``rank`` shows that the
    status does not depend on a circle. ``conflict`` names why the assessment cannot be right; null if there is no
    conflict.
    """

    __tablename__ = "effective_coverage"
    published = False  # it follows from other changes

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), primary_key=True)
    status: Mapped[Coverage]
    is_indirect: Mapped[Flag]
    own: Mapped[Coverage] = mapped_column(server_default="0")
    rank: Mapped[Count] = mapped_column(server_default="0")
    applies: Mapped[Flag] = mapped_column(server_default=true())
    conflict: Mapped[ShortName | None] = mapped_column(text(64), info=CODED)
