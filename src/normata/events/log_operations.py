"""The operations of the log by number: its sealed events, and the proof that it has only grown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.formats import JSON, Formats, lines
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Wire
from normata.errors import Unavailable
from normata.events.log import LAST_NUMBER, LogQuery, SealedEvents, as_lines, read_lines, read_log
from normata.events.proofs import prove_consistency, size_of
from normata.events.sealing import UnsoundLog

Size = Annotated[int, Field(ge=0, le=LAST_NUMBER)]


class ConsistencyQuery(OrganizationQuery):
    """The query of a proof between two sizes of the log."""

    from_: Annotated[
        Size, Field(alias="from", description="The earlier size: that of a checkpoint that you have.", examples=[0])
    ]
    to: Annotated[Size | None, Field(description="The later size. Left out: that of the last checkpoint.")] = None


class ConsistencyProof(Wire):
    """A proof that the log at a size begins with what it was at an earlier one."""

    from_: int = Field(alias="from", description="The earlier size.")
    to: int = Field(description="The later size.")
    from_root: str = Field(description="The root at the earlier size, in hexadecimal digits.")
    to_root: str = Field(description="The root at the later size.")
    path: list[str] = Field(
        description="The hashes of the proof (RFC 9162, section 2.1.4); none if the sizes are the same, or one is 0."
    )


def _consistency(transaction: Transaction, request: Request) -> Mapping[str, Any]:
    query = request.query
    size = size_of(transaction, request.organization_id)
    new = size if query.to is None else query.to
    if new > size:
        raise _too_large("to", size)
    if query.from_ > new:
        raise _too_large("from", new)
    try:
        proof = prove_consistency(transaction, request.organization_id, query.from_, new)
    except UnsoundLog as error:
        raise Unavailable(str(error)) from None
    return {
        "from": query.from_,
        "to": new,
        "fromRoot": proof.old_root,
        "toRoot": proof.new_root,
        "path": list(proof.path),
    }


def _too_large(name: str, most: int) -> InvalidRequest:
    message = f"must be at most {most}"
    return InvalidRequest.of([FieldFault(in_="query", name=name, code="too_large", message=message, allowed=None)])


_BODY = (
    '{"action":"restore","address":"192.0.2.17","after":{"archivedAt":null},"at":"2026-11-20T09:14:03.120Z",'
    '"before":null,"command":null,"counts":null,"id":"01a2033c-19a0-7c51-93a4-0f4b8b7c9d10","kind":"policies",'
    '"organizationId":"org-harbourlight","reason":null,"recordId":"policy-travel-with-prototypes","requestId":null,'
    '"salt":"5f0c0f1e7d3a8f606f0b1d9b2c115f0c","tokenId":null,"userId":"user-dana"}'
)
_HASH = "0f4b8b7c9d1001a2033c19a07c5193a40f4b8b7c9d1001a2033c19a07c5193a4"
_ROOT = "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb"
_LOG = {
    "items": [{"number": 0, "id": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d10", "leafHash": _HASH, "body": _BODY}],
    "next": 0,
    "size": 2,
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/events/log/",
        operation_id="readEventLog",
        tag="Events",
        summary="Follow the events by number",
        description="""\
The sealed events of the organization in the order of their numbers, which have no hole and never change. An event has a
number within a second, and none comes in later before another: whoever asks again with `after` set to `next` misses
none. `body` is the exact text that was sealed.

As lines (`Accept: application/x-ndjson`, or `format=ndjson`) they are sent while they are read, all of them unless
there is a `limit`. `normata events verify` proves such a file, from the beginning of the log, with a checkpoint that
was fetched before it. This requires the role of an auditor, an admin or an owner.""",
        role="auditor",
        query=LogQuery,
        build=lambda transaction, request: read_log(transaction, request.query),
        formats=Formats(
            present=lambda answer: answer,
            file_name=lambda _: "events",
            by_name={"json": JSON, "ndjson": lines(as_lines)},
        ),
        lines=lambda transaction, request, place: read_lines(transaction, request.query, place),
        answer=SealedEvents,
        answer_description="Sealed events.",
        example=_LOG,
    ),
    ReadOperation(
        path="/events/consistency/",
        operation_id="getEventConsistency",
        tag="Events",
        summary="Prove that the log has only grown",
        description="""\
The proof that the log at one size begins with all that it was at an earlier one (RFC 9162, section 2.1.4). With two
checkpoints, whose sizes and roots it has, it shows that nothing was changed, removed or inserted between them, without
the events.""",
        query=ConsistencyQuery,
        build=_consistency,
        answer=ConsistencyProof,
        answer_description="The proof.",
        example={"from": 1, "to": 2, "fromRoot": _HASH, "toRoot": _ROOT, "path": [_HASH]},
    ),
)
