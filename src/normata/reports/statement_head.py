"""The head of a statement of applicability: whose it is, what it is about, of which day, and what its log proves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Timestamp
from normata.core.schema.wire import Wire
from normata.events.keys import origin_of
from normata.events.sealing import UnsoundLog, last_seal
from normata.frameworks.control_wire import FrameworkReference
from normata.reports.report_header import Report

_DATE = {"format": "date"}


class NamedMember(Wire):
    """A member, with the name of the user."""

    member_id: str = Field(description="The id of the membership.")
    name: str = Field(description="The name of the user.")


class SealedLog(Wire):
    """The organization's log of events when the statement was made: its last checkpoint."""

    origin: str = Field(description="The name of the log.")
    size: int = Field(description="How many events are sealed in it.")
    root: str = Field(description="The root of their Merkle tree (RFC 9162), in hexadecimal digits.")
    sealed_at: Timestamp | None = Field(description="When the last of them was sealed; null if there is none.")


class StatementHead(Report):
    """The head of a statement of applicability."""

    title: str | None = Field(description="The title of the version; null if this is the present state, and none.")
    scope: str | None = Field(
        description="What the organization's management system is about (ISO/IEC 27001, 4.3); null if it has not said"
        " so."
    )
    version: int | None = Field(description="The number of the version; null if this is the present state, and none.")
    date: Annotated[str, Field(description="The day of which the statement is, in UTC.", json_schema_extra=_DATE)]
    approver: NamedMember | None = Field(
        description="Who was named to approve the version; null if nobody was, or this is none. Whether it was approved"
        " is a matter of the version, and of its proof."
    )
    other_frameworks: list[FrameworkReference] = Field(
        description="The further frameworks whose necessary controls are in the statement, in its order."
    )
    log: SealedLog | None = Field(
        description="What the organization's log of events proves of it: every assessment in it is one of these events,"
        " or follows from them. Null if the log is not sound: `normata check` says why."
    )


def read_log(transaction: Transaction, organization_id: str) -> Mapping[str, Any] | None:
    """The members of :class:`SealedLog`, in two statements; null if the log is not sound."""
    try:
        checkpoint, sealed_at = last_seal(transaction, organization_id)
    except UnsoundLog:
        return None
    return {
        "origin": origin_of(organization_id),
        "size": checkpoint.size,
        "root": checkpoint.root,
        "sealedAt": sealed_at,
    }
