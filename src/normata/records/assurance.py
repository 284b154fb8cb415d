"""The kinds of records that assessments stand on. They come after the others, in the lists of kinds as well."""

from __future__ import annotations

from sqlalchemy.orm import Mapped

from normata.core.schema.fields import (
    FileIds,
    Identifier,
    Name,
    ShortId,
    ShortText,
    Slug,
    Text,
    Timestamp,
    Token,
    WebAddress,
)
from normata.core.schema.table import due, known, lists, refers_to, written_as
from normata.records import kinds as _others  # noqa: F401 - so that they come first
from normata.records.base import Maintained


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
