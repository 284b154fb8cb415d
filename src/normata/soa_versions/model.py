"""A version of a statement of applicability: what it said on a day, kept byte for byte in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document, text
from normata.core.schema.fields import Count, Identifier, Name, Text, Timestamp, VisibleName
from normata.core.schema.table import CODED, Table, foreign_key, refers_to, written_as

VersionState = Literal["DRAFT", "APPROVED", "SUPERSEDED"]
FileFormat = Literal["json", "csv", "xlsx", "pdf"]
FILE_FORMATS: tuple[FileFormat, ...] = ("json", "csv", "xlsx", "pdf")

_State = Annotated[VersionState, mapped_column(text(16), info=CODED)]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64), info=CODED)]
# Base64 (RFC 4648, section 4). `unlisted`: bundles and the download have the bytes, lists have their hashes.
_File = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9+/]*={0,2}$"),
    mapped_column(text(), info={**CODED, "unlisted": True}),
]
_Identifiers = Annotated[list[Identifier], Field(max_length=20), mapped_column(Document())]


def hash_column(name: str) -> str:
    """The column with the SHA-256 of the file in a format."""
    return f"{name}_sha256"


def file_column(name: str) -> str:
    """The column with the bytes of the file in a format, in Base64."""
    return f"{name}_file"


def _of_file(name: str) -> dict[str, Any]:
    return {**CODED, "unlisted": True, "description": f"The version as {name}, in Base64; null if there is none."}


def _hash_of(name: str) -> dict[str, Any]:
    return {**CODED, "description": f"The SHA-256 of the version as {name}, in hexadecimal digits."}


class SoaVersion(Table):
    """A numbered version of the statement of applicability of a framework."""

    __tablename__ = "soa_version"
    array = "soaVersions"
    # Of nothing in an event of a version can a person be erased, so that its proof remains.
    event_columns = frozenset(
        {
            *("id", "organization_id", "framework_id", "number", "state", "approver_id"),
            *("json_sha256", "csv_sha256", "xlsx_sha256", "pdf_sha256"),
            *("created_at", "approved_at", "superseded_at", "erased_at"),
        }
    )
    fixed = (
        *("organization_id", "framework_id", "number", "approver_id", "created_at"),
        *("json_sha256", "csv_sha256", "xlsx_sha256", "pdf_sha256"),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    framework_id: Mapped[Identifier] = refers_to("framework")
    other_framework_ids: Mapped[_Identifiers] = mapped_column(
        info={"default": [], "description": "The ids of the further frameworks whose necessary controls are in it."}
    )
    number: Mapped[Annotated[Count, Field(ge=1)]] = mapped_column(
        info={"description": "The number of the version among those of the organization's statement of the framework."}
    )
    title: Mapped[Name] = written_as(VisibleName)
    scope: Mapped[Text | None] = mapped_column(
        info={"description": "What the organization's management system was about (ISO/IEC 27001, 4.3)."}
    )
    state: Mapped[_State] = mapped_column(
        info={
            **CODED,
            "default": "DRAFT",
            "description": "`DRAFT` until its approver approves it; `SUPERSEDED` once another one is approved.",
        }
    )
    approver_id: Mapped[Identifier | None] = refers_to("membership")
    json_sha256: Mapped[_Sha256] = mapped_column(info=_hash_of("JSON"))
    csv_sha256: Mapped[_Sha256] = mapped_column(info=_hash_of("CSV"))
    xlsx_sha256: Mapped[_Sha256] = mapped_column(info=_hash_of("XLSX"))
    pdf_sha256: Mapped[_Sha256 | None] = mapped_column(
        info={**CODED, "description": "The SHA-256 of the version as PDF; null if there is none."}
    )
    created_at: Mapped[Timestamp]
    approved_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When its approver has approved it; null while it is a draft."}
    )
    superseded_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When another version took its place; null if none has."}
    )
    erased_at: Mapped[Timestamp | None] = mapped_column(
        info={"description": "When its files were erased with a person whom they name; null if they are there."}
    )
    json_file: Mapped[_File | None] = mapped_column(info=_of_file("JSON"))
    csv_file: Mapped[_File | None] = mapped_column(info=_of_file("CSV"))
    xlsx_file: Mapped[_File | None] = mapped_column(info=_of_file("XLSX"))
    pdf_file: Mapped[_File | None] = mapped_column(info=_of_file("PDF"))

    __table_args__ = (
        UniqueConstraint("organization_id", "framework_id", "number"),
        Index(None, "organization_id", "created_at"),
    )

    @classmethod
    def needs(cls, row: Mapping[str, Any]) -> Sequence[str]:
        """What follows from the state."""
        return ("approver_id", "approved_at") if row["state"] != "DRAFT" else ()
