"""The operations of risks beyond those of all records."""

from __future__ import annotations

from collections import Counter

from normata import errors
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.schema.paging import OrganizationQuery, PastQuery
from normata.core.schema.wire import as_wire, wire
from normata.records import examples
from normata.records.assurance import Risk
from normata.risks.acceptance import ACCEPTANCE_WRITES, accept
from normata.risks.levels import usual_levels
from normata.risks.matrix import RiskMatrix, RiskMatrixQuery, matrix_of, risk_matrix
from normata.risks.ratings import RiskRatingsHistory, ratings_of
from normata.risks.register import RiskRegisterPage, RiskRegisterQuery, TreatedRisk, risk_register, treated_risk

_TREATED = {
    "levels": {"inherent": "CRITICAL", "residual": "HIGH", "target": "MEDIUM"},
    "claims": ["RESIDUAL_BELOW_INHERENT"],
    "restsOnGap": True,
    "gaps": ["PARTIAL"],
    "controls": [
        {
            "id": "iso-27001-2022:A.8.13",
            "linkId": "link-A.8.13-risk-telemetry-cannot-be-restored",
            "identifier": "A.8.13",
            "name": "Information backup",
            "frameworkId": "iso-27001-2022",
            "framework": "ISO/IEC 27001:2022",
            "effectiveCoverageStatus": "PARTIAL",
            "gaps": ["PARTIAL"],
        }
    ],
}
_RATED = {
    "since": "2026-11-20T09:14:03.120Z",
    "until": None,
    "inherentProbability": 3,
    "inherentImpact": 5,
    "residualProbability": 2,
    "residualImpact": 5,
    "targetProbability": 2,
    "targetImpact": 3,
    "levels": _TREATED["levels"],
}
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
    ListOperation(
        path="/risk-register/",
        operation_id="listRiskRegister",
        tag="Risks",
        summary="List open risks with what treats them",
        description="""\
The live risks that are not `CLOSED`, those with the largest product of probability and impact first, and those that are
not rated last: each with its levels, the controls that treat it, how far these are covered, and whether a claim rests
on a gap. With `asOf` it shows the risks, the links and the coverage of then, by the levels of today.""",
        query=RiskRegisterQuery,
        build=lambda transaction, request: risk_register(transaction, request.query),
        answer=RiskRegisterPage,
        answer_description="A page of the register.",
        example={
            "items": [{**(examples.restored(Risk) or {}), **_TREATED}],
            "total": 1,
            "totalIsExact": True,
            "page": 1,
            "limit": 100,
        },
    ),
    ReadOperation(
        path=f"/{Risk.path}/{{id}}/treatment/",
        operation_id="getRiskTreatment",
        tag="Risks",
        summary="Get what treats a risk",
        description="""\
The controls that treat a risk (links with the relation `TREATS`), and how far each is covered. It warns where the
residual risk is claimed to be lower than the inherent one, or to have reached the target, and that rests on a gap: a
control that is not fully covered, is stale, has lapsed, does not apply or is in no adopted framework, or no control at
all where the risk is to be mitigated. `asOf` shows what held then.""",
        about=Risk,
        id_description="The id of the risk, live or archived.",
        query=PastQuery,
        build=lambda transaction, request: treated_risk(transaction, request.query, request.id),
        answer=TreatedRisk,
        answer_description="What treats the risk.",
        example=_TREATED,
    ),
    ReadOperation(
        path=f"/{Risk.path}/{{id}}/ratings/",
        operation_id="getRiskRatings",
        tag="Risks",
        summary="Get the ratings that a risk has had",
        description="""\
The ratings of a risk from its first ones on, the newest first, each with when they were given and when they were
changed. Their levels are those of today's matrix.""",
        about=Risk,
        id_description="The id of the risk, live or archived.",
        query=OrganizationQuery,
        build=lambda transaction, request: ratings_of(transaction, request.organization_id, request.id),
        answer=RiskRatingsHistory,
        answer_description="The ratings.",
        example={"items": [_RATED]},
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
