"""Frameworks, their controls, how controls match each other, and what an organization says of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint, literal_column, true
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import (
    Count,
    Coverage,
    Flag,
    Identifier,
    Kind,
    Level,
    Name,
    Reasons,
    ShortText,
    Slug,
    Text,
    Timestamp,
)
from normata.core.schema.table import Table, defaults_to, derived, foreign_key, names_person, refers_to
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
    # Kept, so that no list has to count.
    control_count: Mapped[Count] = mapped_column(server_default="0", info={"derived": True})

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
        row["control_count"] = row["control_count"] or 0  # until they are counted, see catalog.py
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
    is_centralized: Mapped[Flag]  # where a bundle leaves it out its framework's, see catalog.py
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    organization_id: Mapped[Identifier | None] = derived()  # its framework's: null where centralized
    position: Mapped[Count] = derived()  # the catalog order: 0, 1, 2… within the framework, without gaps
    search_text: Mapped[Text] = derived()
    identifier_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    name_key: Mapped[str] = mapped_column(text(), info={"derived": True})
    slug_key: Mapped[str] = mapped_column(text(), info={"derived": True})

    __table_args__ = (
        # A parent is a control of the same framework.
        UniqueConstraint("framework_id", "id"),
        ForeignKeyConstraint(
            ["framework_id", "parent_id"], ["control.framework_id", "control.id"], deferrable=True, initially="DEFERRED"
        ),
        # All that says which controls a page has: filters read it without the rest of the rows. With the organization,
        # for PostgreSQL's row-level security to look at.
        Index("ix_control_places", "framework_id", "position", "id", "type", postgresql_include=["organization_id"]),
        Index(None, "parent_id"),
        # All that a search looks at, which it then reads without the rest of the rows. The condition always holds; it
        # keeps the index from all statements that do not name it. PostgreSQL's indexes take no texts as long as these.
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


class ControlMatch(Table):
    """What the source control says of the target: FULL where it asks for all of it, PARTIAL where the two overlap.

    A match is an organization's own where one of its controls is, or where the organization has made it: then the
    organization alone sees it, and coverage of no other follows from it.
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

    fixed = ()  # the organization may follow from the controls; see rules.py

    __table_args__ = (
        Index(None, "target_control_id"),
        Index(None, "source_control_id"),
        Index(None, "organization_id"),
    )


class FrameworkAdoption(Table):
    """An organization works with a framework from a moment on."""

    __tablename__ = "framework_adoption"
    array = "frameworkAdoptions"
    shown_in = frozenset({"controls", "frameworks"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    framework_id: Mapped[Identifier] = mapped_column(foreign_key("framework.id"), info={"refers_to": "framework"})
    adopted_at: Mapped[Timestamp]

    __table_args__ = (
        UniqueConstraint("organization_id", "framework_id"),
        Index(None, "framework_id"),
        # Whoever changes a centralized framework brings the coverage of those who have adopted it up to date.
        {"info": {"catalogs": "read"}},
    )


class ControlCoverage(Table):
    """A statement: what the organization itself says of a control.

    That is how far it covers the control and what is missing, and whether the control applies to it at all and why
    (ISO/IEC 27001, 6.1.3 d).
    """

    __tablename__ = "control_coverage"
    array = "controlCoverages"
    shown_in = frozenset({"controls"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), info={"refers_to": "control"})
    coverage_status: Mapped[Coverage] = defaults_to("NONE")
    coverage_gap: Mapped[Text | None]
    is_applicable: Mapped[Flag] = mapped_column(server_default=true(), info={"default": True})
    justification: Mapped[Text | None]
    reasons: Mapped[Reasons] = mapped_column(server_default=literal_column("''"), info={"default": []})
    # Null in a statement that an older version of Normata makes while this one is being introduced.
    created_at: Mapped[Timestamp | None]
    updated_at: Mapped[Timestamp | None]

    __table_args__ = (UniqueConstraint("organization_id", "control_id"), UniqueConstraint("organization_id", "id"))


class EffectiveCoverage(Table):
    """What follows for a control of an adopted framework from statements, matches and roll-up; see ``engine.py``.

    ``own`` is what follows without the matches, and ``is_indirect`` tells that the status is above that. ``rank`` shows
    that the status rests on no circle.
    """

    __tablename__ = "effective_coverage"
    published = False  # what it follows from is

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), primary_key=True)
    status: Mapped[Coverage]
    is_indirect: Mapped[Flag]
    own: Mapped[Coverage] = mapped_column(server_default="0")
    rank: Mapped[Count] = mapped_column(server_default="0")
