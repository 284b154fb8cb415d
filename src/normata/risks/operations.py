"""The operations of risks beyond those of all records."""

from __future__ import annotations

from typing import Any

from normata import errors
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.schema.fields import RISK_LEVELS
from normata.core.schema.wire import as_wire, wire
from normata.records import examples
from normata.records.assurance import Risk
from normata.risks.acceptance import ACCEPTANCE_WRITES, accept
from normata.risks.matrix import RATINGS, RiskMatrix, RiskMatrixQuery, risk_matrix, usual_levels

_ACCEPTED = {"acceptedAt": "2026-11-20T09:14:03.120Z", "acceptedById": "member-dana"}


def _matrix() -> dict[str, Any]:
    cells = [
        {"probability": probability, "impact": impact, "level": usual_levels()[impact - 1][probability - 1], "count": 0}
        for impact in RATINGS
        for probability in RATINGS
    ]
    cells[7] = cells[7] | {"count": 4}
    levels = {level: 4 if level == cells[7]["level"] else 0 for level in RISK_LEVELS}
    return {"of": "residual", "cells": cells, "levels": levels, "unrated": 1, "total": 5}


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
        example=_matrix(),
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
