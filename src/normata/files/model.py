"""Files that people upload: their names and hashes. The bytes are in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import BigInteger, Index, Integer
from sqlalchemy import text as sql_text
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key
from normata.core.schema.text import BLANK, UNSEEN

# A name without a path, of which something is visible besides dots.
_NAME = rf"^[^{UNSEEN}/\\]*[^\s{UNSEEN}{BLANK}/\\.][^{UNSEEN}/\\]*$"
FileName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=_NAME), mapped_column(text(255))]
MEDIA_TYPE = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(; ?[\x20-\x7e]*)?$"
MediaType = Annotated[str, StringConstraints(max_length=255, pattern=MEDIA_TYPE), mapped_column(text(255), info=CODED)]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64), info=CODED)]
_Size = Annotated[int, Field(ge=0, le=2**53 - 1), mapped_column(BigInteger().with_variant(Integer, "sqlite"))]

UNATTACHED = "attached_at IS NULL"
DETACHED = "detached_at IS NOT NULL AND erased_at IS NULL"
WITH_CONTENT = "erased_at IS NULL"


class File(Table):
    """A file that somebody has uploaded.

    Until a record has it, only who has uploaded it sees it, and it goes after a day. What a record has had stays, until
    its bytes are erased with a person whom they name, or after the time for which the organization keeps replaced ones.
    """

    __tablename__ = "file"
    array = "files"
    # Not its name, of which a person may be erased: so its proof remains.
    event_columns = frozenset(
        {
            *("id", "organization_id", "user_id", "media_type", "size", "sha256"),
            *("created_at", "attached_at", "detached_at", "erased_at"),
        }
    )
    fixed = ("organization_id", "user_id", "name", "media_type", "size", "sha256", "created_at")
    named_if = ("attached_at", "user_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier | None] = mapped_column(
        foreign_key("user_account.id"),
        info={"refers_to": "user_account", "description": "The id of the user who has uploaded it."},
    )
    name: Mapped[FileName]
    media_type: Mapped[MediaType] = mapped_column(
        info={**CODED, "description": "The media type, as whoever has uploaded it says."}
    )
    size: Mapped[_Size] = mapped_column(info={"description": "The number of its bytes."})
    sha256: Mapped[_Sha256] = mapped_column(
        info={**CODED, "description": "The SHA-256 of its bytes, in hexadecimal digits."}
    )
    created_at: Mapped[Timestamp]
    attached_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When a record got it first; null if none has had it."}
    )
    detached_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When a record last gave it up; null if none has."}
    )
    erased_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When its bytes were erased; null if they are there."}
    )

    __table_args__ = (
        # For the quota, without reading the rows.
        Index(
            "ix_file_with_content",
            *("organization_id", "size"),
            sqlite_where=sql_text(WITH_CONTENT),
            postgresql_where=sql_text(WITH_CONTENT),
        ),
        Index(
            "ix_file_detached",
            *("organization_id", "detached_at"),
            sqlite_where=sql_text(DETACHED),
            postgresql_where=sql_text(DETACHED),
        ),
        Index(
            "ix_file_unattached",
            *("organization_id", "created_at"),
            sqlite_where=sql_text(UNATTACHED),
            postgresql_where=sql_text(UNATTACHED),
        ),
    )

    @classmethod
    def is_seen_by(cls, row: Mapping[str, Any], user_id: str | None) -> bool:
        return row["attached_at"] is not None or row["user_id"] == user_id
