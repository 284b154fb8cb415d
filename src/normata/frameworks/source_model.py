"""The documents that frameworks and baselines were imported from."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints
from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import Count, Identifier, Timestamp
from normata.core.schema.table import CODED, Table, derived, foreign_key

_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64), info=CODED)]
MEDIA_TYPES = {name: f"application/{name}" for name in ("json", "yaml")}
_MediaType = Annotated[
    str, StringConstraints(pattern=rf"^({'|'.join(MEDIA_TYPES.values())})$"), mapped_column(text(64), info=CODED)
]
LARGEST = 16 * 2**20  # bytes, as many as an upload may have
_Content = Annotated[
    str,
    StringConstraints(max_length=LARGEST, pattern=r"^[^\x00]*$"),
    mapped_column(
        text(), info={"unlisted": True, "source": True, "description": "The document, character by character."}
    ),
]


class SourceDocument(Table):
    """The document of OSCAL that a framework or a baseline was last imported from, as it came.

    The text is UTF-8, so its bytes and their SHA-256 follow from it. It is stored as a text, so that an erasure finds
    whom it names, also where JSON or YAML escapes letters. Then the row is deleted: a document that was changed would
    not be the publisher's.
    """

    __tablename__ = "source_document"
    array = "sourceDocuments"
    shown_in = frozenset({"controls"})  # no list shows these, but planned imports read them: see catalogs/uploads.py
    transient = True
    event_columns = frozenset({"id", "framework_id", "baseline_id", "media_type", "sha256", "size", "created_at"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    framework_id: Mapped[Identifier] = mapped_column(foreign_key("framework.id"), info={"refers_to": "framework"})
    # The baseline if it is a profile; null if it is the catalog of the framework.
    baseline_id: Mapped[Identifier | None] = mapped_column(info={"refers_to": "baseline"})
    media_type: Mapped[_MediaType]
    sha256: Mapped[_Sha256]
    size: Mapped[Count] = mapped_column(info={"description": "The number of its bytes."})
    content: Mapped[_Content]
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    organization_id: Mapped[Identifier | None] = derived()  # that of its baseline, or of its framework; see rules.py

    fixed = ("framework_id", "baseline_id")
    __table_args__ = (
        ForeignKeyConstraint(
            ["framework_id", "baseline_id"],
            ["baseline.framework_id", "baseline.id"],
            deferrable=True,
            initially="DEFERRED",
        ),
        Index(None, "framework_id", "baseline_id"),
        Index(None, "organization_id"),
    )
