"""The operations of events: the events of an organization, the history of each record, and the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.formats import JSON, FormatQuery, Formats, plain
from normata.core.http.operation import ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.descriptions import with_article
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import Page, PageQuery
from normata.core.schema.wire import Wire
from normata.errors import Unavailable
from normata.events.history import (
    EventQuery,
    NumberedEvent,
    least_role,
    list_control_events,
    list_events,
    list_record_events,
)
from normata.events.keys import KeyUnusable, Signer, origin_of
from normata.events.marks import Marks, sign
from normata.events.sealing import UnsoundLog, last_seal
from normata.frameworks.model import Control
from normata.records import assurance as _kinds  # noqa: F401 - importing the kinds registers them in Restorable.kinds
from normata.records.base import Restorable


class EventPage(Page[NumberedEvent]):
    """A page of events."""


class SignedCheckpoint(Wire):
    """The state of an organization's event log: its size and the root of its Merkle tree."""

    origin: Annotated[str, Field(description="The name of the log.")]
    size: Annotated[int, Field(description="The number of events in the log.")]
    root: Annotated[str, Field(description="The root of their Merkle tree (RFC 9162), in hexadecimal digits.")]
    sealed_at: Annotated[
        Timestamp | None, Field(description="When the latest event was sealed; null if there is none.")
    ]
    note: Annotated[str, Field(description="Origin, size and root as a signed note: store it elsewhere.")]


CheckpointFormat = Annotated[
    Literal["json", "text"] | None,
    Field(description="The format of the response. It overrides `Accept`, so that a link can set it."),
]


class CheckpointQuery(FormatQuery):
    """The query of the checkpoint."""

    format: CheckpointFormat = None  # type: ignore[assignment] # it has formats of its own


def _checkpoint(transaction: Transaction, request: Request) -> Mapping[str, Any]:
    try:
        signer = request.means[Signer]
        mark = Marks(signer).of(request.organization_id)
        checkpoint, sealed_at = last_seal(transaction, request.organization_id)
        note = sign(transaction, signer, checkpoint, mark)
    except (KeyUnusable, UnsoundLog) as error:
        raise Unavailable(str(error)) from None
    return {
        "origin": origin_of(request.organization_id),
        "size": checkpoint.size,
        "root": checkpoint.root,
        "sealedAt": sealed_at,
        "note": note,
    }


_CHECKPOINT = Formats(
    present=lambda checkpoint: checkpoint,
    file_name=lambda _: "checkpoint",
    by_name={"json": JSON, "text": plain(lambda checkpoint: str(checkpoint["note"]).encode())},
)

_EVENT = {
    "id": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d10",
    "organizationId": "org-harbourlight",
    "at": "2026-11-20T09:14:03.120Z",
    "action": "restore",
    "kind": "policies",
    "recordId": "policy-travel-with-prototypes",
    "userId": "user-dana",
    "tokenId": "01a2033c-0c1e-7d3a-8f60-6f0b1d9b2c11",
    "command": None,
    "address": "192.0.2.17",
    "requestId": "01a2033c-199f-7a02-b3cd-8c1a5be0a6f2",
    "before": None,
    "after": {"archivedAt": None, "updatedAt": "2026-11-20T09:14:03.120Z"},
    "counts": None,
    "reason": None,
    "number": 41,
}
_ASSESSED = _EVENT | {
    "action": "assess",
    "kind": "controlCoverages",
    "recordId": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d11",
    "before": {"coverageStatus": "NONE", "note": None},
    "after": {"coverageStatus": "FULL", "note": "Everybody signs for what they give back."},
}
_PAGE = {"items": [_EVENT], "total": 1, "totalIsExact": True, "page": 1, "limit": 100}

_ROOT = "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb"
_NOTE = (
    "normata/org-harbourlight\n2\nsTeYX/SE+2ANuTEHx3sDZcgNePW0Kd7Q/Zc2HQd5mes=\n\n\u2014 normata/org-harbourlight "
    "izZ0O5Q76+UURLeD/MmmHkExCyFnLRYsE7X0OkQ3naBBda2TjeEaXx2J5WXvuweehLfi+UK/nHIx5Ww/b6oYgsLpLgw=\n"
)


def record_events_operation(kind: type[Restorable]) -> ListOperation:
    """The history of a record of one kind."""
    words = kind.words()
    return ListOperation(
        path=f"/{kind.path}/{{id}}/events/",
        operation_id=f"list{kind.__name__}Events",
        tag="Events",
        summary=f"List the history of {with_article(words)}",
        description=f"All changes of {with_article(words)}, archived or live, newest first. The list of all events"
        " describes the fields.",
        about=kind,
        id_description=f"The id of the {words}.",
        query=PageQuery,
        build=lambda transaction, request: list_record_events(transaction, kind, request.id, request.query),
        answer=EventPage,
        answer_description="A page of events.",
        example={**_PAGE, "items": [_EVENT | {"kind": kind.path, "recordId": "42"}]},
    )


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/events/",
        operation_id="listEvents",
        tag="Events",
        summary="List events",
        description="""\
The changes in an organization, newest first. This requires the role of an auditor, an admin or an owner. The events of
one row, named by `kind` and `recordId`, are for everybody who can read such rows.

Every change has an event, whether a request or a command made it, written in the transaction of the change. `before`
and `after` have the changed fields. They never contain a secret, and they identify people only by id. Many rows of a
catalog are one event with `counts`.

A filter for an unknown kind, row, user or action matches no events.""",
        role="auditor",
        role_for=least_role,
        query=EventQuery,
        build=lambda transaction, request: list_events(transaction, request.query),
        answer=EventPage,
        answer_description="A page of events.",
        example=_PAGE,
    ),
    ReadOperation(
        path="/events/checkpoint/",
        operation_id="getEventCheckpoint",
        tag="Events",
        summary="Get the checkpoint of the events",
        description="""\
The state of the organization's event log, signed by the service: store it where nobody who can change the database can
change it. With it, `normata events verify` detects whether any event was changed, removed or inserted since.

As plain text (`Accept: text/plain`, or `format=text`) it is a checkpoint in the format of C2SP's tlog-checkpoint: a
note signed with Ed25519. An event is in the log within a second.""",
        query=CheckpointQuery,
        build=_checkpoint,
        formats=_CHECKPOINT,
        answer=SignedCheckpoint,
        answer_description="The checkpoint.",
        example={
            "origin": "normata/org-harbourlight",
            "size": 2,
            "root": _ROOT,
            "sealedAt": "2026-11-20T09:14:03.652Z",
            "note": _NOTE,
        },
    ),
    ListOperation(
        path="/controls/{id}/events/",
        operation_id="listControlEvents",
        tag="Events",
        summary="List what was said of a control",
        description="""\
Everything that the organization has said of a control, newest first: each assessment as it was made, changed,
confirmed, lapsed or cleared, with its texts in `before` and `after`, across all assessments that the control has had,
also while the framework was not adopted. Of a control of its own framework there are the changes of the control, too.
The list of all events describes the fields.""",
        about=Control,
        id_description="The id of the control.",
        query=PageQuery,
        build=lambda transaction, request: list_control_events(transaction, request.id, request.query),
        answer=EventPage,
        answer_description="A page of events.",
        example={**_PAGE, "items": [_ASSESSED]},
    ),
    *(record_events_operation(kind) for kind in Restorable.kinds),
)
