"""The operation that verifies a finding."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from normata import errors
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.schema.fields import Text
from normata.core.schema.wire import Input, as_wire, wire
from normata.findings.verification import VERIFICATION_WRITES, verify
from normata.records import examples
from normata.records.kinds import Finding


class Verification(Input):
    """The optional body when a finding is verified."""

    note: Annotated[Text | None, Field(default=None, description="What was looked at, for later readers.")]


_NOTE = "Sample of forty badges on three evenings: all expired as intended."
_VERIFIED = {
    "status": "VERIFIED",
    "verifiedAt": "2026-11-20T09:14:03.120Z",
    "verifiedById": "member-dana",
    "verifiedByName": "Dana Demo",
    "verificationNote": _NOTE,
}

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="POST",
        path=f"/{Finding.path}/{{id}}/verify/",
        operation_id="verifyFinding",
        tag="Findings",
        summary="Verify a finding",
        description="""\
Records that you have looked whether what was found is corrected: `verifiedAt`, `verifiedById`, `verifiedByName` and
`verificationNote` are set, and a finding that is `RESOLVED` becomes `VERIFIED`. One that is `CLOSED` stays so; in any
other state, and of concurrent requests all but one, the response is 409 `wrong_state`. A later status other than
`VERIFIED` and `CLOSED` ends the verification. If the organization has set `verifiesFindings`, whoever has owned the
finding since it was resolved and who has resolved it get 403, and no finding becomes `CLOSED` before it is verified.
A service account verifies nothing.""",
        about=Finding,
        id_description="The id of the live finding.",
        body=Verification,
        body_example={"note": _NOTE},
        work=lambda unit, request: verify(
            unit,
            request.id,
            request.body.note if request.body is not None else None,
            require_current=lambda row: request.require_current(as_wire(Finding, row)),
        ),
        present=lambda row: as_wire(Finding, row),
        writes=VERIFICATION_WRITES,
        is_conditional=True,
        answer=wire(Finding),
        answer_description="The finding, verified.",
        example=(examples.restored(Finding) or {}) | _VERIFIED,
        errors=(errors.Archived, errors.WrongState),
    ),
)
