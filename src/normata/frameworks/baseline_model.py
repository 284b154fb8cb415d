"""Baselines: selections of the controls of a framework that its publisher, or another one, has made."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Count, Identifier, Name, ShortText, Slug, Text, Timestamp
from normata.core.schema.table import Table, defaults_to, derived, foreign_key
from normata.core.schema.text import slugify


class Baseline(Table):
    """A named selection of the controls of a framework: an implementation group, a level, an OSCAL profile.

    ``position`` is its place among those of its framework, as the publisher lists them. One with an organization is
    that organization's own: because the framework is, or because it has imported a profile for itself.
    """

    __tablename__ = "baseline"
    array = "baselines"
    shown_in = frozenset({"controls"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    framework_id: Mapped[Identifier] = mapped_column(foreign_key("framework.id"), info={"refers_to": "framework"})
    identifier: Mapped[ShortText]
    slug: Mapped[Slug]
    name: Mapped[Name]
    version: Mapped[ShortText | None]
    description: Mapped[Text | None]
    position: Mapped[Count] = defaults_to(0)
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    # That of its framework, where it has one; see rules.py.
    organization_id: Mapped[Identifier | None] = mapped_column(info={"refers_to": "organization"})

    fixed = ("framework_id",)
    generated = frozenset({"identifier", "slug"})
    __table_args__ = (UniqueConstraint("framework_id", "id"), Index(None, "organization_id"))

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        row["identifier"] = row["identifier"] or row["name"]
        row["slug"] = row["slug"] or slugify(row["identifier"] or "")


class BaselineControl(Table):
    """The selection of a control by a baseline of its framework.

    ``retired_at`` is the time since which a newer version of the baseline does not select it.
    """

    __tablename__ = "baseline_control"
    array = "baselineControls"
    bulky = True
    shown_in = frozenset({"controls"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    baseline_id: Mapped[Identifier] = mapped_column(foreign_key("baseline.id"), info={"refers_to": "baseline"})
    control_id: Mapped[Identifier] = mapped_column(foreign_key("control.id"), info={"refers_to": "control"})
    retired_at: Mapped[Timestamp | None]

    organization_id: Mapped[Identifier | None] = derived()  # that of its baseline

    fixed = ("baseline_id", "control_id")
    __table_args__ = (
        UniqueConstraint("baseline_id", "control_id"),
        Index(None, "control_id"),
        Index(None, "organization_id"),
    )
