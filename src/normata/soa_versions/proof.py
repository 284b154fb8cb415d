"""The proof of a version: its sealed events, and that they are in the log whose checkpoint is signed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.schema.paging import OrganizationQuery, digits_only
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import Unavailable
from normata.events.content import sealed_text
from normata.events.keys import KeyUnusable, Signer, origin_of
from normata.events.marks import Marks, sign
from normata.events.merkle import Checkpoint
from normata.events.model import AuditEvent
from normata.events.operations import SignedCheckpoint
from normata.events.proofs import NoCheckpoint, checkpoint_at, leaves_of, prove
from normata.events.sealing import UnsoundLog
from normata.soa_versions.model import FILE_FORMATS, SoaVersion, hash_column
from normata.soa_versions.versions import one_version

_LARGEST = 2**53 - 1  # the largest integer that all JSON readers can represent (RFC 7493)
_NOT_SEALED = "An event of the version is not sealed yet, which takes a second. Retry soon."


class ProofQuery(OrganizationQuery):
    """The query of the proof of a version."""

    size: Annotated[
        int | None,
        Field(
            ge=1,
            le=_LARGEST,
            description="The size of the checkpoint to prove the version in, such as one that was stored elsewhere."
            " Default: the last one.",
        ),
        digits_only,
    ] = None


class ProvenEvent(Wire):
    """An event of the version, and the proof that the checkpoint has it."""

    action: str = Field(description="What was done: `create`, `approve`, `supersede`, `erase`, or `load`.")
    leaf: int = Field(description="The number of its leaf in the log, from 0.")
    hash: str = Field(description="The hash of the leaf (RFC 9162, section 2.1.1), in hexadecimal digits.")
    event: str = Field(description="The event as it was sealed: JSON, byte for byte.")
    inclusion_path: list[str] = Field(
        description="The inclusion proof (RFC 9162, section 2.1.3): hashes from the leaf's sibling up."
    )


class VersionHashes(Wire):
    """The hashes of the files of another version. They are not proven here, and only name a file that is not this."""

    number: int = Field(description="The number of the version.")
    hashes: dict[str, str] = Field(description="The SHA-256 of each format, in hexadecimal digits.")


class VersionProof(Wire):
    """What proves a version: the events about it, in the order of the log, and the checkpoint that they are in."""

    version_id: str = Field(description="The id of the version.")
    number: int = Field(description="The number of the version.")
    events: list[ProvenEvent] = Field(
        description="The first one has the hashes of the files. The last one says in which state the version is. Empty"
        " if nothing in the log proves the version, because it was inserted by hand."
    )
    checkpoint: SignedCheckpoint = Field(description="The state of the organization's log that has the events.")
    others: list[VersionHashes] = Field(description="The other versions of the statement of the framework.")


def read_proof(
    transaction: Transaction, organization_id: str, version_id: str, size: int | None, signer: Signer
) -> Any:
    """The members of :class:`VersionProof`.

    Raises NotFound, Unavailable if an event is not sealed yet or the log cannot be signed, and InvalidRequest if the
    log has no checkpoint of that size, or did not have the version then.
    """
    version = one_version(transaction, organization_id, version_id)
    try:
        checkpoint, sealed_at = checkpoint_at(transaction, organization_id, size)
        events = list(_proven(transaction, version_id, checkpoint, is_last=size is None))
        if not events and size is not None:
            raise _wrong_size("is that of a checkpoint from before the version")
        note = sign(transaction, signer, checkpoint, Marks(signer).of(organization_id))
    except NoCheckpoint:
        raise _wrong_size("is not that of a checkpoint of the log") from None
    except (KeyUnusable, UnsoundLog) as error:
        raise Unavailable(str(error)) from None
    of_framework = {"organization": organization_id, "framework": version.framework_id}
    return {
        "versionId": version_id,
        "number": version.number,
        "events": events,
        "checkpoint": {
            "origin": origin_of(organization_id),
            "size": checkpoint.size,
            "root": checkpoint.root,
            "sealedAt": sealed_at,
            "note": note,
        },
        "others": [
            {"number": row.number, "hashes": _hashes(row)}
            for row in transaction.rows(_HASHES, of_framework)
            if row.number != version.number
        ],
    }


def _proven(
    transaction: Transaction, version_id: str, checkpoint: Checkpoint, *, is_last: bool
) -> Iterator[Mapping[str, Any]]:
    """The members of :class:`ProvenEvent` of each event that the checkpoint has. Raises Unavailable."""
    found = transaction.rows(_EVENTS, {"organization": checkpoint.organization_id, "version": version_id})
    leaves = leaves_of(transaction, [event.id for event in found])
    if is_last and len(leaves) < len(found):
        raise Unavailable(_NOT_SEALED)
    for event in sorted((one for one in found if one.id in leaves), key=lambda event: leaves[event.id]):
        number, leaf = leaves[event.id]
        if number < checkpoint.size:
            yield {
                "action": event.action,
                "leaf": number,
                "hash": leaf,
                "event": sealed_text(event),
                "inclusionPath": prove(transaction, checkpoint, number, leaf).path,
            }


def _hashes(version: Any) -> dict[str, str]:
    hashes = {name: getattr(version, hash_column(name)) for name in FILE_FORMATS}
    return {name: value for name, value in hashes.items() if value is not None}


def _wrong_size(reason: str) -> InvalidRequest:
    return InvalidRequest.of([FieldFault(in_="query", name="size", code="invalid", message=reason, allowed=None)])


_EVENT, _VERSION = sql_table(AuditEvent), sql_table(SoaVersion)
_EVENTS = select(*_EVENT.c).where(
    _EVENT.c.organization_id == bindparam("organization"),
    _EVENT.c.entity_id == bindparam("version"),
    _EVENT.c.entity_type == SoaVersion.__name__,
)
_HASHES = (
    select(_VERSION.c.number, *(_VERSION.c[hash_column(name)] for name in FILE_FORMATS))
    .where(_VERSION.c.organization_id == bindparam("organization"), _VERSION.c.framework_id == bindparam("framework"))
    .order_by(_VERSION.c.number)
)
