"""The operation that finalizes a record."""

from __future__ import annotations

from normata import errors
from normata.core.http.operation import ChangeOperation
from normata.core.schema.wire import as_wire, wire
from normata.records import examples
from normata.records.finalizing import FINALIZATION_WRITES, finalize
from normata.records.kinds import Record

OPERATION = ChangeOperation(
    http_method="POST",
    path=f"/{Record.path}/{{id}}/finalize/",
    operation_id="finalizeRecord",
    tag="Records",
    summary="Finalize a record",
    description="""\
Says that what the record says is complete: it becomes `FINALIZED`, `finalizedAt` and `finalizedBy` are set, and
`currentVersion` is 1 unless it has one. It takes a record that is `DRAFT` or `IN_REVIEW`; for any other state, and for
all but one of concurrent requests, the response is 409 `wrong_state`. While the record is `FINALIZED` or `SUPERSEDED`,
a change of its `title` or `content` is 409 `wrong_state`, too. Another status ends the finalization, and begins the
next version. A service account finalizes nothing.""",
    about=Record,
    id_description="The id of the live record.",
    work=lambda unit, request: finalize(
        unit, request.id, require_current=lambda row: request.require_current(as_wire(Record, row))
    ),
    present=lambda row: as_wire(Record, row),
    writes=FINALIZATION_WRITES,
    is_conditional=True,
    answer=wire(Record),
    answer_description="The record, finalized.",
    example=(examples.restored(Record) or {})
    | {"status": "FINALIZED", "finalizedAt": "2026-11-20T09:14:03.120Z", "finalizedBy": "Dana Demo"},
    errors=(errors.Archived, errors.WrongState),
)
