"""The operations of risks beyond those of all records."""

from __future__ import annotations

from collections import Counter

from normata import errors
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.schema.wire import as_wire, wire
from normata.records import examples
from normata.records.assurance import Risk
from normata.risks.acceptance import ACCEPTANCE_WRITES, accept
from normata.risks.matrix import RiskMatrix, RiskMatrixQuery, matrix_of, risk_matrix, usual_levels

_ACCEPTED = {"acceptedAt": "2026-11-20T09:14:03.120Z", "acceptedById": "member-dana"}


OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/risk-matrix/",
        operation_id="getRiskMatrix",
        tag="Risks",
        summary="Get the risk matrix",
        description="""\
Counts the live risks that are not `CLOSED` by probability and impact, with the level of each combination, which `PATCH
/organizations/{id}/` sets. With `asOf` it counts the risks as they were rated then, by the levels of today.""",
        query=RiskMatrixQuery,
        build=lambda transaction, request: risk_matrix(transaction, request.organization_id, request.query),
        answer=RiskMatrix,
        answer_description="The risk matrix.",
        example=matrix_of("residual", usual_levels(), Counter({(3, 2): 4, (None, None): 1})),
    ),
    ChangeOperation(
        http_method="POST",
        path=f"/{Risk.path}/{{id}}/accept/",
        operation_id="acceptRisk",
        tag="Risks",
        summary="Accept a residual risk",
        description="""\
Accepts the residual risk as it is now, which its owner alone can do, whatever their role (ISO/IEC 27001, 6.1.3 f):
`acceptedAt` and `acceptedById` are set. A change of `residualProbability` or `residualImpact` ends the acceptance.
Send `If-Match` to accept what you have read. A service account accepts nothing.""",
        role="owner",
        own_role="viewer",
        about=Risk,
        id_description="The id of the live risk.",
        work=lambda unit, request: accept(
            unit, request.id, require_current=lambda row: request.require_current(as_wire(Risk, row))
        ),
        present=lambda row: as_wire(Risk, row),
        writes=ACCEPTANCE_WRITES,
        is_conditional=True,
        answer=wire(Risk),
        answer_description="The risk, accepted.",
        example=(examples.restored(Risk) or {}) | _ACCEPTED,
        errors=(errors.Archived, errors.NotRated),
    ),
)
